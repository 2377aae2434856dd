//! The thread that writes acknowledged batches to the tree, in groups and in order, and makes checkpoints. It runs behind
//! the writer, so that a commit costs one sync. It waits while the disk is full or no file can be opened: the journal holds what is
//! not written yet. Any other failure ends the opening.

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

/// Pauses while the disk is full: short first, since room often comes at once, then rare.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Room a record takes besides its keys and contents, roughly: frame, lengths and tags.
const RECORD_OVERHEAD: u64 = 64;

pub(crate) struct Applier {
    pub(crate) tree: Tree,
    pub(crate) folders: TopFolders,
    pub(crate) pending: Arc<Pending>,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) noted: Applied,
    pub(crate) live: LiveSet,
    /// The last batch the tree holds.
    pub(crate) applied: Seq,
    pub(crate) options: Options,
    pub(crate) unsynced: Unsynced,
}

/// How the applier ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The tree alone is the state.
    Clean,
    /// The disk is full, and the journal is needed at the next open.
    Unfinished,
}

/// What was applied since the last checkpoint.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unsynced {
    bytes: u64,
    /// When the first batch was applied, or when a checkpoint last found no room.
    since: Option<Duration>,
}

impl Applier {
    /// Works until told to stop. A panic ends the opening too. Otherwise a writer would wait forever for the tree.
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
            let work = self.pending.next(self.patience(), self.options.gather);
            if let Some(error) = self.pending.failure() {
                // Nobody knows what of the journal is durable; the next open finds out.
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

    /// Answers false when the disk is full and the store is being closed.
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
                tracing::warn!(%error, cause, "there is no room; acknowledged changes wait in the journal");
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
        // First, so that no file is newer.
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
                tracing::warn!(%error, "a checkpoint is put off: the disk is full");
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
            || self.patience().is_some_and(|left| left.is_zero())
    }

    /// Time left until a checkpoint is due; `None` when nothing was applied.
    fn patience(&self) -> Option<Duration> {
        let due = self.unsynced.since? + self.options.checkpoint_interval;
        Some(due.saturating_sub(self.tree.disk.elapsed()))
    }
}
