//! Batches that are written to the tree together. For each key only the newest content is written.

use std::sync::Arc;

use crate::batch::{Batch, Seq};
use crate::overlay::Overlay;
use crate::pending::Committed;

pub(crate) struct Group {
    batches: Vec<Arc<Committed>>,
    changes: Overlay,
}

impl Group {
    /// Takes batches from the front, as many as can be written together.
    pub(crate) fn of(waiting: Vec<Arc<Committed>>) -> Self {
        let mut group = Self {
            batches: Vec::new(),
            changes: Overlay::default(),
        };
        for committed in waiting {
            if !group.takes(&committed.batch) {
                break;
            }
            group.changes.add(committed.seq, &committed.batch);
            group.batches.push(committed);
        }
        group
    }

    /// False if the batch writes or removes a key to which this group moves an object. The object must be moved first,
    /// or its file would stay in `tmp/`.
    fn takes(&self, batch: &Batch) -> bool {
        let is_object = |key| {
            self.changes
                .get(key)
                .is_some_and(|it| it.adopted().is_some())
        };
        !batch.keys().any(is_object)
    }

    pub(crate) fn batches(&self) -> impl Iterator<Item = &Committed> {
        self.batches.iter().map(|committed| &**committed)
    }

    pub(crate) fn last(&self) -> Seq {
        self.batches.last().map_or(Seq(0), |last| last.seq)
    }

    pub(crate) fn changes(&self) -> &Overlay {
        &self.changes
    }
}
