//! `everscan project`.

use clap::Subcommand;
use wire::{Page, Project};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::Table;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List projects
    List,
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::List => {
                let page = Page::all(session.client()?.projects().await?);
                session.show(&page, table)?;
                Ok(Exit::Succeeded)
            }
        }
    }
}

fn table(page: &Page<Project>) -> String {
    let mut table = Table::new(&["PROJECT", "SOURCE", "VARS", "SECRETS", "ID"]);
    for project in &page.items {
        let source = match project.configured {
            true => "configured",
            false => "no longer configured",
        };
        table.row([
            project.name.clone(),
            source.to_owned(),
            project.vars.to_string(),
            project.secrets.to_string(),
            project.id.to_string(),
        ]);
    }
    table.text()
}
