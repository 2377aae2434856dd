//! Growing files of the tree. Their content does not pass through the journal, and it is durable only after a sync.
//! See [`GrowingFile`].

use crate::disk::{DiskError, DiskFile};
use crate::failpoint;
use crate::fault::Fault;
use crate::key::Key;
use crate::limits::WRITEBACK_BYTES;
use crate::tree::Tree;
use crate::volume::GrowingFile;

pub(crate) struct AppendFile {
    tree: Tree,
    key: Key,
    file: DiskFile,
    length: u64,
    /// Whether the name of the file is durable.
    is_named: bool,
    /// Writeback has started for the bytes up to here.
    begun: u64,
}

impl AppendFile {
    /// Creates the file if it is missing, and never truncates it.
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
}

impl GrowingFile for AppendFile {
    fn size(&self) -> u64 {
        self.length
    }

    fn append(&mut self, bytes: &[u8]) -> Result<u64, Fault> {
        let at = self.length;
        self.file.write_at(bytes, at)?;
        failpoint::reach("log-appended");
        self.length += bytes.len() as u64;
        let not_begun = self.length.saturating_sub(self.begun);
        if not_begun >= WRITEBACK_BYTES {
            // Start early, so that the sync at the end of a long log finds little to write.
            self.file.start_writeback(self.begun, not_begun);
            self.begun = self.length;
        }
        Ok(at)
    }

    fn cut(&mut self, size: u64) -> Result<(), Fault> {
        if size < self.length {
            self.file.set_len(size)?;
            self.length = size;
            self.begun = self.begun.min(size);
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Fault> {
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
    fn the_next_append_overwrites_the_rest_of_a_failed_append() {
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
