//! Whose channel or rule a command means.

use clap::Args;
use client::Client;

use crate::commands::named::ProjectOption;
use crate::error::Error;

#[derive(Debug, Args)]
pub(crate) struct Owner {
    #[command(flatten)]
    project: ProjectOption,
    /// Of the instance, not of a project; for administrators
    #[arg(long, env = "SERVICE_INSTANCE")]
    instance: bool,
}

impl Owner {
    /// The project. None for the instance, also while the environment names a project.
    pub(crate) async fn choose(self, client: &Client) -> Result<Option<String>, Error> {
        if self.instance {
            return Ok(None);
        }
        self.project.choose(client).await.map(Some)
    }

    /// The option that means this owner.
    pub(crate) fn option(project: Option<&str>) -> String {
        project.map_or_else(
            || " --instance".to_owned(),
            |project| format!(" --project {project}"),
        )
    }
}
