//! The store as everything acknowledged makes it: the overlay of pending batches over the tree. Readers see the files
//! through it, and the writer checks a batch against it before anything is written.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use crate::batch::{Batch, InvalidBatch};
use crate::disk::{DiskError, DiskFile, Kind};
use crate::engine::{CommitError, Page, Piece, ReadError, Reader};
use crate::key::{Key, Prefix};
use crate::limits::{GET_BYTES, OPTIMISTIC_READS, PAGE_KEYS};
use crate::overlay::Entry;
use crate::pending::{Pending, Refused};
use crate::staged::Staged;
use crate::tree::Tree;

/// Reads a `FileEngine`'s store. Each `get` is at most one small file read and each `list` one walk, both blocking.
#[derive(Clone)]
pub struct FileReader {
    pub(crate) tree: Tree,
    pub(crate) pending: Arc<Pending>,
}

impl Reader for FileReader {
    async fn get(&self, key: &Key) -> Result<Option<Bytes>, ReadError> {
        match self.content(key) {
            Ok(content) => Ok(content),
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                let length = self.length(key)?;
                Err(ReadError::TooLarge {
                    key: key.clone(),
                    length,
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn piece(
        &self,
        key: &Key,
        before: u64,
        limit: usize,
    ) -> Result<Option<Piece>, ReadError> {
        let piece = self.look(key, |entry| {
            let staged = entry.and_then(Entry::adopted);
            let file = self.tree.open_adopted(key, staged)?;
            let length = || file.as_ref().map_or(Ok(0), DiskFile::len);
            let end = before.min(entry.map_or_else(length, |entry| entry.length(length))?);
            let at = end.saturating_sub(limit as u64);
            // At most `limit`.
            let wanted = (end - at) as usize;
            let read = |_: Option<&Staged>| match &file {
                Some(file) => file.read_at(at, wanted).map(Some),
                None => Ok(None),
            };
            let bytes = match entry {
                Some(entry) => entry.piece(at, wanted, read)?,
                None => read(None)?.map(Bytes::from),
            };
            Ok(bytes.map(|bytes| Piece { at, bytes }))
        });
        Ok(piece?)
    }

    async fn list(
        &self,
        prefix: &Prefix,
        before: Option<&Key>,
        limit: usize,
    ) -> Result<Page, ReadError> {
        let mut page = PageBuilder {
            page: Page::default(),
            limit: limit.min(PAGE_KEYS),
        };
        // Taken before the walk: what is applied during it is in one of the two, or in both.
        let mut pending: Vec<(Key, bool)> = {
            let state = self.pending.lock();
            let inside = state
                .overlay
                .inside(prefix)
                .map(|(key, entry)| (key.clone(), entry.exists()));
            inside
                .take_while(|(key, _)| before.is_none_or(|before| key < before))
                .collect()
        };
        self.tree.walk(prefix, before, |key| {
            while let Some((later, exists)) = pending.pop_if(|(later, _)| *later > key) {
                if exists && page.push(later).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            match pending.pop_if(|(same, _)| *same == key) {
                Some((_, false)) => Ok(ControlFlow::Continue(())),
                Some((_, true)) | None => Ok(page.push(key)),
            }
        })?;
        while let Some((key, exists)) = pending.pop() {
            if exists && page.push(key).is_break() {
                break;
            }
        }
        Ok(page.page)
    }

    async fn settled(&self) -> Result<(), ReadError> {
        let pending = self.pending.clone();
        let waited = tokio::task::spawn_blocking(move || pending.wait_for_tree()).await;
        match waited {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Refused::Failed(source))) => Err(ReadError::Disk(source)),
            Ok(Err(Refused::Full)) | Err(_) => Err(ReadError::Unsettled),
        }
    }
}

/// Takes one key more than the page holds, to know that there is more.
struct PageBuilder {
    page: Page,
    limit: usize,
}

impl PageBuilder {
    fn push(&mut self, key: Key) -> ControlFlow<()> {
        if self.page.keys.len() == self.limit {
            self.page.more = true;
            return ControlFlow::Break(());
        }
        self.page.keys.push(key);
        ControlFlow::Continue(())
    }
}

impl FileReader {
    fn content(&self, key: &Key) -> Result<Option<Bytes>, DiskError> {
        let tree = |staged: Option<&Staged>| self.tree.read_adopted(key, staged, GET_BYTES);
        self.look(key, |entry| match entry {
            Some(entry) => entry.content(tree),
            None => tree(None),
        })
    }

    /// Reads a file by what the overlay has of it and what the tree says, as of one moment.
    fn look<T>(
        &self,
        key: &Key,
        read: impl Fn(Option<&Entry>) -> Result<T, DiskError>,
    ) -> Result<T, DiskError> {
        for _ in 0..OPTIMISTIC_READS {
            let (entry, generation) = {
                let state = self.pending.lock();
                (state.overlay.get(key).cloned(), state.generation)
            };
            let found = read(entry.as_ref())?;
            // Records are replaced whole. A ledger grows in place, and a read beside that may end within a piece.
            if key.is_record() || self.pending.lock().generation == generation {
                return Ok(found);
            }
        }
        // While nothing more becomes visible, what the applier writes is in the overlay too.
        let state = self.pending.lock();
        read(state.overlay.get(key))
    }

    /// Refuses what could not be applied after it was acknowledged.
    pub(crate) fn check(&self, batch: &Batch) -> Result<(), CommitError> {
        for key in batch.written() {
            if self.is_in_the_way(key)? {
                // The conflict may be with a file that is deleted already and only still in the tree.
                self.pending
                    .wait_for_tree()
                    .map_err(|refused| self.refuse(refused))?;
                if self.is_in_the_way(key)? {
                    return Err(InvalidBatch::PathConflict { key: key.clone() }.into());
                }
            }
        }
        self.check_appends(batch)
    }

    fn check_appends(&self, batch: &Batch) -> Result<(), CommitError> {
        let mut lengths: BTreeMap<&Key, u64> = BTreeMap::new();
        for append in &batch.appends {
            let length = match lengths.get(&append.ledger) {
                Some(length) => *length,
                None => self
                    .length(&append.ledger)
                    .map_err(|source| CommitError::Unknown { source })?,
            };
            if append.at > length {
                let key = append.ledger.clone();
                return Err(InvalidBatch::Gap {
                    key,
                    at: append.at,
                    length,
                }
                .into());
            }
            lengths.insert(
                &append.ledger,
                length.max(append.at + append.bytes.len() as u64),
            );
        }
        Ok(())
    }

    fn length(&self, key: &Key) -> Result<u64, DiskError> {
        let entry = self.pending.lock().overlay.get(key).cloned();
        let tree = || self.tree.length(key).map(Option::unwrap_or_default);
        match entry {
            Some(entry) => entry.length(tree),
            None => tree(),
        }
    }

    /// Whether a folder has the name of `key`, or a file that of one of its folders.
    fn is_in_the_way(&self, key: &Key) -> Result<bool, CommitError> {
        let pending = {
            let state = self.pending.lock();
            let files = key.ancestors().any(|folder| {
                state
                    .overlay
                    .get(&folder)
                    .is_some_and(|entry| entry.exists())
            });
            files
                || state
                    .overlay
                    .inside(&Prefix::of(key))
                    .any(|(_, entry)| entry.exists())
        };
        let kind = self
            .tree
            .kind(key)
            .map_err(|source| CommitError::Unknown { source })?;
        Ok(pending || matches!(kind, Kind::Folder | Kind::BelowFile))
    }

    pub(crate) fn refuse(&self, refused: Refused) -> CommitError {
        match refused {
            Refused::Full => CommitError::Full {
                root: self.tree.root().to_owned(),
            },
            Refused::Failed(source) => CommitError::Unknown { source },
        }
    }
}
