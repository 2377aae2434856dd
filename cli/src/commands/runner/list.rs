//! `everscan runner list`.

use clap::Args;
use wire::{Page, Runner};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, time_or_dash};

#[derive(Debug, Args)]
pub(crate) struct List {}

impl List {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let page = Page {
            items: session.client()?.runners().await?,
            next_cursor: None,
            damaged: Vec::new(),
        };
        session.show(&page, table)?;
        Ok(Exit::Succeeded)
    }
}

fn table(page: &Page<Runner>) -> String {
    let mut table = Table::new(&["NAME", "RUNNING", "LABELS", "VERSION", "HEARD", "ID"]);
    for runner in &page.items {
        table.row([
            runner.name.clone(),
            format!("{} of {}", runner.running.len(), runner.capacity),
            runner.labels.join(","),
            runner.version.clone(),
            time_or_dash(runner.heard_at.as_ref()),
            runner.id.to_string(),
        ]);
    }
    table.text()
}
