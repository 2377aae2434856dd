//! `everscan job artifact list`.

use clap::Args;
use wire::Page;

use crate::commands::job::selected::SelectedJob;
use crate::commands::job::show;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    job: SelectedJob,
}

impl List {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let id = self.job.id()?;
        let page = Page {
            items: session.client()?.artifacts(id).await?,
            next_cursor: None,
            damaged: Vec::new(),
        };
        session.show(&page, |page| {
            show::artifacts(&page.items).unwrap_or_default()
        })?;
        if page.items.is_empty() {
            session.terminal.say("the job has no artifacts");
        }
        Ok(Exit::Succeeded)
    }
}
