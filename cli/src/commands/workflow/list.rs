//! `everscan workflow list`.

use clap::Args;
use wire::{Page, Workflow};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, short_commit};

#[derive(Debug, Args)]
pub(crate) struct List {}

impl List {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let page = Page {
            items: session.client()?.workflows().await?,
            next_cursor: None,
            damaged: Vec::new(),
        };
        session.show(&page, table)?;
        Ok(Exit::Succeeded)
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
