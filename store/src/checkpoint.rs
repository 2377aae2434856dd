//! Makes the tree durable up to a commit and retires the older part of the journal. The order is: index, tree,
//! `CHECKPOINT`, then the segments. So a crash leaves either the old `CHECKPOINT` with its journal, or the new one.

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
    /// The state root. It was opened before the first write, so that a sync reports every error since then.
    pub(crate) root: DiskFile,
}

impl Checkpointer {
    /// Requires that the tree holds everything up to `seq` and that `live` matches it. If the disk is full, the old
    /// mark and its journal stay.
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
            // The next start can rebuild an index; room in the journal is needed now.
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

    /// Records that the tree is durable up to `at`, and retires older segments.
    pub(crate) fn mark(&self, at: Checkpoint, condition: Condition) -> Result<(), DiskError> {
        self.write(at, condition)?;
        failpoint::reach("checkpoint-written");
        live::remove_older(&self.segments.disk, &self.segments.paths.index, at.seq)?;
        failpoint::reach("index-removed");
        self.segments.retire(at.seq)
    }

    /// Call this when the first segment of this opening has its name. From then on a start refuses the store if that
    /// segment is missing.
    pub(crate) fn mark_open(&self, at: Checkpoint) -> Result<(), DiskError> {
        self.write(at, Condition::Open)?;
        failpoint::reach("store-marked-open");
        Ok(())
    }

    fn write(&self, at: Checkpoint, condition: Condition) -> Result<(), DiskError> {
        // Writing the index takes a while. Meanwhile another process may have replaced the mark.
        let Segments {
            disk, paths, store, ..
        } = &*self.segments;
        self.lock.verify(disk)?;
        control::write_checkpoint(disk, &paths.checkpoint, *store, at, condition)
    }
}
