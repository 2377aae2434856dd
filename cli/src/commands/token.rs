//! `everscan token`.

mod create;
mod list;

use clap::Subcommand;

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make an access token and print it, this once
    Create(create::Create),
    /// List access tokens without their secrets
    List(list::List),
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Create(command) => command.run(session).await,
            Self::List(command) => command.run(session).await,
        }
    }
}
