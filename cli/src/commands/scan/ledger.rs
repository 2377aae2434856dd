//! `everscan scan ledger`: the evaluations of a scan's schedule and expression, newest first.

use clap::Args;
use wire::{LedgerRecord, Page};

use super::why::ledger_record;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct Ledger {
    /// Workflow: its name, SOURCE/NAME, or id
    workflow: String,
    /// Name of the scan
    scan: String,
    /// How many records
    #[arg(long, env = "SERVICE_LIMIT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Go on where an earlier list ended
    #[arg(long, env = "SERVICE_CURSOR")]
    cursor: Option<String>,
}

impl Ledger {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let page = client.ledger(
            &self.workflow,
            &self.scan,
            self.limit,
            self.cursor.as_deref(),
        );
        let page = page.await?;
        session.show(&page, text)?;
        session.say_missing(&page.damaged);
        session.say_more(page.next_cursor.as_deref());
        if page.items.is_empty() {
            session
                .terminal
                .say("no evaluation of a schedule or expression is on record");
        }
        Ok(Exit::Succeeded)
    }
}

fn text(page: &Page<LedgerRecord>) -> String {
    page.items.iter().map(ledger_record).collect()
}
