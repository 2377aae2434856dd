//! The runners of this daemon: the present process of each runner, the waiting polls, and the live state of their jobs.
//! All of it is in memory only.

mod artifacts;
mod board;
mod presence;
mod requests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use chrono::TimeDelta;
use futures_util::{StreamExt, TryStreamExt, stream};
use model::decide::{EndJob, Loss};
use model::limits::WORKER_LAST_WORDS;
use model::{Clock, Entropy, Job, JobId, RunnerId, Timestamp, World};
use state::{State, SubmitError};

use tokio::sync::Notify;
use tokio::time::Instant;

use self::artifacts::Progresses;
pub use self::artifacts::{ArtifactPhase, ArtifactProgress};
pub use self::board::Message;
use self::board::{Board, Now};
pub use self::presence::Instance;
pub(crate) use self::presence::Presence;
pub use self::requests::RunnerSession;
use crate::limits::{AT_ONCE, SILENCE};
use crate::supervise::lock;

pub struct Runners {
    state: State,
    clock: Arc<dyn Clock>,
    entropy: Arc<Mutex<Box<dyn Entropy>>>,
    board: Mutex<Board>,
    board_woken: Notify,
    presence: Mutex<Presence>,
    artifacts: Mutex<Progresses>,
    /// When jobs were ended by anyone except their workers, by the steady clock.
    ended: Mutex<HashMap<JobId, Timestamp>>,
    /// The number of errors of runners in which a secret was hidden.
    masked: AtomicU64,
}

impl Runners {
    pub(crate) fn new(
        state: State,
        clock: Arc<dyn Clock>,
        entropy: Arc<Mutex<Box<dyn Entropy>>>,
    ) -> Self {
        Self {
            state,
            clock,
            entropy,
            board: Mutex::default(),
            board_woken: Notify::new(),
            presence: Mutex::new(Presence::new(Instant::now())),
            artifacts: Mutex::default(),
            ended: Mutex::default(),
            masked: AtomicU64::new(0),
        }
    }

    /// When a runner last contacted the daemon since its start.
    pub fn heard_at(&self, runner: RunnerId) -> Option<Timestamp> {
        self.presence().last(runner)
    }

    pub fn is_connected(&self, runner: RunnerId) -> bool {
        self.presence().is_connected(runner, Instant::now())
    }

    /// True if the runner has left, or was silent for too long since the daemon runs.
    pub(crate) fn is_lost(&self, runner: RunnerId) -> bool {
        let now = Instant::now();
        let presence = self.presence();
        let is_over = now >= presence.lease_from(runner) + SILENCE;
        !presence.is_connected(runner, now) && (is_over || presence.has_left(runner))
    }

    pub fn waiting_polls(&self) -> usize {
        self.board().waiting()
    }

    /// The jobs that each runner holds, by its newest poll since the daemon started.
    pub fn jobs_in_hand(&self) -> Arc<HashMap<RunnerId, BTreeSet<JobId>>> {
        self.board().holding()
    }

    /// How often the daemon hid a secret in an error of a runner, since its start.
    pub fn masked_errors(&self) -> u64 {
        self.masked.load(Ordering::Relaxed)
    }

    pub(crate) fn count_masked_error(&self) {
        self.masked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn heard(&self, runner: RunnerId) {
        let now = self.clock.now();
        self.presence().heard(runner, now, Instant::now());
    }

    /// The present leases. After a standstill of the daemon, all leases start again.
    pub(crate) fn presence(&self) -> MutexGuard<'_, Presence> {
        let mut presence = lock(&self.presence);
        if let Some(late) = presence.notice_standstill(Instant::now()) {
            tracing::warn!(
                late_seconds = late.as_secs(),
                "the daemon or its machine stood still: the silence of runners is counted from now"
            );
        }
        presence
    }

    pub(crate) fn board(&self) -> MutexGuard<'_, Board> {
        lock(&self.board)
    }

    /// Answers polls, and returns when to call this again. Only the task of offers calls it, so that this task always
    /// knows when the next offer expires or the next delayed job is due.
    pub(crate) fn assign(&self) -> Option<Instant> {
        let mut entropy = lock(&self.entropy);
        self.state.read(|world| {
            let now = Now {
                steady: Instant::now(),
                time: self.time(world),
            };
            self.board().assign(world, now, &mut **entropy)
        })
    }

    fn wake_board(&self) {
        self.board_woken.notify_one();
    }

    pub(crate) async fn board_woken(&self) {
        self.board_woken.notified().await;
    }

    /// Removes a runner that is not registered any more. Its jobs are lost. `state` contains the entry for the audit log.
    pub(crate) async fn removed(&self, state: &State, runner: RunnerId) -> Result<(), SubmitError> {
        self.board().forget(runner);
        self.lose(state, runner, |_, _| true).await
    }

    /// Ends a runner's jobs as lost. `is_lost` selects them by the job and the world's time.
    pub(crate) async fn lose(
        &self,
        state: &State,
        runner: RunnerId,
        is_lost: impl Fn(&Job, Timestamp) -> bool,
    ) -> Result<(), SubmitError> {
        let jobs: Vec<JobId> = self.state.read(|world| {
            let now = self.time(world);
            let jobs = world.running_on(runner).filter(|job| is_lost(job, now));
            jobs.map(|job| job.id).collect()
        });
        // Submit them together, so that they share commits.
        stream::iter(jobs)
            .map(|job| self.end(state, job, Loss::RunnerLost))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    /// Ends a job. If it has already ended, nothing changes.
    pub(crate) async fn end(
        &self,
        state: &State,
        job: JobId,
        loss: Loss,
    ) -> Result<(), SubmitError> {
        match state.end(EndJob::new(job, loss)).await {
            Ok(job) => {
                if job.state.is_terminal() {
                    self.note_end(job.id);
                }
                Ok(())
            }
            Err(SubmitError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Records that a job was ended by anyone except its worker. The worker may still append to its log.
    pub(crate) fn note_end(&self, job: JobId) {
        let now = self.clock.steady();
        let mut ended = lock(&self.ended);
        ended.retain(|_, at| now - *at < WORKER_LAST_WORDS);
        ended.insert(job, now);
        drop(ended);
        self.state.logs().ended(job);
    }

    /// How long ago the job was ended, if `note_end` recorded it recently.
    pub(crate) fn ended_ago(&self, job: JobId) -> Option<TimeDelta> {
        let at = lock(&self.ended).get(&job).copied()?;
        Some(self.clock.steady() - at)
    }

    /// The time with which expiry times are compared.
    fn time(&self, world: &World) -> Timestamp {
        world.time(self.clock.steady())
    }
}
