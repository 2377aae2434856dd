//! `everscan job artifact`.

mod delete;
mod download;
mod list;
mod unpack;

use clap::Subcommand;

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Delete an artifact of a job that is over
    ///
    /// The job goes on telling its size and digests.
    Delete(delete::Delete),
    /// Fetch an artifact as a zip file
    ///
    /// The file appears once all of it has arrived undamaged; an older one of that name is replaced. What goes to
    /// standard output is judged at its end, by the exit code.
    Download(download::Download),
    /// List the artifacts of a job
    List(list::List),
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Delete(command) => command.run(session).await,
            Self::Download(command) => command.run(session).await,
            Self::List(command) => command.run(session).await,
        }
    }
}
