mod dispatch;
mod jobs;
mod ledger;
mod list;
mod next;
mod show;
mod target;
mod why;

pub(super) use why::range;

use clap::Subcommand;

use crate::error::Error;
use crate::exit::{self, Exit};
use crate::session::Session;
use crate::suspension::{ResumeFlags, SuspendFlags};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a job of a scan
    ///
    /// Prints the id of the new job. With --follow the log is printed instead, and the id goes to standard error. The
    /// same holds for --wait with --output json or yaml, which print the job as it ended.
    #[command(after_help = exit::CODES)]
    Dispatch(dispatch::Dispatch),
    /// List the jobs of a scan, newest first
    Jobs(jobs::Jobs),
    /// List the evaluations of a scan's schedule and expression, newest first
    ///
    /// Each shows what was read, the result, and the job that was made or the reason why no job was made.
    Ledger(ledger::Ledger),
    /// List scans with what starts them, their next slot and their newest job
    List(list::List),
    /// List the next slots of all schedules, or of those of a workflow or scan
    Next(next::Next),
    /// Let a scan start jobs again
    ///
    /// Its schedule catches up by `catch_up`, and its expression is evaluated once for the successes that it missed.
    Resume {
        /// Workflow: its name, SOURCE/NAME, or id
        workflow: String,
        /// Name of the scan
        scan: String,
        #[command(flatten)]
        flags: ResumeFlags,
    },
    /// Show a scan: what starts it, what is expected of it, and what its past suggests
    Show(show::Show),
    /// Keep a scan from starting jobs, until it is resumed
    ///
    /// Running jobs continue. Waiting jobs of its schedule and expression and waiting retries are cancelled, and dispatched jobs
    /// wait.
    Suspend {
        /// Workflow: its name, SOURCE/NAME, or id
        workflow: String,
        /// Name of the scan
        scan: String,
        #[command(flatten)]
        flags: SuspendFlags,
    },
    /// Explain why a scan ran or did not run
    ///
    /// Shows each evaluation of its schedule or expression: what was read, the result, and the job that was made or the
    /// reason why no job was made.
    Why(why::WhyScan),
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Dispatch(command) => command.run(session).await,
            Self::Jobs(command) => command.run(session).await,
            Self::Ledger(command) => command.run(session).await,
            Self::List(command) => command.run(session).await,
            Self::Next(command) => command.run(session).await,
            Self::Resume {
                workflow,
                scan,
                flags,
            } => flags.run(&workflow, Some(&scan), session).await,
            Self::Show(command) => command.run(session).await,
            Self::Suspend {
                workflow,
                scan,
                flags,
            } => flags.run(&workflow, Some(&scan), session).await,
            Self::Why(command) => command.run(session).await,
        }
    }
}
