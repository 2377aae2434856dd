//! Batches that are written to the tree together: of each key only what is newest. A record that is replaced ten times
//! is written once.

use std::sync::Arc;

use crate::batch::{Batch, Seq};
use crate::overlay::Overlay;
use crate::pending::Committed;

pub(crate) struct Group {
    batches: Vec<Arc<Committed>>,
    changes: Overlay,
}

impl Group {
    /// As many of the batches, from the first on, as can be written together.
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

    /// An object that got its key must be there when a later batch changes that key. Otherwise its file would stay in
    /// `tmp/`.
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

    /// The newest of the batches.
    pub(crate) fn last(&self) -> Seq {
        self.batches.last().map_or(Seq(0), |last| last.seq)
    }

    /// What the batches make of the tree.
    pub(crate) fn changes(&self) -> &Overlay {
        &self.changes
    }
}
