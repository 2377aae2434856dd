//! `everscan runner delete`.

use clap::Args;
use uuid::Uuid;

use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Id of the runner
    runner: Uuid,
}

impl Delete {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        session.client()?.delete_runner(self.runner).await?;
        session
            .terminal
            .say(&format!("runner {} is forgotten", self.runner));
        Ok(Exit::Succeeded)
    }
}
