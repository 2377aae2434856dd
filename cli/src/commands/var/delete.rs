//! `everscan var delete`.

use clap::Args;

use crate::error::Error;
use crate::exit::Exit;
use crate::project::ProjectOption;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Name of the var
    name: String,
    #[command(flatten)]
    project: ProjectOption,
}

impl Delete {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let project = self.project.choose(&client).await?;
        client.delete_var(&project, &self.name).await?;
        session
            .terminal
            .say(&format!("var {} is deleted", self.name));
        Ok(Exit::Succeeded)
    }
}
