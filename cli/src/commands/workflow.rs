mod diff;
mod history;
mod prune;
mod show;

use clap::Subcommand;
use wire::{Page, Workflow};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::suspension::{ResumeFlags, SuspendFlags};
use crate::table::{Table, short_commit};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare the meaning of two files, of a workflow and a file, or of two revisions
    ///
    /// Comments, the order of keys, quoting and defaults that are written out make no difference. Two files are compared without
    /// a daemon. With a workflow and a file, what is active is compared with a file that is not pushed.
    Diff(diff::Diff),
    /// List the revisions of a workflow, newest first
    History(history::History),
    /// List workflows
    List {
        /// The active workflows, or all, also those that are retired
        #[arg(long, env = "SERVICE_STATE", default_value = "active", value_parser = ["active", "all"])]
        state: String,
    },
    /// Remove finished jobs above limits of number, age or size
    ///
    /// Applies the policy of the daemon's configuration. With --jobs, --age or --bytes, only these limits apply. The newest two
    /// successes of each scan and unfinished jobs are always kept.
    Prune(prune::Prune),
    /// Let a workflow start jobs again
    ///
    /// Schedules catch up by `catch_up`, and expressions are evaluated once for the successes that they missed.
    Resume {
        /// Workflow: its name, SOURCE/NAME, or id
        workflow: String,
        #[command(flatten)]
        flags: ResumeFlags,
    },
    /// Show a workflow and its scans
    Show(show::Show),
    /// Keep a workflow from starting jobs, until it is resumed
    ///
    /// Running jobs continue. Waiting jobs of schedules and expressions and waiting retries are cancelled, and dispatched jobs
    /// wait.
    Suspend {
        /// Workflow: its name, SOURCE/NAME, or id
        workflow: String,
        #[command(flatten)]
        flags: SuspendFlags,
    },
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::Diff(command) => command.run(session).await,
            Self::History(command) => command.run(session).await,
            Self::List { state } => {
                let page = Page::all(session.client()?.workflows(&state).await?);
                session.show(&page, table)?;
                Ok(Exit::Succeeded)
            }
            Self::Prune(command) => command.run(session).await,
            Self::Resume { workflow, flags } => flags.run(&workflow, None, session).await,
            Self::Show(command) => command.run(session).await,
            Self::Suspend { workflow, flags } => flags.run(&workflow, None, session).await,
        }
    }
}

fn table(page: &Page<Workflow>) -> String {
    let mut table = Table::new(&["WORKFLOW", "STATE", "REVISION", "COMMIT", "SCANS", "FILE"]);
    for workflow in &page.items {
        let file = match workflow.stale {
            Some(_) => "invalid",
            None => "ok",
        };
        table.row([
            format!("{}/{}", workflow.source, workflow.name),
            match workflow.suspended {
                Some(_) => format!("{}, suspended", workflow.state),
                None => workflow.state.clone(),
            },
            workflow.revision.number.to_string(),
            short_commit(&workflow.revision.commit),
            match workflow.suspended_scans.len() {
                0 => workflow.scans.len().to_string(),
                suspended => format!("{}, {suspended} suspended", workflow.scans.len()),
            },
            file.to_owned(),
        ]);
    }
    table.text()
}
