//! `everscan var list`.

use clap::Args;
use wire::Page;

use crate::error::Error;
use crate::exit::Exit;
use crate::project::ProjectOption;
use crate::session::Session;
use crate::table::names;

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    project: ProjectOption,
}

impl List {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let project = self.project.choose(&client).await?;
        let page = Page {
            items: client.vars(&project).await?,
            next_cursor: None,
        };
        session.show(&page, names)?;
        Ok(Exit::Succeeded)
    }
}
