//! What runners ask for: a session, and work.

use std::collections::BTreeSet;

use futures_util::{StreamExt, TryStreamExt, stream};
use model::decide::{Loss, NewSession, RegisterRunner, RenewSession};
use model::limits::{OFFER, WORKER_SESSION};
use model::{Job, JobId, RunnerId, Timestamp, TokenHash};
use state::SubmitError;
use tokio::time::Instant;

use crate::board::{Message, Poll};
use crate::error::RunnerError;
use crate::handle::Handle;
use crate::limits::{AT_ONCE, HOLDING, POLL};
use crate::presence::{Instance, Taken};

/// The holder of a runner's session token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunnerSession {
    runner: RunnerId,
    token: TokenHash,
    instance: Instance,
}

impl RunnerSession {
    pub const fn runner(self) -> RunnerId {
        self.runner
    }

    /// The same session as that process speaks in it.
    #[must_use]
    pub const fn spoken_by(self, instance: Instance) -> Self {
        Self { instance, ..self }
    }
}

impl Handle {
    /// Registers a runner. One of the same name that is replaced loses what it runs.
    pub async fn register_runner(
        &self,
        register: RegisterRunner,
    ) -> Result<NewSession, SubmitError> {
        let new = self.state().submit(register).await?;
        if let Some(replaced) = new.replaced {
            self.lose(replaced, |_, _| true).await?;
        }
        Ok(new.session)
    }

    /// The runner's session with that token.
    pub fn runner(&self, token: TokenHash) -> Option<RunnerSession> {
        self.state().read(|world| {
            let now = self.time(world);
            let runner = world
                .runners()
                .find(|runner| runner.is_held_by(token, now))?
                .id;
            let instance = Instance::default();
            Some(RunnerSession {
                runner,
                token,
                instance,
            })
        })
    }

    /// A new session token, when the one of this session is old enough or was to be replaced already and the answer
    /// with the new one was lost.
    pub async fn renew_session(
        &self,
        session: RunnerSession,
    ) -> Result<Option<NewSession>, SubmitError> {
        let RunnerSession { runner, token, .. } = session;
        // Nearly always there is nothing to decide, and a poll must not wait in the committer's queue to learn that.
        let may_be_due = self.state().read(|world| {
            world
                .runner(runner)
                .is_some_and(|runner| runner.is_renewal_due(token, self.time(world)))
        });
        if may_be_due {
            self.state().submit(RenewSession { runner, token }).await
        } else {
            Ok(None)
        }
    }

    /// A runner's program has started: it executes nothing and has forgotten what it was offered.
    pub async fn runner_starts(&self, session: RunnerSession) -> Result<(), RunnerError> {
        self.admit(session, |_| true)
            .map_err(|Taken| RunnerError::InUse)?;
        Ok(self.runner_is_empty(session.runner).await?)
    }

    /// A runner's program ends and executes nothing any more. When another process is the runner that says nothing.
    pub async fn runner_stops(&self, session: RunnerSession) -> Result<(), SubmitError> {
        if self.admit(session, |_| true) == Err(Taken) {
            return Ok(());
        }
        self.presence().release(session.runner);
        self.runner_is_empty(session.runner).await
    }

    /// Takes the process that speaks for the runner, unless another one is. `loses` tells which jobs end with that.
    fn admit(&self, session: RunnerSession, loses: impl Fn(&Job) -> bool) -> Result<(), Taken> {
        let RunnerSession {
            runner, instance, ..
        } = session;
        let loses_jobs = self
            .state()
            .read(|world| world.running_on(runner).any(|job| loses(job)));
        self.presence()
            .admit(runner, instance, loses_jobs, Instant::now())
    }

    async fn runner_is_empty(&self, runner: RunnerId) -> Result<(), SubmitError> {
        self.heard(runner);
        self.board().forget(runner);
        self.wake_board();
        self.lose(runner, |_, _| true).await
    }

    /// A runner asks for work; the answer comes when there is something to say, or after a while with nothing. A newer
    /// poll of the same process ends this one with nothing; that of another process replaces it.
    pub async fn poll(
        &self,
        session: RunnerSession,
        capacity: u32,
        holding: Vec<JobId>,
    ) -> Result<Vec<Message>, RunnerError> {
        let runner = session.runner;
        let holding: BTreeSet<JobId> = holding.into_iter().take(HOLDING).collect();
        self.admit(session, |job| !holding.contains(&job.id))
            .map_err(|Taken| RunnerError::PollReplaced)?;
        self.heard(runner);
        // Jobs it should run and does not name are lost. One claimed a moment ago may have been claimed while this
        // poll was on its way.
        self.lose(runner, |job, now| {
            let run = job.state.run();
            !holding.contains(&job.id)
                && run.is_some_and(|run| run.expires_at - now <= WORKER_SESSION - OFFER)
        })
        .await?;
        let answer = self.board().wait(Poll {
            runner,
            capacity,
            holding,
        });
        self.wake_board();
        let messages = tokio::time::timeout(POLL, answer).await;
        if self.presence().is_another(runner, session.instance) {
            return Err(RunnerError::PollReplaced);
        }
        self.heard(runner);
        Ok(messages.ok().and_then(Result::ok).unwrap_or_default())
    }

    /// Ends as lost what a runner should be running. `lost` is told a job and the time that its ends are compared with.
    pub(crate) async fn lose(
        &self,
        runner: RunnerId,
        lost: impl Fn(&Job, Timestamp) -> bool,
    ) -> Result<(), SubmitError> {
        let jobs: Vec<JobId> = self.state().read(|world| {
            let now = self.time(world);
            world
                .running_on(runner)
                .filter(|job| lost(job, now))
                .map(|job| job.id)
                .collect()
        });
        // Together, so that they share their commits.
        stream::iter(jobs)
            .map(|job| self.end(job, Loss::RunnerLost))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }
}
