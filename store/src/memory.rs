//! An engine without a disk, for tests of code that uses a store. It keeps the contract of the engine on files, its
//! data outlives the engine, and commits fail on demand in each possible way. Nothing in it waits, so a test can run
//! everything on one thread with its own clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::batch::{Batch, Epoch, InvalidBatch, Seq, is_live};
use crate::engine::{
    CloseError, CommitError, Engine, Length, LiveRecord, OpenError, Piece, ReadError, Reader,
};
use crate::fault::{Fault, FaultKind};
use crate::key::{Key, Prefix};
use crate::space::{DiskBytes, Room};
use crate::staged::{Object, Staged, StagedName};
use crate::volume::{GrowingFile, ObjectWriter, ReadAt, Volume};

/// The data, which outlives the engine. Clones share the store.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<Contents>>);

/// An engine on a `MemoryStore`. Opening a second one fences the first.
#[derive(Debug)]
pub struct MemoryEngine {
    store: MemoryStore,
    epoch: Option<Epoch>,
    /// The unknown outcome of an earlier commit of this opening.
    failure: Option<Fault>,
}

/// A fault for the next commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injected {
    /// As if another engine had taken over. Lasts until the engine is opened again.
    Fenced,
    /// The caller does not learn the outcome; `stored` decides it.
    Unknown {
        stored: bool,
    },
    TooLarge,
    Full,
}

#[derive(Debug, Default)]
struct Contents {
    files: BTreeMap<Key, Bytes>,
    set_aside: BTreeSet<Key>,
    epoch: Epoch,
    last: Seq,
    room: Room,
    /// Counter for names of objects.
    objects: u128,
    injected: VecDeque<Injected>,
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn engine(&self) -> MemoryEngine {
        MemoryEngine {
            store: self.clone(),
            epoch: None,
            failure: None,
        }
    }

    /// Makes a later commit fail. Several faults are used in order, one per commit.
    pub fn inject(&self, injected: Injected) {
        self.lock().injected.push_back(injected);
    }

    pub fn set_room(&self, room: Room) {
        self.lock().room = room;
    }

