//! Growing files written beside the journal, such as the logs of jobs: too much to pass through batches, and durable
//! only when asked. Callers frame their own records and decide what a torn end means. The last piece of such a file may
//! ride in a batch instead: the same bytes at the same place, so that writing them twice is harmless, and its writer
//! adds nothing after it. Everything here blocks.

use std::path::Path;

use crate::disk::{Disk, DiskError, DiskFile};
use crate::failpoint;
use crate::key::Key;
use crate::limits::WRITEBACK_BYTES;
use crate::tree::Tree;

/// The one writer of a growing file.
pub struct AppendFile {
    tree: Tree,
    key: Key,
    file: DiskFile,
    length: u64,
    /// Whether the name of the file is durable.
    is_named: bool,
    /// Up to where the disk was asked to begin.
    begun: u64,
}

/// A reader of a growing file, beside its writer or after it.
pub struct AppendReader {
    file: DiskFile,
}

impl AppendFile {
    /// Opens the file at `key` of the store at `root`, or creates it. What it holds stays as it is.
    pub fn open(root: impl AsRef<Path>, key: &Key) -> Result<Self, DiskError> {
        Self::on(Disk::new(), root.as_ref(), key)
    }

    pub(crate) fn on(disk: Disk, root: &Path, key: &Key) -> Result<Self, DiskError> {
        let tree = Tree::new(disk, root.to_owned());
        let path = tree.path(key);
        let file = tree.in_folder(&path, || tree.disk.open_or_create(&path))?;
        let length = file.len()?;
        Ok(Self {
            tree,
            key: key.clone(),
            file,
            length,
            is_named: false,
            begun: length,
        })
    }

    /// Adds `bytes` at the end and answers where they begin. A failure may leave a part of them behind the end, which
    /// the next append overwrites.
    pub fn append(&mut self, bytes: &[u8]) -> Result<u64, DiskError> {
        let at = self.length;
        self.file.write_at(bytes, at)?;
        failpoint::reach("log-appended");
        self.length += bytes.len() as u64;
        let not_begun = self.length.saturating_sub(self.begun);
        if not_begun >= WRITEBACK_BYTES {
            // So that the sync at the end of a long log finds little to do.
            self.file.start_writeback(self.begun, not_begun);
            self.begun = self.length;
        }
        Ok(at)
    }

    /// Cuts off what lies behind `length`: the torn end that its caller found.
    pub fn cut(&mut self, length: u64) -> Result<(), DiskError> {
        if length < self.length {
            self.file.set_len(length)?;
            self.length = length;
            self.begun = self.begun.min(length);
        }
        Ok(())
    }

    /// Bytes in the file.
    pub fn len(&self) -> u64 {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Everything appended so far is durable when this returns. After an error nothing is known about what is, and a
    /// second try says nothing either.
    pub fn sync(&mut self) -> Result<(), DiskError> {
        self.file.sync_data()?;
        if !self.is_named {
            self.tree.sync_folders_of(&self.key)?;
            self.is_named = true;
        }
        failpoint::reach("log-synced");
        Ok(())
    }
}

impl AppendReader {
    /// Opens the file at `key` of the store at `root`, if there is one.
    pub fn open(root: impl AsRef<Path>, key: &Key) -> Result<Option<Self>, DiskError> {
        let tree = Tree::new(Disk::new(), root.as_ref().to_owned());
        Ok(tree.open(key)?.map(|file| Self { file }))
    }

    /// Bytes in the file at present.
    pub fn len(&self) -> Result<u64, DiskError> {
        self.file.len()
    }

    pub fn is_empty(&self) -> Result<bool, DiskError> {
        Ok(self.len()? == 0)
    }

    /// At most `limit` bytes from byte `at` on; fewer only at the end of the file.
    pub fn read(&self, at: u64, limit: usize) -> Result<Vec<u8>, DiskError> {
        let left = self.len()?.saturating_sub(at);
        let limit = limit.min(usize::try_from(left).unwrap_or(usize::MAX));
        self.file.read_at(at, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_grows_and_goes_on_where_it_ended() {
        let folder = tempfile::tempdir().unwrap();
        let key = Key::new("jobs/1/log.jsonl").unwrap();
        assert!(AppendReader::open(folder.path(), &key).unwrap().is_none());
        let mut file = AppendFile::open(folder.path(), &key).unwrap();
        assert!(file.is_empty());
        assert_eq!(file.append(b"one\n").unwrap(), 0);
        assert_eq!(file.append(b"two\n").unwrap(), 4);
        file.sync().unwrap();
        drop(file);
        let mut file = AppendFile::open(folder.path(), &key).unwrap();
        let reader = AppendReader::open(folder.path(), &key).unwrap().unwrap();
        assert_eq!(file.append(b"three").unwrap(), 8);
        assert_eq!((file.len(), reader.len().unwrap()), (13, 13));
        assert_eq!(reader.read(4, 6).unwrap(), b"two\nth");
        assert_eq!(reader.read(8, 100).unwrap(), b"three");
        assert_eq!(reader.read(13, 100).unwrap(), b"");
        assert_eq!(reader.read(99, 100).unwrap(), b"");
    }

    #[test]
    fn what_a_failed_append_left_is_overwritten() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicBool, Ordering};

        let folder = tempfile::tempdir().unwrap();
        let key = Key::new("log").unwrap();
        let full = Arc::new(AtomicBool::new(true));
        let switch = full.clone();
        let disk = Disk::with_hook(move |action, _| match action {
            crate::disk::Action::Write if switch.load(Ordering::SeqCst) => {
                Err(std::io::ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        });
        let mut file = AppendFile::on(disk, folder.path(), &key).unwrap();
        assert!(file.append(b"lost").unwrap_err().is_full());
        full.store(false, Ordering::SeqCst);
        assert_eq!(file.append(b"kept").unwrap(), 0);
        assert_eq!(std::fs::read(folder.path().join("log")).unwrap(), b"kept");
    }
}
