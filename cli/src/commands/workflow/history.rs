//! `everscan workflow history`: the revisions of a workflow.

use clap::Args;
use wire::{Page, Revision};

use crate::commands::PageFlags;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, short_commit, time};

#[derive(Debug, Args)]
pub(crate) struct History {
    /// Workflow: its name, SOURCE/NAME, or id
    workflow: String,
    #[command(flatten)]
    page: PageFlags,
}

impl History {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let page = client.revisions(&self.workflow, self.page.limit, self.page.cursor.as_deref());
        let page = page.await?;
        session.show_page(&page, table)?;
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
