//! The acknowledged batches that are not in the tree yet, in order, and the overlay through which readers see them.
//! Writer, applier and readers share it. A batch becomes visible in one step under one lock. After a failure every
//! later commit returns the same error.
//!
//! The applier takes all waiting batches. It gathers more of them for a while, unless somebody needs the tree.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::batch::{Batch, Seq};
use crate::disk::DiskError;
use crate::engine::CommitError;
use crate::fault::Fault;
use crate::group::Group;
use crate::key::Key;
use crate::limits::{GATHERED_BATCHES, GATHERED_BYTES, PENDING_BATCHES, PENDING_BYTES};
use crate::overlay::{Entry, Overlay};
use crate::staged::Staged;

#[derive(Debug, Default)]
pub(crate) struct Pending {
    state: Mutex<State>,
    /// Wakes the applier: a batch arrived, or the store closes.
    work: Condvar,
    /// Wakes the writer: the tree caught up, or cannot.
    progress: Condvar,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) overlay: Overlay,
    queue: VecDeque<Arc<Committed>>,
    bytes: usize,
    /// Batches up to this one go to the tree without gathering more.
    wanted: Seq,
    /// Grows with every batch. If two values are equal, nothing became visible in between.
    pub(crate) generation: u64,
    /// The disk is too full to write the tree.
    stalled: bool,
    stopping: bool,
    /// The writer needs the segments that a checkpoint frees.
    checkpoint_wanted: bool,
    failure: Option<Fault>,
}

#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) seq: Seq,
    pub(crate) batch: Batch,
}

#[derive(Debug)]
pub(crate) enum Work {
    Apply(Vec<Arc<Committed>>),
    /// The tree holds everything, and the journal needs free segments.
    Checkpoint,
    /// No batch arrived before the timeout.
    Idle,
    /// Everything is applied, and the store closes.
    Stop,
}

/// Why a batch was refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The disk is full. Nothing was written.
    Full,
    /// It is unknown which data is on the disk.
    Failed(Fault),
}

impl From<DiskError> for Refused {
    fn from(error: DiskError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Refused> for CommitError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Full => Self::Full,
            Refused::Failed(source) => Self::Unknown { source },
        }
    }
}

impl Pending {
    pub(crate) fn begin(&self) {
        let mut state = self.lock();
        let generation = state.generation + 1;
        *state = State {
            generation,
            ..State::default()
        };
    }

