//! `everscan job cancel`.

use clap::Args;

use super::selected::SelectedJob;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    #[command(flatten)]
    job: SelectedJob,
}

impl Cancel {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let id = self.job.id()?;
        let job = session.client()?.cancel_job(id).await?;
        session.show(&job, |job| format!("{}\n", job.state.as_str()))?;
        Ok(Exit::Succeeded)
    }
}
