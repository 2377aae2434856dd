//! The store as acknowledged: the overlay of pending batches over the tree. Readers use it, and the writer checks
//! each batch against it.

use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Bytes;

use crate::batch::{Batch, InvalidBatch};
use crate::disk::{DiskError, DiskFile, Kind};
use crate::engine::{CommitError, Length, Piece, ReadError, Reader};
use crate::key::{Key, Prefix};
use crate::limits::{LENGTHS_THREADS, OPTIMISTIC_READS, RECORDS_THREADS};
use crate::overlay::{self, Entry};
use crate::parallel;
use crate::pending::{Pending, Refused};
use crate::staged::Staged;
use crate::tree::Tree;

/// Reads the store of a `FileEngine`, on the runtime's threads for blocking work.
#[derive(Clone)]
pub struct FileReader {
    pub(crate) tree: Tree,
    pub(crate) pending: Arc<Pending>,
}

impl Reader for FileReader {
    async fn get(&self, key: &Key) -> Result<Option<Bytes>, ReadError> {
        let key = key.clone();
        self.off_thread(move |reader| reader.content(&key)).await
    }

    async fn get_many(&self, keys: Vec<Key>) -> Result<Vec<Option<Bytes>>, ReadError> {
        self.each(RECORDS_THREADS, keys, Self::content).await
    }

    async fn piece(
        &self,
        key: &Key,
        before: u64,
        limit: usize,
    ) -> Result<Option<Piece>, ReadError> {
        let key = key.clone();
        self.off_thread(move |reader| Ok(reader.piece_before(&key, before, limit)?))
            .await
    }

    async fn lengths(&self, keys: Vec<Key>) -> Result<Vec<Length>, ReadError> {
        let length = |reader: &Self, key: &Key| {
            let read = |entry: Option<&Entry>| overlay::length(&reader.tree, key, entry);
            Ok(reader.at_one_moment(key, read).map_err(ReadError::from))
        };
        self.each(LENGTHS_THREADS, keys, length).await
    }

    async fn children(&self, folder: &Prefix) -> Result<Vec<String>, ReadError> {
        let folder = folder.clone();
        self.off_thread(move |reader| reader.names(&folder)).await
    }

    async fn settled(&self) -> Result<(), ReadError> {
        self.off_thread(Self::wait_for_tree).await
    }
}

