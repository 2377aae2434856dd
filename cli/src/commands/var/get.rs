//! `everscan var get`.

use clap::Args;

use crate::error::Error;
use crate::exit::Exit;
use crate::project::ProjectOption;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct Get {
    /// Name of the var
    name: String,
    #[command(flatten)]
    project: ProjectOption,
}

impl Get {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        let project = self.project.choose(&client).await?;
        let var = client.var(&project, &self.name).await?;
        session.show(&var, |var| format!("{}\n", var.value))?;
        Ok(Exit::Succeeded)
    }
}