    /// No update can stop halfway, so the data is valid even after a panic elsewhere.
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for MemoryEngine {
    type Reader = MemoryStore;

    async fn open(
        &mut self,
        live: &mut (dyn FnMut(&[LiveRecord<'_>]) + Send),
    ) -> Result<(Epoch, Seq), OpenError> {
        let mut contents = self.store.lock();
        contents.epoch = contents.epoch.next();
        self.epoch = Some(contents.epoch);
        self.failure = None;
        let files = contents.files.iter().map(|(key, bytes)| (key, &**bytes));
        let records: Vec<_> = files.filter(|(key, bytes)| is_live(key, bytes)).collect();
        live(&records);
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
        match contents.injected.pop_front() {
            None => Ok(contents.apply(&batch)),
            Some(Injected::Fenced) => {
                contents.epoch = contents.epoch.next();
                Err(CommitError::Fenced {
                    batch: batch.epoch,
                    current: contents.epoch,
                })
            }
            Some(Injected::TooLarge) => Err(too_large),
            Some(Injected::Full) => Err(CommitError::Full),
            Some(Injected::Unknown { stored }) => {
                if stored {
                    contents.apply(&batch);
                }
                let injected = std::io::Error::other("a fault was injected");
                let source = Fault::new(FaultKind::Unsynced, injected);
                self.failure = Some(source.clone());
                Err(CommitError::Unknown { source })
            }
        }
    }

    fn reader(&self) -> MemoryStore {
        self.store.clone()
    }

    fn volume(&self) -> Arc<dyn Volume> {
        Arc::new(self.store.clone())
    }

    async fn set_aside(&mut self, key: &Key, _: &[u8]) -> Result<String, Fault> {
        self.store.lock().set_aside.insert(key.clone());
        Ok(format!("the damaged record {key} in memory"))
    }

    async fn has_set_aside(&self, folder: &Prefix) -> Result<bool, Fault> {
        let contents = self.store.lock();
        let mut keys = contents.set_aside.iter();
        Ok(keys.any(|key| folder.contains(key) || folder.as_str() == key.as_str()))
    }

    fn is_restored(&self) -> bool {
        // Backups are made of folders.
        false
    }

    async fn close(mut self) -> Result<(), CloseError> {
        self.epoch = None;
        Ok(())
    }
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
        let length = |key: &Key| self.files.get(key).map_or(0, |file| file.len() as u64);
        batch.check_appends(|key, _| Ok(length(key)))
    }

    fn apply(&mut self, batch: &Batch) -> Seq {
        for key in &batch.deletes {
            self.files.remove(key);
        }
        for (key, put) in &batch.puts {
            self.files.insert(key.clone(), put.bytes.clone());
        }
        for (key, staged) in &batch.adopts {
            if let Some(content) = staged.content() {
                self.files.insert(key.clone(), content.clone());
            }
        }
        for append in &batch.appends {
            self.write(&append.ledger, append.at, &append.bytes);
        }
        self.last = self.last.next();
        self.last
    }

    /// `at` is at most the length of the file.
    fn write(&mut self, key: &Key, at: u64, bytes: &[u8]) {
        let content = self.files.remove(key).unwrap_or_default();
        let mut content = Vec::from(content);
        let at = at as usize;
        let end = at + bytes.len();
        content.resize(content.len().max(end), 0);
        content[at..end].copy_from_slice(bytes);
        self.files.insert(key.clone(), content.into());
    }

    fn inside<'a>(&'a self, prefix: &'a Prefix) -> impl Iterator<Item = &'a Key> {
        let range = (Bound::Included(prefix.start()), Bound::Unbounded);
        self.files
            .range::<str, _>(range)
            .map(|(key, _)| key)
            .take_while(|key| prefix.contains(key))
    }
}

impl Reader for MemoryStore {
    async fn get(&self, key: &Key) -> Result<Option<Bytes>, ReadError> {
        Ok(self.lock().files.get(key).cloned())
    }

    async fn get_many(&self, keys: Vec<Key>) -> Result<Vec<Option<Bytes>>, ReadError> {
        let contents = self.lock();
        let found = keys.iter().map(|key| contents.files.get(key).cloned());
        Ok(found.collect())
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

    async fn lengths(&self, keys: Vec<Key>) -> Result<Vec<Length>, ReadError> {
        let found = self.get_many(keys).await?.into_iter();
        Ok(found
            .map(|content| Ok(content.map(|content| content.len() as u64)))
            .collect())
    }

    async fn children(&self, folder: &Prefix) -> Result<Vec<String>, ReadError> {
        let contents = self.lock();
        let names = contents.inside(folder).filter_map(|key| folder.child(key));
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        Ok(names.into_iter().collect())
    }

    async fn settled(&self) -> Result<(), ReadError> {
        Ok(())
    }
}

struct MemoryObject {
    store: MemoryStore,
    content: Vec<u8>,
}

struct MemoryFile {
    store: MemoryStore,
    key: Key,
    size: u64,
}

impl Volume for MemoryStore {
    fn is_immediate(&self) -> bool {
        true
    }

    fn create_object(&self) -> Result<Box<dyn ObjectWriter>, Fault> {
        Ok(Box::new(MemoryObject {
            store: self.clone(),
            content: Vec::new(),
        }))
    }

    fn open_object(&self, key: &Key) -> Result<Option<Box<dyn ReadAt>>, Fault> {
        let content = self.lock().files.get(key).cloned();
        Ok(content.map(|content| Box::new(content) as Box<dyn ReadAt>))
    }

    fn share_object(&self, key: &Key, _: Object) -> Result<Option<Staged>, Fault> {
        let mut contents = self.lock();
        contents.objects += 1;
        let name = StagedName::numbered(contents.objects);
        let content = contents.files.get(key).cloned();
        Ok(content.map(|content| Staged::in_memory(name, content)))
    }

    fn open_growing(&self, key: &Key) -> Result<Box<dyn GrowingFile>, Fault> {
        let mut contents = self.lock();
        let content = contents.files.entry(key.clone()).or_default();
        Ok(Box::new(MemoryFile {
            store: self.clone(),
            key: key.clone(),
            size: content.len() as u64,
        }))
    }

    fn read_growing(&self, key: &Key) -> Result<Option<Box<dyn ReadAt>>, Fault> {
        let is_there = self.lock().files.contains_key(key);
        Ok(is_there.then(|| {
            Box::new(MemoryFile {
                store: self.clone(),
                key: key.clone(),
                size: 0,
            }) as Box<dyn ReadAt>
        }))
    }

    fn room(&self) -> Result<Room, Fault> {
        Ok(self.lock().room)
    }

    fn disk_bytes(&self) -> Result<Option<DiskBytes>, Fault> {
        Ok(None)
    }

    fn newest_backup(&self) -> Result<Option<u64>, Fault> {
        Ok(None)
    }

    fn forget_restored(&self) -> Result<(), Fault> {
        Ok(())
    }
}

impl ObjectWriter for MemoryObject {
    fn write(&mut self, pieces: &[Bytes]) -> Result<(), Fault> {
        pieces
            .iter()
            .for_each(|piece| self.content.extend_from_slice(piece));
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Staged, Fault> {
        let mut contents = self.store.lock();
        contents.objects += 1;
        let name = StagedName::numbered(contents.objects);
        Ok(Staged::in_memory(name, self.content.clone().into()))
    }
}

impl GrowingFile for MemoryFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn append(&mut self, bytes: &[u8]) -> Result<u64, Fault> {
        let at = self.size;
        self.store.lock().write(&self.key, at, bytes);
        self.size += bytes.len() as u64;
        Ok(at)
    }

    fn cut(&mut self, size: u64) -> Result<(), Fault> {
        if size < self.size {
            let mut contents = self.store.lock();
            if let Some(content) = contents.files.get_mut(&self.key) {
                // Below the size of the file, so it is an index.
                content.truncate(size as usize);
            }
            self.size = size;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

impl ReadAt for MemoryFile {
    fn size(&self) -> Result<u64, Fault> {
        let contents = self.store.lock();
        Ok(contents
            .files
            .get(&self.key)
            .map_or(0, |file| file.len() as u64))
    }

    fn read_at(&self, at: u64, limit: usize) -> Result<Vec<u8>, Fault> {
        let content = self.store.lock().files.get(&self.key).cloned();
        content.unwrap_or_default().read_at(at, limit)
    }
}

impl ReadAt for Bytes {
    fn size(&self) -> Result<u64, Fault> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, at: u64, limit: usize) -> Result<Vec<u8>, Fault> {
        let at = usize::try_from(at).unwrap_or(usize::MAX).min(self.len());
        let end = at.saturating_add(limit).min(self.len());
        Ok(self[at..end].to_vec())
    }
}
