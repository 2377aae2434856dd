use clap::Subcommand;
use wire::{Page, Project};

use crate::commands::named::used_by;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Fields, Table};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List projects
    List,
    /// Show a project, with the vars and secrets that its workflows use but that are not set
    Show {
        /// Name or id of the project
        project: String,
    },
}

impl Command {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        match self {
            Self::List => {
                let page = Page::all(session.client()?.projects().await?);
                session.show(&page, table)?;
                Ok(Exit::Succeeded)
            }
            Self::Show { project } => {
                let project = session.client()?.project(&project).await?;
                session.show(&project, show)?;
                Ok(Exit::Succeeded)
            }
        }
    }
}

fn table(page: &Page<Project>) -> String {
    let mut table = Table::new(&["PROJECT", "SOURCE", "VARS", "SECRETS", "ID"]);
    for project in &page.items {
        table.row([
            project.name.clone(),
            source(project).to_owned(),
            project.vars.to_string(),
            project.secrets.to_string(),
            project.id.to_string(),
        ]);
    }
    table.text()
}

fn show(project: &Project) -> String {
    let mut text = Fields::new()
        .add("project", &project.name)
        .add("id", project.id.to_string())
        .add("source", source(project))
        .add("vars", project.vars.to_string())
        .add("secrets", project.secrets.to_string())
        .text();
    let mut missing = Table::new(&["NOT SET", "USED BY"]);
    let vars = project.missing_vars.iter().map(|name| ("vars", name));
    let secrets = project.missing_secrets.iter().map(|name| ("secrets", name));
    for (kind, name) in vars.chain(secrets) {
        missing.row([format!("{kind}.{}", name.name), used_by(&name.used_by)]);
    }
    if !missing.is_empty() {
        text.push('\n');
        text.push_str(&missing.text());
    }
    text
}

const fn source(project: &Project) -> &'static str {
    if project.configured {
        "configured"
    } else {
        "no longer configured"
    }
}