    /// No update can stop halfway, so the data is valid even after a panic elsewhere.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn fail(&self, fault: Fault) {
        self.lock().failure.get_or_insert(fault);
        self.progress.notify_all();
        self.work.notify_all();
    }

    pub(crate) fn failure(&self) -> Option<Fault> {
        self.lock().failure.clone()
    }

    /// An object that is not at `key` in the tree yet.
    pub(crate) fn adopted(&self, key: &Key) -> Option<Staged> {
        let state = self.lock();
        state.overlay.get(key).and_then(Entry::adopted).cloned()
    }

    /// Waits until the queue has room for another batch.
    pub(crate) fn wait_for_room(&self) -> Result<(), Refused> {
        self.wait(|state| state.queue.len() < PENDING_BATCHES && state.bytes < PENDING_BYTES)
    }

    /// Waits until the tree holds everything acknowledged so far.
    pub(crate) fn wait_for_tree(&self) -> Result<(), Refused> {
        let last = self.lock().want_all();
        self.work.notify_one();
        self.wait(|state| state.queue.front().is_none_or(|next| next.seq > last))
    }

    /// Waits for a checkpoint, or until there is no room for one.
    pub(crate) fn wait_for_checkpoint(&self) -> Result<(), Refused> {
        self.lock().checkpoint_wanted = true;
        self.work.notify_one();
        self.wait(|state| !state.checkpoint_wanted)
    }

    fn wait(&self, done: impl Fn(&State) -> bool) -> Result<(), Refused> {
        let mut state = self.lock();
        loop {
            if let Some(error) = &state.failure {
                return Err(Refused::Failed(error.clone()));
            }
            if done(&state) {
                return Ok(());
            }
            if state.stalled {
                return Err(Refused::Full);
            }
            state = self
                .progress
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Makes a durable batch visible and hands it to the applier.
    pub(crate) fn publish(&self, seq: Seq, batch: Batch) {
        let mut state = self.lock();
        state.overlay.add(seq, &batch);
        state.bytes += batch.bytes();
        state.queue.push_back(Arc::new(Committed { seq, batch }));
        state.generation += 1;
        let is_news = state.queue.len() == 1 || !state.gathers();
        drop(state);
        // Do not wake the applier for each batch while it gathers.
        if is_news {
            self.work.notify_one();
        }
    }

    /// Waits at most `timeout` for a batch and then at most `gather` for more.
    pub(crate) fn next(&self, timeout: Option<Duration>, gather: Duration) -> Work {
        let state = self.wait_for_work(self.lock(), timeout, State::is_idle);
        let mut state = self.wait_for_work(state, Some(gather), State::gathers);
        if state.queue.is_empty() {
            if state.stopping {
                return Work::Stop;
            }
            return match state.checkpoint_wanted {
                true => Work::Checkpoint,
                false => Work::Idle,
            };
        }
        // Batches left over from this group have waited already.
        state.want_all();
        Work::Apply(state.queue.iter().cloned().collect())
    }

    /// Waits while `waits` returns true, at most `timeout`.
    fn wait_for_work<'a>(
        &self,
        state: MutexGuard<'a, State>,
        timeout: Option<Duration>,
        waits: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        match timeout {
            None => self
                .work
                .wait_while(state, |state| waits(state))
                .unwrap_or_else(PoisonError::into_inner),
            Some(timeout) => {
                self.work
                    .wait_timeout_while(state, timeout, |state| waits(state))
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        }
    }

    /// The tree now holds the batches of the group, which are the oldest.
    pub(crate) fn applied(&self, group: &Group) {
        let mut state = self.lock();
        for committed in group.batches() {
            state.queue.pop_front();
            state.bytes = state.bytes.saturating_sub(committed.batch.bytes());
        }
        state.stalled = false;
        state.overlay.settle(group.last(), group.changes().keys());
        drop(state);
        self.progress.notify_all();
    }

    pub(crate) fn checkpoint_tried(&self) {
        self.lock().checkpoint_wanted = false;
        self.progress.notify_all();
    }

    /// The disk is full: reports that to the writer, and waits for `pause` or the end. Returns true when the store
    /// closes.
    pub(crate) fn stall(&self, pause: Duration) -> bool {
        let mut state = self.lock();
        state.stalled = true;
        self.progress.notify_all();
        let waited = self
            .work
            .wait_timeout_while(state, pause, |state| !state.stopping);
        waited.unwrap_or_else(PoisonError::into_inner).0.stopping
    }

    pub(crate) fn stop(&self) {
        self.lock().stopping = true;
        self.work.notify_all();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.lock().stopping
    }
}

impl State {
    /// True if the applier has nothing to do.
    fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.stopping && !self.checkpoint_wanted
    }

    /// True if the waiting batches may wait for more.
    fn gathers(&self) -> bool {
        let is_hurried = self.stopping || self.checkpoint_wanted || self.failure.is_some();
        let is_wanted = self
            .queue
            .front()
            .is_none_or(|next| next.seq <= self.wanted);
        let is_much = self.queue.len() >= GATHERED_BATCHES || self.bytes >= GATHERED_BYTES;
        !is_hurried && !is_wanted && !is_much
    }

    /// Ends the gathering for all waiting batches. Returns the last one.
    fn want_all(&mut self) -> Seq {
        let last = self.queue.back().map(|last| last.seq);
        self.wanted = last.unwrap_or(self.wanted);
        self.wanted
    }
}
