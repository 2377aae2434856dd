//! The thread that writes acknowledged batches to the tree, in groups and in order, and makes checkpoints. It runs
//! behind the writer, so that a commit costs one sync. While the disk is full or no file can be opened, it waits, and
//! the journal holds the batches. Any other failure closes the store.

use std::error::Error as _;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::applied::Applied;
use crate::batch::Seq;
use crate::checkpoint::Checkpointer;
use crate::control::Condition;
use crate::disk::{Action, DiskError};
use crate::failpoint;
use crate::fault::Fault;
use crate::file::Options;
use crate::group::Group;
use crate::live::LiveSet;
use crate::pending::{Pending, Work};
use crate::top_folders::TopFolders;
use crate::tree::Tree;

/// Pauses between two tries while the disk is full. The first is short, because room often appears at once.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Approximate size of a record without its keys and contents: frame, lengths and tags.
const RECORD_OVERHEAD: u64 = 64;

pub(crate) struct Applier {
    pub(crate) tree: Tree,
    pub(crate) folders: TopFolders,
    pub(crate) pending: Arc<Pending>,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) noted: Applied,
    pub(crate) live: LiveSet,
    pub(crate) applied: Seq,
    pub(crate) options: Options,
    pub(crate) unsynced: Unsynced,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The tree holds everything; the journal is not needed.
    Clean,
    /// The disk is full; the next open needs the journal.
    Unfinished,
}

/// What was applied since the last checkpoint.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unsynced {
    bytes: u64,
    /// When the first batch was applied, or when a checkpoint last failed because the disk was full.
    since: Option<Duration>,
}

impl Applier {
    /// Runs until stopped. A panic also closes the store, because a writer would otherwise wait forever.
    pub(crate) fn run(mut self) -> Result<End, Fault> {
        let result = catch_unwind(AssertUnwindSafe(|| self.work())).unwrap_or_else(|_| {
            let panicked = io::Error::other("the thread that writes the files panicked");
            Err(DiskError::new(Action::Thread, self.tree.root(), panicked).into())
        });
        if let Err(error) = &result {
            tracing::error!(%error, "the store stops");
            self.pending.fail(error.clone());
        }
        result
    }

    fn work(&mut self) -> Result<End, Fault> {
        loop {
            let work = self
                .pending
                .next(self.time_until_checkpoint(), self.options.gather);
            if let Some(error) = self.pending.failure() {
                // It is unknown what the journal holds durably; the next open finds out.
                return Err(error);
            }
            match work {
                Work::Apply(waiting) => {
                    if !self.apply(&Group::of(waiting))? {
                        return Ok(End::Unfinished);
                    }
                }
                Work::Checkpoint => {
                    self.checkpoint(Condition::Open)?;
                    self.pending.checkpoint_tried();
                }
                Work::Idle => {}
                Work::Stop => return Ok(self.checkpoint(Condition::Stopped)?),
            }
            if self.is_checkpoint_due() {
                self.checkpoint(Condition::Open)?;
            }
            // Before the first segment is full.
            if self.unsynced.bytes >= self.options.first_segment_bytes / 4 {
                self.checkpointer
                    .segments
                    .refill(|| self.pending.is_stopping())?;
            }
        }
    }

    /// Returns false when the disk is full and the store is being closed.
    fn apply(&mut self, group: &Group) -> Result<bool, DiskError> {
        let changes = group.changes();
        self.folders.verify(&self.tree, changes.keys())?;
        let mut pause = SHORTEST_PAUSE;
        let mut is_last_try = false;
        while let Err(error) = self
            .write(group)
            .and_then(|()| self.folders.follow(&self.tree, changes))
        {
            if !error.is_full() {
                return Err(error);
            }
            if is_last_try {
                return Ok(false);
            }
            if pause == SHORTEST_PAUSE {
                let cause = error.source().map(tracing::field::display);
                tracing::warn!(%error, cause, "the disk is full; acknowledged changes wait in the journal");
            }
            is_last_try = self.pending.stall(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        failpoint::reach("batch-applied");
        for committed in group.batches() {
            self.live.apply(&committed.batch);
            self.unsynced.bytes += committed.batch.bytes() as u64 + RECORD_OVERHEAD;
        }
        self.unsynced.since.get_or_insert(self.tree.disk.elapsed());
        self.applied = group.last();
        self.pending.applied(group);
        Ok(true)
    }

    fn write(&self, group: &Group) -> Result<(), DiskError> {
        // Note the number first, so that no file in the tree is newer than the number.
        self.noted.note(group.last())?;
        group.changes().apply(&self.tree)
    }

    fn checkpoint(&mut self, condition: Condition) -> Result<End, DiskError> {
        match self.checkpointer.run(self.applied, &self.live, condition) {
            Ok(()) => {
                self.unsynced = Unsynced::default();
                Ok(End::Clean)
            }
            Err(error) if error.is_full() => {
                tracing::warn!(%error, "the disk is full; the checkpoint is postponed");
                self.unsynced = Unsynced {
                    bytes: 0,
                    since: Some(self.tree.disk.elapsed()),
                };
                Ok(End::Unfinished)
            }
            Err(error) => Err(error),
        }
    }

    fn is_checkpoint_due(&self) -> bool {
        self.unsynced.bytes >= self.options.checkpoint_bytes
            || self
                .time_until_checkpoint()
                .is_some_and(|left| left.is_zero())
    }

    /// `None` when nothing was applied.
    fn time_until_checkpoint(&self) -> Option<Duration> {
        let due = self.unsynced.since? + self.options.checkpoint_interval;
        Some(due.saturating_sub(self.tree.disk.elapsed()))
    }
}
