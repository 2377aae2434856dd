//! `everscan workflow history`: the revisions of a workflow.

use clap::Args;
use wire::{Page, Revision};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, short_commit, time};

#[derive(Debug, Args)]
pub(crate) struct History {
    /// Workflow: its name, SOURCE/NAME, or id
    workflow: String,
    /// How many revisions
    #[arg(long, env = "SERVICE_LIMIT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Go on where an earlier list ended
    #[arg(long, env = "SERVICE_CURSOR")]
    cursor: Option<String>,
}

impl History {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let page = client.revisions(&self.workflow, self.limit, self.cursor.as_deref());
        let page = page.await?;
        session.show(&page, table)?;
        session.say_more(page.next_cursor.as_deref());
        Ok(Exit::Succeeded)
    }
}

fn table(page: &Page<Revision>) -> String {
    let mut table = Table::new(&["REVISION", "COMMIT", "ACTIVE SINCE", "ID"]);
    for revision in &page.items {
        table.row([
            revision.number.to_string(),
            short_commit(&revision.commit),
            revision
                .activated_at
                .as_ref()
                .map_or_else(|| "cannot be read".to_owned(), time),
            revision.id.to_string(),
        ]);
    }
    table.text()
}
