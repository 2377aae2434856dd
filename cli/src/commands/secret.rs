//! `everscan secret`.

mod set;

use clap::Subcommand;

use crate::commands::named::{Delete, Kind, List};
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give a secret a value, which nobody can read again
    Set(set::Set),
    /// List the secrets of a project without their values
    List(List),
    /// Remove a secret
    Delete(Delete),
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Set(command) => command.run(session).await,
            Self::List(command) => command.run(Kind::Secret, session).await,
            Self::Delete(command) => command.run(Kind::Secret, session).await,
        }
    }
}
