//! The changes of one commit. This module checks what a batch shows by itself: its size, its keys and its appends.
//! The engine checks whether it fits the existing files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::key::Key;
use crate::limits::{BATCH_BYTES, BATCH_OPERATIONS};
use crate::staged::Staged;

/// Counts the times the store was opened. A batch with an older epoch comes from an earlier writer.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(pub u64);

/// The number of a commit. Numbering continues when the store is opened again.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// Changes that become durable and visible together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The epoch that `Engine::open` returned.
    pub epoch: Epoch,
    /// Whole files, created or replaced.
    pub puts: BTreeMap<Key, Put>,
    /// Files to remove. A missing file is no error.
    pub deletes: BTreeSet<Key>,
    pub appends: Vec<Append>,
    /// Large objects that get their keys. An existing file at the key is replaced.
    pub adopts: BTreeMap<Key, Staged>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    pub bytes: Bytes,
    /// True if `Engine::open` streams the record. The caller keeps this equal to the top-level member `live` of a
    /// `.json` file, so that the set of live records can be rebuilt from the files.
    pub live: bool,
}

/// A piece of a ledger, a file that grows. Writing it again changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    pub ledger: Key,
    /// In bytes; at most the current length of the file.
    pub at: u64,
    pub bytes: Bytes,
}

/// Why a batch can never be committed: an error of the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBatch {
    #[error("key `{key}` is changed twice in one batch")]
    NamedTwice { key: Key },
    #[error("append to `{key}`, which is a record and not a ledger")]
    AppendToRecord { key: Key },
    #[error("object for `{key}`, which is a record: records are read whole and may be live")]
    AdoptedRecord { key: Key },
    #[error("append to `{key}` at {at}, beyond its length of {length} bytes")]
    Gap { key: Key, at: u64, length: u64 },
    #[error("key `{key}` would need a file and a folder of the same name")]
    PathConflict { key: Key },
}

