//! `everscan source list`.

use clap::Args;
use wire::{Page, Source};

use super::show::standing;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, short_commit, time_or_dash};

#[derive(Debug, Args)]
pub(crate) struct List {}

impl List {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let page = Page {
            items: session.client()?.sources().await?,
            next_cursor: None,
            damaged: Vec::new(),
        };
        session.show(&page, table)?;
        Ok(Exit::Succeeded)
    }
}

fn table(page: &Page<Source>) -> String {
    let mut table = Table::new(&["NAME", "STATUS", "COMMIT", "CHECKED", "WORKFLOWS", "URL"]);
    for source in &page.items {
        table.row([
            source.name.clone(),
            standing(source),
            source
                .tip
                .as_ref()
                .map_or_else(|| "-".to_owned(), |tip| short_commit(&tip.commit)),
            time_or_dash(source.checked_at.as_ref()),
            source.active_workflows.to_string(),
            source.url.clone(),
        ]);
    }
    table.text()
}
