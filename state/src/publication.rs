//! The published world. Everything in it is durable, and others can follow its changes.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use model::{Change, JobId, JobState, UserId, World};
use store::Seq;
use tokio::sync::watch;

use crate::ended_jobs::EndedJobs;
use crate::feed::{ChangesGone, Feed, Subscription};
use crate::page_index::PageIndex;
use crate::watchers::Watchers;

thread_local! {
    static IS_READING: Cell<bool> = const { Cell::new(false) };
}

/// In tests, detects a read within a read, which can deadlock.
struct Reading;

impl Reading {
    fn begin() -> Self {
        debug_assert!(!IS_READING.get(), "the world is read within a read");
        IS_READING.set(true);
        Self
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        IS_READING.set(false);
    }
}

/// The published world and its followers.
pub(crate) struct Publication {
    world: RwLock<World>,
    feed: Arc<Feed>,
    /// Waiters for changes of a job.
    jobs: Watchers<JobId>,
    /// Waiters whose rights depend on a user, with tokens and sessions.
    users: Watchers<UserId>,
    ended_jobs: EndedJobs,
    page_index: Arc<PageIndex>,
    /// Running jobs that were claimed since the start and have no log yet.
    silent: Mutex<HashSet<JobId>>,
}

impl Publication {
    /// Publishes a world as of commit `seq`.
    pub(crate) fn new(
        world: World,
        seq: Seq,
        ended_jobs: EndedJobs,
        page_index: Arc<PageIndex>,
    ) -> Self {
        Self {
            world: RwLock::new(world),
            feed: Arc::new(Feed::new(seq)),
            jobs: Watchers::default(),
            users: Watchers::default(),
            ended_jobs,
            page_index,
            silent: Mutex::default(),
        }
    }

    pub(crate) fn silent(&self) -> MutexGuard<'_, HashSet<JobId>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `look` must not call `read`: the inner read could wait for a commit that waits for the outer read.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&World) -> R) -> R {
        let _reading = Reading::begin();
        look(&self.world.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Publishes the changes of commit `seq`. Without `seq`, the changes are not stored.
    pub(crate) fn publish(&self, seq: Option<Seq>, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        // Whose rights may have changed, before and after the changes.
        let mut users = Vec::new();
        {
            let mut world = self.world.write().unwrap_or_else(PoisonError::into_inner);
            for change in &changes {
                if let Change::Job(job) = change {
                    let before = world.job(job.id).map(|job| &job.state);
                    match (before, &job.state) {
                        (Some(JobState::Scheduled), JobState::Running { .. }) => {
                            self.silent().insert(job.id);
                        }
                        (_, JobState::Running { .. }) => {}
                        (
                            _,
                            JobState::Scheduled
                            | JobState::Skipped { .. }
                            | JobState::Succeeded { .. }
                            | JobState::Failed { .. }
                            | JobState::Cancelled { .. },
                        ) => {
                            self.silent().remove(&job.id);
                        }
                    }
                }
                let token = match change {
                    Change::Token(token) => Some(token.id),
                    Change::TokenRemoved(id) => Some(*id),
                    _ => None,
                };
                users.extend(token.and_then(|id| Some(world.token(id)?.owner)));
                world.apply(change);
            }
        }
        for change in &changes {
            match change {
                Change::Job(job) => {
                    self.ended_jobs.changed(job);
                    self.jobs.wake(&job.id)
                }
                Change::JobRemoved(job) => {
                    self.ended_jobs.removed(job.id);
                    self.jobs.wake(&job.id)
                }
                Change::History(entry) => self.page_index.added(entry),
                Change::Token(token) => users.push(token.owner),
                Change::User(user) => users.push(user.id),
                Change::SessionRemoved(session) => users.push(session.user),
                Change::Source(_)
                | Change::Tip(_)
                | Change::Workflow(_)
                | Change::Revision(..)
                | Change::Suspension(_)
                | Change::RevisionRead(_)
                | Change::Head(_)
                | Change::Digests(_)
                | Change::Repeats(..)
                | Change::ArtifactRemoved(..)
                | Change::Expiry(_)
                | Change::ExpiryRemoved(_)
                | Change::Retention(_)
                | Change::HistoryPageRemoved(..)
                | Change::Ledger(_)
                | Change::LedgerPageRemoved(..)
                | Change::Recent(..)
                | Change::Runner(_)
                | Change::RunnerRemoved(_)
                | Change::TokenRemoved(_)
                | Change::Session(_)
                | Change::Registration(_)
                | Change::RegistrationRemoved(_)
                | Change::Idempotency(_)
                | Change::IdempotencyRemoved(_)
                | Change::Vars(_)
                | Change::Secrets(_)
                | Change::Rules(_)
                | Change::Blob(_)
                | Change::BlobRemoved(..)
                | Change::BlobLink(_)
                | Change::BlobLinkRemoved(_)
                | Change::BlobUsage(_)
                | Change::ClockFollowed(_)
                | Change::Condition(_)
                | Change::ConditionClosed(..)
                | Change::Channel(_)
                | Change::ChannelRemoved(_)
                | Change::Event(_)
                | Change::Outgoing(_)
                | Change::OutgoingRemoved(_)
                | Change::Delivery(_)
                | Change::Callback(_)
                | Change::CallbackRemoved(_)
                | Change::CallbackToken(_)
                | Change::CallbackCertificate(_)
                | Change::CallbackTokenRemoved(..)
                | Change::PayloadGroup(_)
                | Change::PayloadGroupRemoved(_)
                | Change::PayloadVersionRemoved(..)
                | Change::Minted(_)
                | Change::MintRemoved(..)
                | Change::Interactions(..)
                | Change::Clocks(_) => {}
            }
        }
        for user in &users {
            self.users.wake(user);
        }
        self.feed.publish(seq, changes);
    }

    pub(crate) fn changed(&self) -> watch::Receiver<()> {
        self.feed.changed()
    }

    pub(crate) fn job_changed(&self, job: JobId) -> watch::Receiver<()> {
        self.jobs.subscribe(job)
    }

    pub(crate) fn user_changed(&self, user: UserId) -> watch::Receiver<()> {
        self.users.subscribe(user)
    }

    pub(crate) fn subscribe(&self, from: Seq) -> Result<Subscription, ChangesGone> {
        self.feed.subscribe(from)
    }

    pub(crate) fn seq(&self) -> Seq {
        self.feed.newest()
    }
}
