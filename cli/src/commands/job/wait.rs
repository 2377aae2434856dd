//! `everscan job wait`.

use std::time::Duration;

use clap::Args;

use super::selected::SelectedJob;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::{duration, wait};

#[derive(Debug, Args)]
pub(crate) struct Wait {
    #[command(flatten)]
    job: SelectedJob,
    /// Wait no longer than this, as in 90s, 30m or 1h
    #[arg(long, env = "SERVICE_TIMEOUT", value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,
}

impl Wait {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let id = self.job.id()?;
        let client = session.client()?;
        let end = wait::end_of(session, &client, id);
        let job = wait::within(self.timeout, id, end).await?;
        session.show(&job, |job| format!("{}\n", job.state.as_str()))?;
        Ok(Exit::of_job(job.state))
    }
}
