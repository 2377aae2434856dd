//! `everscan source`.

mod list;
mod show;
mod sync;

use clap::Subcommand;

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

pub(crate) use show::{stale, warnings};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List sources
    List(list::List),
    /// Show a source and what is wrong with it
    Show(show::Show),
    /// Look at the repository of a source now
    Sync(sync::Sync),
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::List(command) => command.run(session).await,
            Self::Show(command) => command.run(session).await,
            Self::Sync(command) => command.run(session).await,
        }
    }
}
