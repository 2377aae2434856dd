//! `everscan runner delete`.

use clap::Args;

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Name or id of the runner
    runner: String,
}

impl Delete {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        session.client()?.delete_runner(&self.runner).await?;
        session
            .terminal
            .say(&format!("runner {} is forgotten", self.runner));
        Ok(Exit::Succeeded)
    }
}
