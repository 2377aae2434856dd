//! The common parts of `everscan var` and `everscan secret`. Both are named values of a project.

use clap::Args;
use client::{Client, Expected};
use wire::{KeyState, Named, Page, ScanName, Secret};

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::table::{Table, time};

/// The environment variable with the project of a step.
const PROJECT_ID: &str = "SERVICE_PROJECT_ID";

/// Scans that a table lists for a var or secret.
const SHOWN_SCANS: usize = 3;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Var,
    Secret,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ProjectOption {
    /// Project, by name or id; may be left out in a step, and while the daemon has only one
    #[arg(long, env = "SERVICE_PROJECT")]
    project: Option<String>,
}

impl ProjectOption {
    /// The given project, or the project of the step.
    pub(crate) fn named(self) -> Option<String> {
        let of_step = || std::env::var(PROJECT_ID).ok();
        let named = self.project.or_else(of_step);
        named.filter(|named| !named.is_empty())
    }

    /// The given project, or the project of the step, or the only project.
    pub(crate) async fn choose(self, client: &Client) -> Result<String, Error> {
        if let Some(named) = self.named() {
            return Ok(named);
        }
        let projects = client.projects().await?.into_iter();
        let names: Vec<String> = projects
            .filter(|project| project.configured)
            .map(|project| project.name)
            .collect();
        match <[String; 1]>::try_from(names) {
            Ok([only]) => Ok(only),
            Err(names) if names.is_empty() => Err(Error::Usage {
                what: "the daemon has no project".to_owned(),
                hint: "a project comes with a source in the daemon's configuration",
            }),
            Err(names) => Err(Error::Usage {
                what: format!("the daemon has several projects: {}", names.join(", ")),
                hint: "name one with --project",
            }),
        }
    }
}

/// The version of the value that an edit expects.
#[derive(Debug, Args)]
pub(crate) struct VersionOption {
    /// Edit only if this is the current version, or 0 if the value must not exist yet
    #[arg(long, env = "SERVICE_IF_VERSION", value_name = "VERSION")]
    if_version: Option<u64>,
}

impl VersionOption {
    pub(crate) const fn expected(&self) -> Expected {
        match self.if_version {
            None => Expected::Anything,
            // Versions begin with 1.
            Some(0) => Expected::Nothing,
            Some(version) => Expected::Version(version),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    project: ProjectOption,
}

impl List {
    pub(crate) async fn run(self, kind: Kind, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let project = self.project.choose(&client).await?;
        match kind {
            Kind::Var => session.show(&Page::all(client.vars(&project).await?), vars)?,
            Kind::Secret => session.show(&Page::all(client.secrets(&project).await?), secrets)?,
        }
        Ok(Exit::Succeeded)
    }
}

fn vars(page: &Page<Named>) -> String {
    let mut table = Table::new(&["NAME", "VERSION", "UPDATED", "BY", "USED BY"]);
    for named in &page.items {
        table.row([
            named.name.clone(),
            named.version.to_string(),
            time(&named.updated_at),
            named.updated_by.clone(),
            used_by(&named.used_by),
        ]);
    }
    table.text()
}

fn secrets(page: &Page<Secret>) -> String {
    let mut table = Table::new(&["NAME", "VERSION", "UPDATED", "BY", "KEY", "USED BY"]);
    for secret in &page.items {
        let named = &secret.named;
        table.row([
            named.name.clone(),
            named.version.to_string(),
            time(&named.updated_at),
            named.updated_by.clone(),
            key(secret),
            used_by(&named.used_by),
        ]);
    }
    table.text()
}

/// The key that seals a secret, with a note if it is old or missing.
fn key(secret: &Secret) -> String {
    match secret.key_state {
        KeyState::Current | KeyState::Other => secret.key.clone(),
        KeyState::Old => format!("{} (old)", secret.key),
        KeyState::Missing => format!("{} (missing)", secret.key),
    }
}

/// The scans that use a name. A long list is cut; JSON has all scans.
pub(crate) fn used_by(scans: &[ScanName]) -> String {
    let shown: Vec<String> = scans
        .iter()
        .take(SHOWN_SCANS)
        .map(|by| format!("{} {}", by.workflow, by.scan))
        .collect();
    match (shown.is_empty(), scans.len() - shown.len()) {
        (true, _) => "-".to_owned(),
        (false, 0) => shown.join(", "),
        (false, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Its name
    name: String,
    #[command(flatten)]
    version: VersionOption,
    #[command(flatten)]
    project: ProjectOption,
}

impl Delete {
    pub(crate) async fn run(self, kind: Kind, session: &mut Session<'_>) -> Result<Exit, Error> {
        let Self {
            name,
            version,
            project,
        } = self;
        let expected = version.expected();
        let client = session.client()?;
        let project = project.choose(&client).await?;
        let word = match kind {
            Kind::Var => {
                client.delete_var(&project, &name, expected).await?;
                "var"
            }
            Kind::Secret => {
                client.delete_secret(&project, &name, expected).await?;
                "secret"
            }
        };
        session.report(&format!("{word} {name} is deleted"));
        Ok(Exit::Succeeded)
    }
}
