//! The first start of a restored backup. Jobs that ran when the backup was taken have moved on since, and their runners
//! must not report into the past. So those jobs end, and every runner registers again. After a crash in between, the next
//! start does it again.

use model::decide::{Command, EndJob, EndSessions, Loss};
use model::{JobId, JobState, RunnerId};
use store::failpoint;

use crate::blocking::on_volume;
use crate::error::{Interrupted, OpenError, SubmitError};
use crate::state::State;

impl State {
    /// Ends running jobs and sessions of runners, and notes that this is done.
    pub(crate) async fn settle_restored(&self) -> Result<(), OpenError> {
        let (jobs, runners): (Vec<JobId>, Vec<RunnerId>) = self.read(|world| {
            let running = world
                .jobs()
                .filter(|job| matches!(job.state, JobState::Running { .. }));
            (
                running.map(|job| job.id).collect(),
                world.runners().map(|runner| runner.id).collect(),
            )
        });
        tracing::warn!(
            jobs = jobs.len(),
            runners = runners.len(),
            "this state was restored from a backup: jobs that ran are failed, and runners have to register again"
        );
        for job in jobs {
            self.settle(EndJob::new(job, Loss::Restored)).await?;
        }
        for runner in runners {
            self.settle(EndSessions { runner }).await?;
        }
        failpoint::reach("copy-settled");
        on_volume(self.volume(), |volume| {
            volume.forget_restored().map_err(OpenError::Mark)
        })
        .await
    }

    /// One that cannot be ended does not stop the others.
    async fn settle<C: Command>(&self, command: C) -> Result<(), OpenError> {
        match self.submit(command).await {
            Ok(_) => Ok(()),
            Err(error @ SubmitError::Refused(_)) => {
                tracing::error!(%error, "a job or a session of the restored state could not be ended");
                Ok(())
            }
            Err(error) => Err(OpenError::Restored(error)),
        }
    }
}

impl From<Interrupted> for OpenError {
    fn from(Interrupted: Interrupted) -> Self {
        Self::Restored(SubmitError::OutcomeUnknown)
    }
}
