//! The acknowledged batches that are not in the tree yet, in order, and the overlay through which readers see them.
//! Writer, applier and readers share it. A batch becomes visible in one step under one lock. After a failure every later
//! commit gets the same answer.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::batch::{Batch, Seq};
use crate::disk::DiskError;
use crate::engine::CommitError;
use crate::fault::Fault;
use crate::key::Key;
use crate::limits::{PENDING_BATCHES, PENDING_BYTES};
use crate::overlay::{Entry, Overlay};
use crate::staged::Staged;

#[derive(Debug, Default)]
pub(crate) struct Pending {
    state: Mutex<State>,
    /// Wakes the applier: a batch came, or the end.
    work: Condvar,
    /// Wakes the writer: the tree caught up, or cannot.
    progress: Condvar,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) overlay: Overlay,
    queue: VecDeque<Arc<Committed>>,
    bytes: usize,
    /// Grows with every batch; two equal values mean that nothing became visible in between.
    pub(crate) generation: u64,
    /// The disk is too full for the tree to go on.
    stalled: bool,
    stopping: bool,
    /// The writer needs the room that a checkpoint gives back.
    checkpoint_wanted: bool,
    failure: Option<Fault>,
}

/// A durable batch.
#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) seq: Seq,
    pub(crate) batch: Batch,
}

/// What the applier does next.
#[derive(Debug)]
pub(crate) enum Work {
    Apply(Arc<Committed>),
    /// The tree holds everything, and the journal needs the room.
    Checkpoint,
    /// Nothing came within the time given.
    Idle,
    /// Everything is applied, and nothing more will come.
    Stop,
}

/// Why a batch is not written.
#[derive(Debug)]
pub(crate) enum Refused {
    /// There is no room. Nothing was written.
    Full,
    /// It is unknown what the disk holds.
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
    /// Begins an opening of the store.
    pub(crate) fn begin(&self) {
        let mut state = self.lock();
        let generation = state.generation + 1;
        *state = State {
            generation,
            ..State::default()
        };
    }

    /// A panic elsewhere cannot come between two changes that belong together, so the lock stays usable.
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

    /// The object that the tree does not hold at `key` yet.
    pub(crate) fn adopted(&self, key: &Key) -> Option<Staged> {
        let state = self.lock();
        state.overlay.get(key).and_then(Entry::adopted).cloned()
    }

    /// Waits until another batch may wait for the tree.
    pub(crate) fn wait_for_room(&self) -> Result<(), Refused> {
        self.wait(|state| state.queue.len() < PENDING_BATCHES && state.bytes < PENDING_BYTES)
    }

    /// Waits until the tree holds everything that is acknowledged now.
    pub(crate) fn wait_for_tree(&self) -> Result<(), Refused> {
        let last = self.lock().queue.back().map(|last| last.seq);
        let is_later = |next: &Arc<Committed>| Some(next.seq) > last;
        self.wait(|state| state.queue.front().is_none_or(is_later))
    }

    /// Waits for a checkpoint, or until there is no room for one either.
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
        drop(state);
        self.work.notify_one();
    }

    /// The oldest batch that is not applied, waiting at most `patience` for one.
    pub(crate) fn next(&self, patience: Option<Duration>) -> Work {
        let state = self.lock();
        let waits = |state: &mut State| {
            state.queue.is_empty() && !state.stopping && !state.checkpoint_wanted
        };
        let state = match patience {
            None => self
                .work
                .wait_while(state, waits)
                .unwrap_or_else(PoisonError::into_inner),
            Some(patience) => {
                self.work
                    .wait_timeout_while(state, patience, waits)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        };
        match state.queue.front() {
            Some(committed) => Work::Apply(committed.clone()),
            None if state.stopping => Work::Stop,
            None if state.checkpoint_wanted => Work::Checkpoint,
            None => Work::Idle,
        }
    }

    /// The tree holds the oldest batch.
    pub(crate) fn applied(&self, committed: &Committed) {
        let mut state = self.lock();
        state.queue.pop_front();
        state.bytes = state.bytes.saturating_sub(committed.batch.bytes());
        state.stalled = false;
        state.overlay.settle(committed.seq, committed.batch.keys());
        drop(state);
        self.progress.notify_all();
    }

    /// A checkpoint was tried.
    pub(crate) fn checkpoint_tried(&self) {
        self.lock().checkpoint_wanted = false;
        self.progress.notify_all();
    }

    /// The tree has no room: tells the writer, and waits for `pause` or the end. True when it is time to stop.
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
