//! `everscan job`.

mod artifact;
mod cancel;
mod delete;
mod list;
mod logs;
pub(crate) mod selected;
mod show;
mod wait;

use clap::Subcommand;

use crate::error::Error;
use crate::exit::{self, Exit};
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Artifacts: the files that jobs leave
    #[command(subcommand)]
    Artifact(artifact::Command),
    /// End a job
    ///
    /// Prints the state of the job afterwards.
    Cancel(cancel::Cancel),
    /// Delete jobs that are over, with their logs and artifacts
    ///
    /// What expressions know of the scan's newest successes stays, and so do its counters.
    Delete(delete::Delete),
    /// List jobs, newest first
    List(list::List),
    /// Print the log of a job
    #[command(after_help = exit::CODES)]
    Logs(logs::Logs),
    /// Show a job with its steps and artifacts
    Show(show::Show),
    /// Wait until a job is over, and end as the job ended
    ///
    /// Prints the state in which the job ended.
    #[command(after_help = exit::CODES)]
    Wait(wait::Wait),
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Artifact(command) => command.run(session).await,
            Self::Cancel(command) => command.run(session).await,
            Self::Delete(command) => command.run(session).await,
            Self::List(command) => command.run(session).await,
            Self::Logs(command) => command.run(session).await,
            Self::Show(command) => command.run(session).await,
            Self::Wait(command) => command.run(session).await,
        }
    }
}
