//! Makes the tree durable up to a commit and retires the journal before it. The order makes it safe: index, tree,
//! `CHECKPOINT`, and only then the segments. A crash leaves either the old `CHECKPOINT` with its journal, or the new one.

use std::sync::Arc;

use crate::batch::{Epoch, Seq};
use crate::control::{self, Checkpoint, Condition};
use crate::disk::{DiskError, DiskFile};
use crate::failpoint;
use crate::live::{self, LiveSet};
use crate::lock::Lock;
use crate::segments::Segments;

pub(crate) struct Checkpointer {
    pub(crate) epoch: Epoch,
    pub(crate) lock: Arc<Lock>,
    pub(crate) segments: Arc<Segments>,
    /// The state root, open since before the first write, so that a sync reports every error since then.
    pub(crate) root: DiskFile,
}

impl Checkpointer {
    /// The tree holds everything up to `seq`, and `live` is the live set as of then. A full disk leaves the old mark
    /// and its journal as they are.
    pub(crate) fn run(
        &self,
        seq: Seq,
        live: &LiveSet,
        condition: Condition,
    ) -> Result<(), DiskError> {
        let Segments {
            disk, paths, store, ..
        } = &*self.segments;
        failpoint::reach("checkpoint-begun");
        self.lock.verify(disk)?;
        let at = Checkpoint {
            seq,
            epoch: self.epoch,
        };
        match live::write(disk, &paths.index, *store, at, live) {
            // An index can be rebuilt at the next start, and the room in the journal is needed now.
            Err(error) if error.is_full() => {
                tracing::warn!(%error, "the live index is not written: the disk is full")
            }
            result => result?,
        }
        failpoint::reach("index-written");
        self.root.sync_file_system()?;
        failpoint::reach("tree-synced");
        self.mark(at, condition)
    }

    /// Marks `at` as durable in the tree and retires what came before.
    pub(crate) fn mark(&self, at: Checkpoint, condition: Condition) -> Result<(), DiskError> {
        self.write(at, condition)?;
        failpoint::reach("checkpoint-written");
        live::remove_older(&self.segments.disk, &self.segments.paths.index, at.seq)?;
        failpoint::reach("index-removed");
        self.segments.retire(at.seq)
    }

    /// The first segment of this opening has its name. From now on a start refuses when the one being written is gone.
    pub(crate) fn mark_open(&self, at: Checkpoint) -> Result<(), DiskError> {
        self.write(at, Condition::Open)?;
        failpoint::reach("store-marked-open");
        Ok(())
    }

    fn write(&self, at: Checkpoint, condition: Condition) -> Result<(), DiskError> {
        // Writing the index takes a while, and a mark of somebody else must not be replaced.
        let Segments {
            disk, paths, store, ..
        } = &*self.segments;
        self.lock.verify(disk)?;
        control::write_checkpoint(disk, &paths.checkpoint, *store, at, condition)
    }
}
