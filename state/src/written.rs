//! Stamps of records: the commit that wrote the record, and how often the record was written.
//!
//! Stamps are in the envelopes and not in the values, because they describe files and no decision needs them.

use std::collections::HashMap;

use model::World;
use store::{Batch, Epoch, Key, Seq};

use crate::encode::Encoder;
use crate::envelope::Stamp;

/// The revision numbers of all live records, and the last commit.
pub(crate) struct Written {
    pub(crate) epoch: Epoch,
    last: Seq,
    /// How often each live record was written. For a settled record only its file has this number.
    revisions: HashMap<Key, u64>,
}

/// A settled record that a command changes, and how often it was written.
#[derive(Clone)]
pub(crate) struct Rewritten {
    pub(crate) key: Key,
    pub(crate) revision: u64,
}

/// The records that a batch writes.
pub(crate) struct Keys {
    live: Vec<Key>,
    /// The keys of settled and deleted records.
    gone: Vec<Key>,
}

impl Written {
    /// The stamps after the commit `last`.
    pub(crate) const fn until(epoch: Epoch, last: Seq, revisions: HashMap<Key, u64>) -> Self {
        Self {
            epoch,
            last,
            revisions,
        }
    }

    /// An encoder for changes of `world` in the next commit.
    pub(crate) const fn encoder<'a>(&'a self, world: &'a World) -> Encoder<'a> {
        Encoder::new(self, world)
    }

    /// The stamp of a record in the next commit. `rewritten` may be this record. `clock` is the clock behind its expiry
    /// times.
    pub(crate) fn stamp(
        &self,
        key: &Key,
        rewritten: Option<&Rewritten>,
        clock: Option<u64>,
    ) -> Stamp {
        let settled = rewritten.filter(|rewritten| rewritten.key == *key);
        let settled = settled.map(|rewritten| rewritten.revision);
        let revision = self.revisions.get(key).copied().or(settled);
        Stamp {
            revision: revision.map_or(1, |revision| revision + 1),
            sequence: self.last.next(),
            clock,
        }
    }

    /// Call this after the commit of a batch with these keys.
    pub(crate) fn committed(&mut self, sequence: Seq, keys: Keys) {
        self.last = sequence;
        for key in keys.live {
            *self.revisions.entry(key).or_insert(0) += 1;
        }
        for key in keys.gone {
            self.revisions.remove(&key);
        }
    }
}

impl Keys {
    pub(crate) fn of(batch: &Batch) -> Self {
        let records = |live: bool| {
            let puts = batch.puts.iter().filter(move |(_, put)| put.live == live);
            puts.map(|(key, _)| key.clone())
        };
        Self {
            live: records(true).collect(),
            gone: records(false)
                .chain(batch.deletes.iter().cloned())
                .collect(),
        }
    }
}
