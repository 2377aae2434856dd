//! `everscan job rerun`: runs a finished job again.

use clap::Args;
use uuid::Uuid;
use wire::RerunJob;

use crate::error::Error;
use crate::exit::Exit;
use crate::selected_job::SelectedJob;
use crate::session::Session;
use crate::stay::Stay;

#[derive(Debug, Args)]
pub(crate) struct Rerun {
    #[command(flatten)]
    job: SelectedJob,
    /// Run the active revision of the workflow, which checks the inputs
    #[arg(long, env = "SERVICE_CURRENT")]
    current: bool,
    #[command(flatten)]
    stay: Stay,
}

impl Rerun {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<Exit, Error> {
        let named = self.job.name()?.to_string();
        let client = session.client()?;
        let request = RerunJob {
            current: self.current,
        };
        let key = Uuid::new_v4().to_string();
        let job = client.rerun_job(&named, request, &key).await?;
        self.stay.after(job, &client, session).await
    }
}
