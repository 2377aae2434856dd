//! `everscan workflow`.

mod diff;
mod list;
mod prune;
mod show;

use clap::Subcommand;

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Tell what differs between two workflow files, without a daemon
    ///
    /// Comments, the order of keys, quoting and defaults that are written out make no difference.
    Diff(diff::Diff),
    /// List workflows
    List(list::List),
    /// Remove finished jobs that are too many, too old or too large
    ///
    /// Applies the policy of the daemon's configuration; with --jobs, --age or --bytes those limits instead, and no
    /// others. The newest two successes of each scan and jobs that are not over always stay.
    Prune(prune::Prune),
    /// Show a workflow and its scans
    Show(show::Show),
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Diff(command) => command.run(session),
            Self::List(command) => command.run(session).await,
            Self::Prune(command) => command.run(session).await,
            Self::Show(command) => command.run(session).await,
        }
    }
}
