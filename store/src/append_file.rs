//! Growing files of the tree, written beside the journal: too much to pass through batches, and durable only when asked.
//! See [`GrowingFile`](crate::volume::GrowingFile) for what they promise.

use crate::disk::{DiskError, DiskFile};
use crate::failpoint;
use crate::key::Key;
use crate::limits::WRITEBACK_BYTES;
use crate::tree::Tree;

/// The one writer of a growing file.
pub(crate) struct AppendFile {
    tree: Tree,
    key: Key,
    file: DiskFile,
    length: u64,
    /// Whether the name of the file is durable.
    is_named: bool,
    /// Up to where the disk was asked to begin.
    begun: u64,
}

impl AppendFile {
    /// Opens the file at `key`, or creates it. What it holds stays as it is.
    pub(crate) fn open(tree: Tree, key: &Key) -> Result<Self, DiskError> {
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
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<u64, DiskError> {
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
    pub(crate) fn cut(&mut self, length: u64) -> Result<(), DiskError> {
        if length < self.length {
            self.file.set_len(length)?;
            self.length = length;
            self.begun = self.begun.min(length);
        }
        Ok(())
    }

    /// Bytes in the file.
    pub(crate) fn len(&self) -> u64 {
        self.length
    }

    /// Everything appended so far is durable when this returns. After an error nothing is known about what is, and a
    /// second try says nothing either.
    pub(crate) fn sync(&mut self) -> Result<(), DiskError> {
        self.file.sync_data()?;
        if !self.is_named {
            self.tree.sync_folders_of(&self.key)?;
            self.is_named = true;
        }
        failpoint::reach("log-synced");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_failed_append_left_is_overwritten() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicBool, Ordering};

        let folder = tempfile::tempdir().unwrap();
        let key = Key::new("log").unwrap();
        let full = Arc::new(AtomicBool::new(true));
        let switch = full.clone();
        let disk = crate::disk::Disk::with_hook(move |action, _| match action {
            crate::disk::Action::Write if switch.load(Ordering::SeqCst) => {
                Err(std::io::ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        });
        let mut file = AppendFile::open(Tree::new(disk, folder.path().to_owned()), &key).unwrap();
        assert!(file.append(b"lost").unwrap_err().is_full());
        full.store(false, Ordering::SeqCst);
        assert_eq!(file.append(b"kept").unwrap(), 0);
        assert_eq!(std::fs::read(folder.path().join("log")).unwrap(), b"kept");
    }
}
