//! An engine without a disk, for tests of what stands on a store. It keeps the same contract as the one on files,
//! outlives its engines as a disk would, and fails on demand in each way that a commit can.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::batch::{Batch, Epoch, InvalidBatch, Put, Seq, is_live};
use crate::disk::{Action, DiskError};
use crate::engine::{CommitError, Engine, OpenError, Page, Piece, ReadError, Reader};
use crate::key::{Key, Prefix};
use crate::limits::PAGE_KEYS;

/// What stays when an engine is gone. Clones are the same store.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<Contents>>);

/// An engine on a `MemoryStore`. Opening a second one fences the first.
#[derive(Debug)]
pub struct MemoryEngine {
    store: MemoryStore,
    epoch: Option<Epoch>,
    /// A commit of this opening had an unknown outcome.
    failure: Option<DiskError>,
}

#[derive(Clone, Debug)]
pub struct MemoryReader(MemoryStore);

/// What the next commit answers instead of its own result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// As if another engine had taken over; so it stays until the engine is opened again.
    Fenced,
    /// The outcome is unknown to the caller; `stored` says what it really is.
    Unknown {
        stored: bool,
    },
    TooLarge,
    Full,
}

#[derive(Debug, Default)]
struct Contents {
    files: BTreeMap<Key, Bytes>,
    epoch: Epoch,
    last: Seq,
    faults: VecDeque<Fault>,
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    /// An engine that is not open yet.
    pub fn engine(&self) -> MemoryEngine {
        MemoryEngine {
            store: self.clone(),
            epoch: None,
            failure: None,
        }
    }

    /// Lets a coming commit fail; several faults are used in order, one per commit.
    pub fn inject(&self, fault: Fault) {
        self.lock().faults.push_back(fault);
    }

    /// A panic elsewhere cannot come between two changes that belong together, so the lock stays usable.
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for MemoryEngine {
    type Reader = MemoryReader;

    async fn open(
        &mut self,
        live: &mut (dyn FnMut(Key, Bytes) + Send),
    ) -> Result<(Epoch, Seq), OpenError> {
        let mut contents = self.store.lock();
        contents.epoch = contents.epoch.next();
        self.epoch = Some(contents.epoch);
        self.failure = None;
        for (key, bytes) in contents
            .files
            .iter()
            .filter(|(key, bytes)| is_live(key, bytes))
        {
            live(key.clone(), bytes.clone());
        }
        Ok((contents.epoch, contents.last))
    }

    async fn commit(&mut self, batch: Batch) -> Result<Seq, CommitError> {
        let mut contents = self.store.lock();
        if let Some(source) = self.failure.clone() {
            return Err(CommitError::Unknown { source });
        }
        if self.epoch != Some(contents.epoch) || batch.epoch != contents.epoch {
            return Err(CommitError::Fenced {
                batch: batch.epoch,
                current: contents.epoch,
            });
        }
        let too_large = CommitError::TooLarge {
            operations: batch.len(),
            bytes: batch.bytes(),
        };
        if batch.is_too_large() {
            return Err(too_large);
        }
        if batch.is_empty() {
            return Ok(contents.last);
        }
        batch.check()?;
        contents.check(&batch)?;
        let batch = with_objects(batch).map_err(|source| CommitError::Unknown { source })?;
        match contents.faults.pop_front() {
            None => Ok(contents.apply(&batch)),
            Some(Fault::Fenced) => {
                contents.epoch = contents.epoch.next();
                Err(CommitError::Fenced {
                    batch: batch.epoch,
                    current: contents.epoch,
                })
            }
            Some(Fault::TooLarge) => Err(too_large),
            Some(Fault::Full) => Err(CommitError::Full {
                root: PathBuf::from("memory"),
            }),
            Some(Fault::Unknown { stored }) => {
                if stored {
                    contents.apply(&batch);
                }
                let injected = std::io::Error::other("a fault was injected");
                let source = DiskError::new(Action::SyncFile, Path::new("memory"), injected);
                self.failure = Some(source.clone());
                Err(CommitError::Unknown { source })
            }
        }
    }

    fn reader(&self) -> MemoryReader {
        MemoryReader(self.store.clone())
    }
}

/// Objects are files also for this engine, which takes their contents over; the files go with the batch.
fn with_objects(mut batch: Batch) -> Result<Batch, DiskError> {
    for (key, staged) in &batch.adopts {
        let bytes = staged.read()?.into();
        batch.puts.insert(key.clone(), Put { bytes, live: false });
    }
    batch.adopts.clear();
    Ok(batch)
}

impl Contents {
    fn check(&self, batch: &Batch) -> Result<(), InvalidBatch> {
        for key in batch.written() {
            let is_below_file = key
                .ancestors()
                .any(|folder| self.files.contains_key(&folder));
            if is_below_file || self.inside(&Prefix::of(key)).next().is_some() {
                return Err(InvalidBatch::PathConflict { key: key.clone() });
            }
        }
        let mut lengths: BTreeMap<&Key, u64> = BTreeMap::new();
        for append in &batch.appends {
            let key = &append.ledger;
            let length = *lengths
                .entry(key)
                .or_insert_with(|| self.files.get(key).map_or(0, |file| file.len() as u64));
            if append.at > length {
                return Err(InvalidBatch::Gap {
                    key: key.clone(),
                    at: append.at,
                    length,
                });
            }
            lengths.insert(key, length.max(append.at + append.bytes.len() as u64));
        }
        Ok(())
    }

