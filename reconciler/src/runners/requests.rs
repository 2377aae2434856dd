//! Requests of runners: registration, sessions, and work.

use chrono::TimeDelta;
use model::decide::{NewRunner, NewSession, NoteProgram, RegisterRunner, RenewSession};
use model::limits::{OFFER, WORKER_SESSION};
use model::{Job, JobId, RunnerId, TokenHash};
use state::SubmitError;
use tokio::time::Instant;

use super::Runners;
use super::board::{Arrival, Message, Poll, Wait};
use super::presence::{Instance, Taken};
use crate::error::RunnerError;
use crate::limits::{HOLDING, POLL};

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

    /// The same session, for this process of the runner.
    #[must_use]
    pub const fn with_instance(self, instance: Instance) -> Self {
        Self { instance, ..self }
    }
}

impl Runners {
    /// Registers a runner. If it replaces another runner, the other runner's jobs are lost.
    pub async fn register(&self, register: RegisterRunner) -> Result<NewRunner, SubmitError> {
        let new = self.state.submit(register).await?;
        if let Some(replaced) = new.replaced {
            self.removed(&self.state, replaced).await?;
        }
        Ok(new)
    }

    /// The session of the runner with this token.
    pub fn session(&self, token: TokenHash) -> Option<RunnerSession> {
        self.state.read(|world| {
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

    /// A new session token, if the present token is old enough, or if the response with its successor was lost.
    pub async fn renew(&self, session: RunnerSession) -> Result<Option<NewSession>, SubmitError> {
        let RunnerSession { runner, token, .. } = session;
        // Usually no renewal is due, and a poll should not wait in the committer's queue to find out.
        let may_be_due = self.state.read(|world| {
            world
                .runner(runner)
                .is_some_and(|runner| runner.is_renewal_due(token, self.time(world)))
        });
        if may_be_due {
            self.state.submit(RenewSession { runner, token }).await
        } else {
            Ok(None)
        }
    }

    /// Handles the start of a runner's process, which runs no job and holds no offer. The capabilities of its program
    /// are recorded before it may be offered a job.
    pub async fn starts(
        &self,
        session: RunnerSession,
        version: String,
        capabilities: Vec<String>,
    ) -> Result<(), RunnerError> {
        self.admit(session, |_| true)
            .map_err(|Taken| RunnerError::InUse)?;
        let note = NoteProgram {
            runner: session.runner,
            version,
            capabilities,
        };
        self.state.submit(note).await?;
        self.heard(session.runner);
        Ok(self.release_all(session.runner).await?)
    }

    /// Handles the end of a runner's process, which runs no job any more. If another process is the runner, this has no
    /// effect.
    pub async fn stops(&self, session: RunnerSession) -> Result<(), SubmitError> {
        if self.admit(session, |_| true) == Err(Taken) {
            return Ok(());
        }
        self.heard(session.runner);
        self.presence().release(session.runner);
        self.release_all(session.runner).await
    }

    /// Makes this process the runner, unless another process is. `loses` selects the jobs that would be lost.
    fn admit(&self, session: RunnerSession, loses: impl Fn(&Job) -> bool) -> Result<(), Taken> {
        let RunnerSession {
            runner, instance, ..
        } = session;
        let loses_jobs = self
            .state
            .read(|world| world.running_on(runner).any(|job| loses(job)));
        self.presence()
            .admit(runner, instance, loses_jobs, Instant::now())
    }

    /// Withdraws the offers of a runner that holds no job, and ends its running jobs as lost.
    async fn release_all(&self, runner: RunnerId) -> Result<(), SubmitError> {
        self.board().forget(runner);
        self.wake_board();
        self.lose(&self.state, runner, |_, _| true).await
    }

    /// Handles a runner's request for work. It returns when there is a message, or after a while without a message. A
    /// newer poll of the same process ends this poll without a message, even if it arrived earlier with a higher
    /// `number`. A poll of another process replaces this poll.
    pub async fn poll(
        &self,
        session: RunnerSession,
        number: Option<u64>,
        capacity: u32,
        holding: Vec<JobId>,
    ) -> Result<Vec<Message>, RunnerError> {
        let RunnerSession {
            runner, instance, ..
        } = session;
        let poll = Poll {
            runner,
            instance,
            number,
            capacity,
            holding: holding.into_iter().take(HOLDING).collect(),
        };
        self.admit(session, |job| !poll.holding.contains(&job.id))
            .map_err(|Taken| RunnerError::PollReplaced)?;
        self.heard(runner);
        if self.board().is_overtaken(&poll) {
            return Ok(Vec::new());
        }
        // A running job that the poll does not list is lost, unless it was claimed while the poll was in transit.
        Box::pin(self.lose(&self.state, runner, |job, now| {
            let run = job.state.run();
            !poll.holding.contains(&job.id)
                && run.is_some_and(|run| !is_fresh(run.expires_at - now))
        }))
        .await?;
        let Wait { arrival, answer } = self.board().wait(poll);
        let on_board = OnBoard {
            runners: self,
            runner,
            arrival,
        };
        self.wake_board();
        let messages = tokio::time::timeout(POLL, answer).await;
        drop(on_board);
        if self.presence().is_another(runner, instance) {
            return Err(RunnerError::PollReplaced);
        }
        // If the runner has said goodbye, the end of its poll does not count as contact.
        if !self.presence().has_left(runner) {
            self.heard(runner);
        }
        Ok(messages.ok().and_then(Result::ok).unwrap_or_default())
    }
}

/// True if a job was claimed a moment ago, judged by the remaining time of its session. If more than a whole session
/// remains, an earlier process computed the end with a clock that was ahead.
fn is_fresh(left: TimeDelta) -> bool {
    left > WORKER_SESSION - OFFER && left <= WORKER_SESSION
}

/// A poll on the board. It is removed when the runner has its answer or has disconnected.
struct OnBoard<'a> {
    runners: &'a Runners,
    runner: RunnerId,
    arrival: Option<Arrival>,
}

impl Drop for OnBoard<'_> {
    fn drop(&mut self) {
        if let Some(arrival) = self.arrival {
            self.runners.board().withdraw(self.runner, arrival);
        }
    }
}
