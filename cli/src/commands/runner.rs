//! `everscan runner`.

mod delete;
mod list;
mod register_token;

use clap::Subcommand;

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Forget a runner; its jobs fail
    Delete(delete::Delete),
    /// List runners
    List(list::List),
    /// Make a token with which one runner can register
    RegisterToken(register_token::RegisterToken),
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Delete(command) => command.run(session).await,
            Self::List(command) => command.run(session).await,
            Self::RegisterToken(command) => command.run(session).await,
        }
    }
}
