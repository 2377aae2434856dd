//! `everscan job logs`.

use clap::Args;

use super::selected::SelectedJob;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::{follow, wait};

#[derive(Debug, Args)]
pub(crate) struct Logs {
    #[command(flatten)]
    job: SelectedJob,
    /// Go on until the job is over, and end as the job ended
    #[arg(long, short, env = "SERVICE_FOLLOW")]
    follow: bool,
    /// Number of the first line, from 0
    #[arg(long, env = "SERVICE_FROM", default_value_t = 0, value_name = "NUMBER")]
    from: u64,
}

impl Logs {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let id = self.job.id()?;
        let client = session.client()?;
        if self.follow {
            let job = follow::follow(session, &client, id, self.from).await?;
            return Ok(wait::told(session, &job));
        }
        follow::read(session, &client, id, self.from).await?;
        Ok(Exit::Succeeded)
    }
}
