//! `everscan workflow`.

mod list;
mod show;

use clap::Subcommand;

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List workflows
    List(list::List),
    /// Show a workflow and its scans
    Show(show::Show),
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::List(command) => command.run(session).await,
            Self::Show(command) => command.run(session).await,
        }
    }
}
