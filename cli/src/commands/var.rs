//! `everscan var`.

mod get;
mod set;

use clap::Subcommand;

use crate::commands::named::{Delete, Kind, List};
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give a var a value, which jobs that are claimed later read
    Set(set::Set),
    /// Print the value of a var
    Get(get::Get),
    /// List the vars of a project without their values
    List(List),
    /// Remove a var
    Delete(Delete),
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Set(command) => command.run(session).await,
            Self::Get(command) => command.run(session).await,
            Self::List(command) => command.run(Kind::Var, session).await,
            Self::Delete(command) => command.run(Kind::Var, session).await,
        }
    }
}
