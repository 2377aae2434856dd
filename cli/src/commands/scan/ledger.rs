//! `everscan scan ledger`: the evaluations of a scan's schedule and expression, newest first.

use clap::Args;
use wire::{LedgerRecord, Page};

use super::why::ledger_record;
use crate::commands::PageFlags;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct Ledger {
    /// Workflow: its name, SOURCE/NAME, or id
    workflow: String,
    /// Name of the scan
    scan: String,
    #[command(flatten)]
    page: PageFlags,
}

impl Ledger {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let page = client.ledger(
            &self.workflow,
            &self.scan,
            self.page.limit,
            self.page.cursor.as_deref(),
        );
        let page = page.await?;
        session.show_page(&page, text)?;
        if page.items.is_empty() {
            session.report("no evaluation of a schedule or expression is on record");
        }
        Ok(Exit::Succeeded)
    }
}

fn text(page: &Page<LedgerRecord>) -> String {
    page.items.iter().map(ledger_record).collect()
}
