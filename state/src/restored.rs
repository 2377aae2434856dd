//! A state that comes from a backup. What went on when the backup was made does not go on here: runners have moved on
//! since, and must not report into the past. So whatever ran is over, and every runner registers again. It is done at
//! the first start, and again by the next one if a crash comes in between.

use model::decide::{Command, EndJob, EndSessions, Loss};
use model::{JobId, JobState, RunnerId};
use store::failpoint;

use crate::blocking::on_volume;
use crate::error::{Interrupted, OpenError, SubmitError};
use crate::state::State;

impl State {
    /// Does what a restored state begins with, and remembers that it is done.
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
            let loss = Loss::Restored;
            let end = EndJob { job, loss };
            self.settle(end).await?;
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

    /// One thing that cannot be ended does not keep the others.
    async fn settle<C: Command>(&self, command: C) -> Result<(), OpenError> {
        match self.submit(command).await {
            Ok(_) => Ok(()),
            Err(error @ SubmitError::Refused(_)) => {
                tracing::error!(%error, "something goes on that a restored state should have ended");
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