impl FileReader {
    /// Reads on a thread for blocking work. A panic there continues in the caller.
    async fn off_thread<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let reader = self.clone();
        match tokio::task::spawn_blocking(move || read(&reader)).await {
            Ok(read) => read,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(ReadError::Interrupted),
            },
        }
    }

    /// Calls `read` for each key on several threads, because each read may wait for the disk.
    async fn each<T: Send + 'static>(
        &self,
        threads: NonZeroUsize,
        keys: Vec<Key>,
        read: fn(&Self, &Key) -> Result<T, ReadError>,
    ) -> Result<Vec<T>, ReadError> {
        self.off_thread(move |reader| parallel::try_map(threads, &keys, |key| read(reader, key)))
            .await
    }

    fn piece_before(
        &self,
        key: &Key,
        before: u64,
        limit: usize,
    ) -> Result<Option<Piece>, DiskError> {
        self.at_one_moment(key, |entry| {
            let staged = entry.and_then(Entry::adopted);
            let file = self.tree.open_adopted(key, staged)?;
            let length = || file.as_ref().map_or(Ok(0), DiskFile::len);
            let end = before.min(entry.map_or_else(length, |entry| entry.length(length))?);
            let at = end.saturating_sub(limit as u64);
            // At most `limit`.
            let wanted = (end - at) as usize;
            let read = |_: Option<&Staged>| match &file {
                Some(file) => file.read_at(at, wanted).map(|bytes| Some(bytes.into())),
                None => Ok(None),
            };
            let bytes = match entry {
                Some(entry) => entry.piece(at, wanted, read)?,
                None => read(None)?,
            };
            Ok(bytes.map(|bytes| Piece { at, bytes }))
        })
    }

    fn names(&self, folder: &Prefix) -> Result<Vec<String>, ReadError> {
        self.wait_for_tree()?;
        let listed = self.tree.entries(folder)?;
        Ok(listed
            .iter()
            .map(|(key, _)| key.name().to_owned())
            .collect())
    }

    fn wait_for_tree(&self) -> Result<(), ReadError> {
        self.pending
            .wait_for_tree()
            .map_err(|refused| match refused {
                Refused::Failed(fault) => ReadError::Fault(fault),
                Refused::Full => ReadError::Unsettled,
            })
    }

    pub(crate) fn content(&self, key: &Key) -> Result<Option<Bytes>, ReadError> {
        self.at_one_moment(key, |entry| overlay::content(&self.tree, key, entry))
    }

    /// Reads a file from the overlay and the tree, consistently.
    fn at_one_moment<T, E>(
        &self,
        key: &Key,
        read: impl Fn(Option<&Entry>) -> Result<T, E>,
    ) -> Result<T, E> {
        for _ in 0..OPTIMISTIC_READS {
            let (entry, generation) = {
                let state = self.pending.lock();
                (state.overlay.get(key).cloned(), state.generation)
            };
            let found = read(entry.as_ref())?;
            // Records are replaced whole. A ledger grows in place, so a concurrent read may end within a piece.
            if key.is_record() || self.pending.lock().generation == generation {
                return Ok(found);
            }
        }
        // While the lock is held, everything the applier writes is also in the overlay.
        let state = self.pending.lock();
        read(state.overlay.get(key))
    }

    /// Refuses a batch that could not be applied after it was acknowledged.
    pub(crate) fn check(&self, batch: &Batch) -> Result<(), CommitError> {
        for key in batch.written() {
            if self.is_in_the_way(key)? {
                // The conflicting file may be deleted already, but still in the tree.
                self.pending.wait_for_tree()?;
                if self.is_in_the_way(key)? {
                    return Err(InvalidBatch::PathConflict { key: key.clone() }.into());
                }
            }
        }
        batch.check_appends(|key, at| Ok(self.length(key, at)?))
    }

    /// The length of a file, or any shorter length that reaches `enough`; then the tree is not read.
    fn length(&self, key: &Key, enough: u64) -> Result<u64, DiskError> {
        let state = self.pending.lock();
        let entry = state.overlay.get(key);
        let reached = entry.map_or(Ok(0), |entry| entry.length(|| Ok(0)))?;
        if reached >= enough {
            return Ok(reached);
        }
        let entry = entry.cloned();
        drop(state);
        let length = overlay::length(&self.tree, key, entry.as_ref())?;
        Ok(length.unwrap_or_default())
    }

    /// True if `key` is a folder, or one of its folders is a file.
    fn is_in_the_way(&self, key: &Key) -> Result<bool, CommitError> {
        let pending = {
            let state = self.pending.lock();
            // Its key was checked when it was written, as was every batch since.
            if state.overlay.get(key).is_some_and(Entry::exists) {
                return Ok(false);
            }
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
        let kind = self.tree.kind(key)?;
        Ok(pending || matches!(kind, Kind::Folder | Kind::BelowFile))
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::sync::Mutex;

    use super::*;
    use crate::disk::{Action, Disk};
    use crate::tests::world::{World, append, live, temporary_folder, tiny};

    #[tokio::test]
    async fn a_commit_does_not_read_files_that_pending_batches_change() {
        let folder = temporary_folder();
        let (jobs, looks) = (folder.path().join("jobs"), Arc::new(Mutex::new(0)));
        let seen = looks.clone();
        let disk = Disk::with_hook(move |action, path| match action {
            // Nothing reaches the tree.
            Action::CreateFile if path.starts_with(&jobs) => Err(ErrorKind::StorageFull.into()),
            Action::Inspect | Action::Open if path.parent() == Some(jobs.as_path()) => {
                *seen.lock().unwrap() += 1;
                Ok(())
            }
            _ => Ok(()),
        });
        let mut world = World::open_on(disk, folder.path(), tiny()).await.unwrap();
        let round = |n| [live("jobs/a.json", n), append("jobs/lines", n * 2, "x\n")];
        world.commit(round(0)).await.unwrap();
        *looks.lock().unwrap() = 0;
        for n in 1..5 {
            world.commit(round(n)).await.unwrap();
        }
        assert_eq!(*looks.lock().unwrap(), 0);
        let beyond = world.commit([append("jobs/lines", 11, "x\n")]).await;
        assert!(
            matches!(
                &beyond,
                Err(CommitError::Invalid(InvalidBatch::Gap { length: 10, .. }))
            ),
            "{beyond:?}"
        );
    }
}
