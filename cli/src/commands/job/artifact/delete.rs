//! `everscan job artifact delete`.

use clap::Args;

use crate::commands::job::selected::SelectedJob;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    job: SelectedJob,
    /// Name or id of the artifact
    #[arg(long, short, env = "SERVICE_ARTIFACT", value_name = "NAME")]
    artifact: String,
}

impl Delete {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let id = self.job.id()?;
        let client = session.client()?;
        client.delete_artifact(id, &self.artifact).await?;
        session
            .terminal
            .say(&format!("artifact {} is deleted", self.artifact));
        Ok(Exit::Succeeded)
    }
}