impl Batch {
    pub fn new(epoch: Epoch) -> Self {
        Self {
            epoch,
            puts: BTreeMap::new(),
            deletes: BTreeSet::new(),
            appends: Vec::new(),
            adopts: BTreeMap::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.puts.len() + self.deletes.len() + self.appends.len() + self.adopts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size of all keys and contents. An object counts with its name only.
    pub fn bytes(&self) -> usize {
        let puts = self
            .puts
            .iter()
            .map(|(key, put)| key.as_str().len() + put.bytes.len());
        let deletes = self.deletes.iter().map(|key| key.as_str().len());
        let appends = self
            .appends
            .iter()
            .map(|append| append.ledger.as_str().len() + append.bytes.len());
        let adopts = self
            .adopts
            .iter()
            .map(|(key, staged)| key.as_str().len() + staged.name().as_str().len());
        puts.chain(deletes).chain(appends).chain(adopts).sum()
    }

    /// True if both together stay within the limits of one batch.
    pub fn fits(&self, more: &Batch) -> bool {
        within_limits(self.len() + more.len(), self.bytes() + more.bytes())
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.written().chain(&self.deletes)
    }

    pub(crate) fn is_too_large(&self) -> bool {
        !within_limits(self.len(), self.bytes())
    }

    /// Keys that exist after this batch.
    pub(crate) fn written(&self) -> impl Iterator<Item = &Key> {
        let ledgers = self.appends.iter().map(|append| &append.ledger);
        self.puts.keys().chain(ledgers).chain(self.adopts.keys())
    }

    pub(crate) fn check(&self) -> Result<(), InvalidBatch> {
        let ledgers: BTreeSet<&Key> = self.appends.iter().map(|append| &append.ledger).collect();
        let mut named = BTreeSet::new();
        let changes = self.puts.keys().chain(&self.deletes);
        let mut changes = changes
            .chain(ledgers.iter().copied())
            .chain(self.adopts.keys());
        if let Some(key) = changes.find(|key| !named.insert(*key)) {
            return Err(InvalidBatch::NamedTwice { key: key.clone() });
        }
        if let Some(key) = self.adopts.keys().find(|key| key.is_record()) {
            return Err(InvalidBatch::AdoptedRecord { key: key.clone() });
        }
        if let Some(key) = ledgers.iter().find(|key| key.is_record()) {
            return Err(InvalidBatch::AppendToRecord {
                key: (*key).clone(),
            });
        }
        let written: BTreeSet<&Key> = self.written().collect();
        let is_below = |key: &Key| key.ancestors().any(|folder| written.contains(&folder));
        match written.iter().find(|key| is_below(key)) {
            Some(key) => Err(InvalidBatch::PathConflict {
                key: (*key).clone(),
            }),
            None => Ok(()),
        }
    }

    /// Refuses a piece that begins after the end of its file. `length` returns the current length of a file, or any
    /// shorter length that reaches the piece.
    pub(crate) fn check_appends<E: From<InvalidBatch>>(
        &self,
        length: impl Fn(&Key, u64) -> Result<u64, E>,
    ) -> Result<(), E> {
        let mut reached: BTreeMap<&Key, u64> = BTreeMap::new();
        for Append { ledger, at, bytes } in &self.appends {
            let length = match reached.get(ledger) {
                Some(reached) if at <= reached => *reached,
                Some(_) | None => length(ledger, *at)?,
            };
            if *at > length {
                let (key, at) = (ledger.clone(), *at);
                return Err(InvalidBatch::Gap { key, at, length }.into());
            }
            reached.insert(ledger, length.max(at + bytes.len() as u64));
        }
        Ok(())
    }
}

/// Liveness of a file, as its content states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    Live,
    /// Not live. All files that are not records are settled.
    Settled,
    /// A record without the member `live`: damaged, or written by another program.
    Unknown,
}

pub(crate) fn liveness(key: &Key, bytes: &[u8]) -> Liveness {
    #[derive(Deserialize)]
    struct Envelope {
        live: bool,
    }
    if !key.is_record() {
        return Liveness::Settled;
    }
    match serde_json::from_slice(bytes) {
        Ok(Envelope { live: true }) => Liveness::Live,
        Ok(Envelope { live: false }) => Liveness::Settled,
        Err(_) => Liveness::Unknown,
    }
}

pub(crate) fn is_live(key: &Key, bytes: &[u8]) -> bool {
    liveness(key, bytes) == Liveness::Live
}

/// The commit that wrote the record, read from its envelope.
pub(crate) fn sequence_of(key: &Key, bytes: &[u8]) -> Option<Seq> {
    #[derive(Deserialize)]
    struct Envelope {
        sequence: Seq,
    }
    let envelope = || serde_json::from_slice::<Envelope>(bytes).ok();
    key.is_record()
        .then(envelope)
        .flatten()
        .map(|envelope| envelope.sequence)
}

fn within_limits(operations: usize, bytes: usize) -> bool {
    operations <= BATCH_OPERATIONS && bytes <= BATCH_BYTES
}

impl Seq {
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Epoch {
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::world::{delete, key, ops, put};

    #[test]
    fn a_batch_fits_only_within_the_limits() {
        let some = |count: usize| ops(Epoch(1), (0..count).map(|n| delete(&format!("k{n}"))));
        let one = ops(Epoch(1), [delete("x")]);
        assert!(some(BATCH_OPERATIONS - 1).fits(&one));
        assert!(!some(BATCH_OPERATIONS).fits(&one));
        let large = ops(Epoch(1), [put("a", &"x".repeat(BATCH_BYTES - 1))]);
        assert!(!large.is_too_large() && !large.fits(&one));
    }

    #[test]
    fn liveness_is_the_top_level_member_live() {
        for (name, content, live) in [
            ("a.json", r#"{"live":true}"#, true),
            (
                "a.json",
                r#"{"kind":"job","body":{"live":false},"live":true}"#,
                true,
            ),
            ("a.json", r#"{"live":false}"#, false),
            ("a.json", r#"{"body":{"live":true}}"#, false),
            ("a.json", r#"{"live":"true"}"#, false),
            ("a.json", "no json", false),
            ("a.yaml", r#"{"live":true}"#, false),
        ] {
            let found = is_live(&key(name), content.as_bytes());
            assert_eq!(found, live, "{name} {content}");
        }
    }
}
