//! Large objects: files too big for a batch, written once and then named by a record. An object is whole and durable
//! before its key exists. Keys of objects are never part of a batch: a redo after a crash would do an old change to a
//! newer object. Everything here blocks.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

use crate::disk::{Disk, DiskError, DiskFile};
use crate::key::Key;
use crate::layout::Layout;
use crate::tree::Tree;

const TEMPORARY: &str = "object-";

/// Makes the names of unfinished objects unique within the process; the lock of the store keeps others away.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// The large objects of the store at a root.
#[derive(Clone)]
pub struct Objects {
    tree: Tree,
    tmp: PathBuf,
}

/// An object being written; gone when dropped unfinished.
pub struct ObjectWriter {
    tree: Tree,
    file: DiskFile,
    /// Whether the file has its key, and is no longer ours to remove.
    is_named: bool,
    size: u64,
    hasher: Sha256,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    pub sha256: [u8; 32],
    /// In bytes.
    pub size: u64,
}

impl Objects {
    /// The objects of the store at `root`, which an engine has opened in this process.
    pub fn new(root: impl AsRef<Path>) -> Self {
        Self::on(Disk::new(), root.as_ref())
    }

    pub(crate) fn on(disk: Disk, root: &Path) -> Self {
        Self {
            tree: Tree::new(disk, root.to_owned()),
            tmp: Layout::new(root).tmp,
        }
    }

    /// Begins an object that has no key yet.
    pub fn create(&self) -> Result<ObjectWriter, DiskError> {
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            match self
                .tree
                .disk
                .create_file(&self.tmp.join(format!("{TEMPORARY}{number}")))
            {
                // Left by an earlier process; the next open removes it.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                result => {
                    let (tree, hasher) = (self.tree.clone(), Sha256::new());
                    return Ok(ObjectWriter {
                        tree,
                        file: result?,
                        is_named: false,
                        size: 0,
                        hasher,
                    });
                }
            }
        }
    }

    /// The object at `key`, open for reading, and its size in bytes.
    pub fn open(&self, key: &Key) -> Result<Option<(File, u64)>, DiskError> {
        let Some(file) = self.tree.open(key)? else {
            return Ok(None);
        };
        let size = file.len()?;
        Ok(Some((file.into_std()?, size)))
    }
}

impl ObjectWriter {
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.file.write_at(bytes, self.size)?;
        self.size += bytes.len() as u64;
        self.hasher.update(bytes);
        Ok(())
    }

    /// Bytes written so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// SHA-256 of what was written so far.
    pub fn sha256(&self) -> [u8; 32] {
        self.hasher.clone().finalize().into()
    }

    /// Puts the object at `key`, in place of one that is there. It is durable when this returns.
    pub fn finish(mut self, key: &Key) -> Result<ObjectInfo, DiskError> {
        let info = ObjectInfo {
            sha256: self.sha256(),
            size: self.size,
        };
        self.file.sync_data()?;
        let path = self.tree.path(key);
        self.tree
            .in_folder(&path, || self.tree.disk.rename(self.file.path(), &path))?;
        self.is_named = true;
        self.tree.sync_folders_of(key)?;
        Ok(info)
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if !self.is_named
            && let Err(error) = self.tree.disk.remove_file(self.file.path())
        {
            tracing::warn!(%error, "an unfinished object stays until the next start");
        }
    }
}

/// Whether a name in `tmp/` is that of an unfinished object.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMPORARY)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn objects(root: &Path) -> Objects {
        std::fs::create_dir(root.join("tmp")).unwrap();
        Objects::new(root)
    }

    fn is_tidy(root: &Path) -> bool {
        std::fs::read_dir(root.join("tmp"))
            .unwrap()
            .next()
            .is_none()
    }

    #[test]
    fn an_object_is_there_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let objects = objects(folder.path());
        let key = Key::new("jobs/1/artifacts/a.zip").unwrap();
        let mut writer = objects.create().unwrap();
        writer.write(b"hello ").unwrap();
        assert!(objects.open(&key).unwrap().is_none());
        writer.write(b"world").unwrap();
        let info = writer.finish(&key).unwrap();
        assert_eq!(
            (info.size, info.sha256),
            (11, Sha256::digest(b"hello world").into())
        );
        let (mut file, size) = objects.open(&key).unwrap().unwrap();
        let mut content = String::new();
        file.read_to_string(&mut content).unwrap();
        assert_eq!((content.as_str(), size), ("hello world", 11));
        assert!(is_tidy(folder.path()));
    }

    #[test]
    fn an_object_dropped_or_failed_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let objects = objects(folder.path());
        let mut writer = objects.create().unwrap();
        writer.write(b"half").unwrap();
        drop(writer);
        std::fs::write(folder.path().join("file"), "").unwrap();
        let below_a_file = Key::new("file/object").unwrap();
        assert!(objects.create().unwrap().finish(&below_a_file).is_err());
        assert!(is_tidy(folder.path()));
    }
}