    fn apply(&mut self, batch: &Batch) -> Seq {
        for key in &batch.deletes {
            self.files.remove(key);
        }
        for (key, put) in &batch.puts {
            self.files.insert(key.clone(), put.bytes.clone());
        }
        for append in &batch.appends {
            let mut content = self
                .files
                .get(&append.ledger)
                .map(|file| file.to_vec())
                .unwrap_or_default();
            // Checked to be at most the length, so it is an index.
            let at = append.at as usize;
            let end = at + append.bytes.len();
            content.resize(content.len().max(end), 0);
            content[at..end].copy_from_slice(&append.bytes);
            self.files.insert(append.ledger.clone(), content.into());
        }
        self.last = self.last.next();
        self.last
    }

    fn inside<'a>(&'a self, prefix: &'a Prefix) -> impl Iterator<Item = &'a Key> {
        let range = (prefix.lower_bound(), Bound::Unbounded);
        self.files
            .range(range)
            .map(|(key, _)| key)
            .take_while(|key| prefix.contains(key))
    }
}

impl Reader for MemoryReader {
    async fn get(&self, key: &Key) -> Result<Option<Bytes>, ReadError> {
        Ok(self.0.lock().files.get(key).cloned())
    }

    async fn piece(
        &self,
        key: &Key,
        before: u64,
        limit: usize,
    ) -> Result<Option<Piece>, ReadError> {
        let content = self.get(key).await?;
        Ok(content.map(|content| {
            let end = usize::try_from(before).map_or(content.len(), |end| end.min(content.len()));
            let at = end.saturating_sub(limit);
            Piece {
                at: at as u64,
                bytes: content.slice(at..end),
            }
        }))
    }

    async fn list(
        &self,
        prefix: &Prefix,
        before: Option<&Key>,
        limit: usize,
    ) -> Result<Page, ReadError> {
        let contents = self.0.lock();
        let found = contents
            .inside(prefix)
            .take_while(|key| before.is_none_or(|before| *key < before));
        let mut keys: Vec<Key> = found.cloned().collect();
        keys.reverse();
        let limit = limit.min(PAGE_KEYS);
        let more = keys.len() > limit;
        keys.truncate(limit);
        Ok(Page { keys, more })
    }

    async fn settled(&self) -> Result<(), ReadError> {
        Ok(())
    }
}
