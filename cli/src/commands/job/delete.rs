//! `everscan job delete`.

use clap::Args;
use uuid::Uuid;

use crate::error::Error;
use crate::exit::Exit;
use crate::id;
use crate::session::Session;

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Ids of the jobs
    #[arg(required = true, value_name = "JOB", value_parser = id::job)]
    jobs: Vec<Uuid>,
}

impl Delete {
    /// Stops at the first job that cannot be deleted; what was deleted before has been told.
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let client = session.client()?;
        for job in self.jobs {
            client.delete_job(job).await?;
            session.terminal.say(&format!("job {job} is deleted"));
        }
        Ok(Exit::Succeeded)
    }
}
