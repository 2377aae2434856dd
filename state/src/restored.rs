//! The first start of a restored backup, and the credentials that a restore ends. Jobs that ran when the backup was
//! taken have continued since, and their runners must not report to the restored state. So these jobs end, and every
//! runner registers again. Messages that waited may have been sent since: they are sent again, marked as repeated. After a crash, the next start repeats these steps.

use model::decide::{
    Command, EndJob, EndOfUser, EndRegistrations, EndSessions, EndToken, Loss, NoteRestored,
    RevokeBlobLink, SignOut,
};
use model::restored::{Credential, Ending, is_left, lost_by_owner};
use model::{ChannelId, JobId, JobState, PlainToken, RunnerId};
use store::failpoint;
use uuid::Uuid;

use crate::audit::AuditEntry;
use crate::blocking::on_volume;
use crate::error::{Interrupted, OpenError, PayloadError, SubmitError};
use crate::state::State;

impl State {
    /// Ends running jobs, sessions of runners and registration tokens, marks what waits to be sent, and then removes the mark of the restored state.
    pub(crate) async fn settle_restored(&self) -> Result<(), OpenError> {
        let (jobs, runners, channels): (Vec<JobId>, Vec<RunnerId>, Vec<ChannelId>) =
            self.read(|world| {
                let running = world
                    .jobs()
                    .filter(|job| matches!(job.state, JobState::Running { .. }));
                (
                    running.map(|job| job.id).collect(),
                    world.runners().map(|runner| runner.id).collect(),
                    world.channels().map(|channel| channel.id).collect(),
                )
            });
        tracing::warn!(
            jobs = jobs.len(),
            runners = runners.len(),
            "this state was restored from a backup: jobs that ran are failed, and runners have to register again"
        );
        if !self.has_lost_users() {
            self.make_first_user().await.map_err(OpenError::Restored)?;
        }
        for job in jobs {
            self.settle(EndJob::new(job, Loss::Restored)).await?;
        }
        for runner in runners {
            self.settle(EndSessions { runner }).await?;
        }
        while self
            .submit(EndRegistrations)
            .await
            .map_err(OpenError::Restored)?
        {}
        for channel in channels {
            self.settle(NoteRestored { channel }).await?;
        }
        failpoint::reach("copy-settled");
        on_volume(self.volume(), |volume| {
            volume.forget_restored().map_err(OpenError::Mark)
        })
        .await
    }

    /// Ends credentials that the restore brought back, with lines in the audit log for a later restore. If no admin
    /// remains, `secret` becomes a first admin token.
    pub async fn end_credentials(
        &self,
        endings: &[Ending],
        request: Uuid,
        secret: &PlainToken,
    ) -> Result<(), PayloadError> {
        let audited = self.audited(AuditEntry::of_program("restore", request));
        for ending in endings {
            audited.end_credential(ending.credential).await?;
        }
        if !endings.is_empty() {
            for credential in self.read(lost_by_owner) {
                audited.end_credential(credential).await?;
            }
            audited.store_first_token(secret).await?;
        }
        Ok(())
    }

    async fn end_credential(&self, credential: Credential) -> Result<(), PayloadError> {
        if !self.read(|world| is_left(world, credential)) {
            return Ok(());
        }
        match credential {
            Credential::Token(token) => {
                self.end_secret(token, EndToken { token }).await?;
            }
            Credential::Session(user, session) => {
                self.submit(SignOut { user, session }).await?;
            }
            Credential::OfUser(user, part) => {
                let end = EndOfUser { user, part };
                while self.submit(end.clone()).await?.is_unfinished {}
            }
            Credential::Link(link) => self.submit(RevokeBlobLink { link }).await?,
        }
        Ok(())
    }

    /// Runs a command of the restore. A refusal does not stop the other commands.
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
