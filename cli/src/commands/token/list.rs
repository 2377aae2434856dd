//! `everscan token list`.

use clap::Args;
use wire::{Page, Token};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, time, time_or_dash};

#[derive(Debug, Args)]
pub(crate) struct List {}

impl List {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let page = Page {
            items: session.client()?.tokens().await?,
            next_cursor: None,
            damaged: Vec::new(),
        };
        session.show(&page, table)?;
        Ok(Exit::Succeeded)
    }
}

fn table(page: &Page<Token>) -> String {
    let mut table = Table::new(&["NAME", "SCOPES", "CREATED", "EXPIRES", "ID"]);
    for token in &page.items {
        table.row([
            token.name.clone(),
            token.scopes.join(","),
            time(&token.created_at),
            time_or_dash(token.expires_at.as_ref()),
            token.id.to_string(),
        ]);
    }
    table.text()
}
