//! Which project a command is about.

use clap::Args;
use client::Client;

use crate::error::Error;

/// What a step's environment calls its project.
const PROJECT_ID: &str = "SERVICE_PROJECT_ID";

#[derive(Debug, Args)]
pub(crate) struct ProjectOption {
    /// Project, by name or id; may be left out in a step, and while the daemon has only one
    #[arg(long, env = "SERVICE_PROJECT")]
    project: Option<String>,
}

impl ProjectOption {
    /// The project that was named, or the one a step belongs to, or the only one there is.
    pub(crate) async fn choose(self, client: &Client) -> Result<String, Error> {
        let of_step = || std::env::var(PROJECT_ID).ok();
        let named = self.project.or_else(of_step);
        if let Some(named) = named.filter(|named| !named.is_empty()) {
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
