//! `everscan scan next`: the next slots of schedules.

use clap::Args;
use wire::{Page, Slot};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, time};

#[derive(Debug, Args)]
pub(crate) struct Next {
    /// Only schedules of this workflow: its name, SOURCE/NAME, or id
    workflow: Option<String>,
    /// Only the schedule of this scan
    scan: Option<String>,
    /// How many slots
    #[arg(long, env = "SERVICE_LIMIT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
}

impl Next {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let page = client.schedule(self.workflow.as_deref(), self.scan.as_deref(), self.limit);
        let page = page.await?;
        session.show(&page, table)?;
        if page.items.is_empty() {
            session.report("no schedule has a next slot; suspended schedules have none");
        }
        Ok(Exit::Succeeded)
    }
}

fn table(page: &Page<Slot>) -> String {
    let mut table = Table::new(&["AT", "WORKFLOW", "SCAN", "SCHEDULE", "TIMEZONE"]);
    for slot in &page.items {
        table.row([
            time(&slot.at),
            format!("{}/{}", slot.workflow.source, slot.workflow.name),
            slot.scan.clone(),
            slot.schedule.clone(),
            slot.timezone.clone(),
        ]);
    }
    table.text()
}
