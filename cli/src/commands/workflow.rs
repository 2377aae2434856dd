//! `everscan workflow`.

mod diff;
mod prune;
mod show;

use clap::Subcommand;
use wire::{Page, Workflow};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, short_commit};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Tell what differs between two workflow files, without a daemon
    ///
    /// Comments, the order of keys, quoting and defaults that are written out make no difference.
    Diff(diff::Diff),
    /// List workflows
    List,
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
            Self::List => {
                let page = Page::all(session.client()?.workflows().await?);
                session.show(&page, table)?;
                Ok(Exit::Succeeded)
            }
            Self::Prune(command) => command.run(session).await,
            Self::Show(command) => command.run(session).await,
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
            workflow.state.clone(),
            workflow.revision.number.to_string(),
            short_commit(&workflow.revision.commit),
            workflow.scans.len().to_string(),
            file.to_owned(),
        ]);
    }
    table.text()
}
