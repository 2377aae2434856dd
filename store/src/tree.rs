//! The files: one per key below the root. A put replaces a file whole. A delete also removes folders that become empty.
//! An append writes in place. The journal or a checkpoint makes changes durable. Every operation can be repeated.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::disk::{Disk, DiskError, DiskFile, Kind};
use crate::failpoint;
use crate::key::{Key, Prefix};
use crate::limits::FOLDER_RACES;
use crate::paths::Paths;
use crate::replace;
use crate::staged::{Staged, StagedName};

#[derive(Clone)]
pub(crate) struct Tree {
    pub(crate) disk: Disk,
    root: PathBuf,
    /// Where objects wait for their keys.
    pub(crate) tmp: PathBuf,
}

impl Tree {
    pub(crate) fn new(disk: Disk, root: PathBuf) -> Self {
        let tmp = Paths::new(&root).tmp;
        Self { disk, root, tmp }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, key: &Key) -> PathBuf {
        self.root.join(key.as_str())
    }

    pub(crate) fn put(&self, key: &Key, bytes: &[u8]) -> Result<(), DiskError> {
        let path = self.path(key);
        self.in_folder(&path, || replace::replace(&self.disk, &path, bytes))
    }

    /// Gives an object its key, unless it has it already.
    pub(crate) fn adopt(&self, key: &Key, staged: &Staged) -> Result<(), DiskError> {
        let (from, to) = (self.staged(staged.name()), self.path(key));
        if self.disk.kind(&from)? == Kind::File {
            self.in_folder(&to, || self.disk.rename(&from, &to))?;
            failpoint::reach("object-adopted");
        } else if self.disk.kind(&to)? != Kind::File {
            // The record that names the object answers that it is gone, and everything else goes on.
            tracing::error!(%key, "a large object is missing: its file was removed from `tmp` before it had its place");
        }
        Ok(())
    }

    /// Where an object is that has no key yet.
    pub(crate) fn staged(&self, name: &StagedName) -> PathBuf {
        self.tmp.join(name.as_str())
    }

    pub(crate) fn append(&self, key: &Key, at: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let path = self.path(key);
        let file = self.in_folder(&path, || self.disk.open_or_create(&path))?;
        file.write_at(bytes, at)?;
        failpoint::reach("ledger-appended");
        Ok(())
    }

    /// A file that does not exist is deleted already.
    pub(crate) fn delete(&self, key: &Key) -> Result<(), DiskError> {
        match self.disk.remove_file(&self.path(key)) {
            Ok(()) => {
                failpoint::reach("file-removed");
                self.prune(key)
            }
            Err(error) => match self.disk.kind(&self.path(key))? {
                // During a redo the name may stand for a folder of a later commit, or lie below a later file.
                Kind::Folder | Kind::BelowFile => Ok(()),
                // A crash may have come between the file and its folders.
                Kind::Nothing => self.prune(key),
                Kind::File => Err(error),
            },
        }
    }

    /// Deletes a file, and what a replacement left that was interrupted before.
    pub(crate) fn delete_with_leftover(&self, key: &Key) -> Result<(), DiskError> {
        absent(self.disk.remove_file(&replace::temporary(&self.path(key))))?;
        self.delete(key)
    }

    /// Removes the folders that `key` was the last file of.
    pub(crate) fn prune(&self, key: &Key) -> Result<(), DiskError> {
        use io::ErrorKind::{DirectoryNotEmpty, NotADirectory, NotFound, ResourceBusy};
        for folder in key.ancestors() {
            match self.disk.remove_folder(&self.path(&folder)) {
                Ok(()) => {}
                Err(error) if error.kind() == NotFound => {}
                // In use, a mount point, or a file by now.
                Err(error)
                    if matches!(
                        error.kind(),
                        DirectoryNotEmpty | ResourceBusy | NotADirectory
                    ) =>
                {
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Runs `operation`, which creates `path`, and makes the folder when it is missing.
    pub(crate) fn in_folder<T>(
        &self,
        path: &Path,
        operation: impl Fn() -> Result<T, DiskError>,
    ) -> Result<T, DiskError> {
        let mut result = operation();
        for _ in 0..FOLDER_RACES {
            match &result {
                Err(error) if error.is_missing() => {
                    if let Some(folder) = path.parent() {
                        self.disk.create_folders(folder)?;
                        failpoint::reach("folder-made");
                    }
                    result = operation();
                }
                Ok(_) | Err(_) => break,
            }
        }
        result
    }

    /// The content of a file, if it is at most `limit` bytes long; a longer one is an error of kind `FileTooLarge`.
    pub(crate) fn read(&self, key: &Key, limit: u64) -> Result<Option<Bytes>, DiskError> {
        absent(self.disk.read(&self.path(key), limit)).map(|found| found.map(Bytes::from))
    }

    /// The same, for a file whose content an object in `tmp/` may still be.
    pub(crate) fn read_adopted(
        &self,
        key: &Key,
        staged: Option<&Staged>,
        limit: u64,
    ) -> Result<Option<Bytes>, DiskError> {
        if let Some(staged) = staged
            && let Some(bytes) = absent(self.disk.read(&self.staged(staged.name()), limit))?
        {
            return Ok(Some(bytes.into()));
        }
        self.read(key, limit)
    }

    /// The file of a key, or of the object that will get it.
    pub(crate) fn open_adopted(
        &self,
        key: &Key,
        staged: Option<&Staged>,
    ) -> Result<Option<DiskFile>, DiskError> {
        if let Some(staged) = staged
            && let Some(file) = absent(self.disk.open_to_read(&self.staged(staged.name())))?
        {
            return Ok(Some(file));
        }
        self.open(key)
    }

    pub(crate) fn length(&self, key: &Key) -> Result<Option<u64>, DiskError> {
        self.open(key)?.map(|file| file.len()).transpose()
    }

    /// The file at `key`, to be read.
    pub(crate) fn open(&self, key: &Key) -> Result<Option<DiskFile>, DiskError> {
        // A folder can be opened like a file, so the kind is asked first.
        match self.kind(key)? {
            Kind::File => absent(self.disk.open_to_read(&self.path(key))),
            Kind::Nothing | Kind::Folder | Kind::BelowFile => Ok(None),
        }
    }

    /// Makes the name `key` durable, with the folders it lies in.
    pub(crate) fn sync_folders_of(&self, key: &Key) -> Result<(), DiskError> {
        key.ancestors()
            .try_for_each(|folder| self.disk.sync_folder(&self.path(&folder)))?;
        self.disk.sync_folder(&self.root)
    }

    pub(crate) fn kind(&self, key: &Key) -> Result<Kind, DiskError> {
        self.disk.kind(&self.path(key))
    }

    /// Visits every key.
    pub(crate) fn walk(&self, mut visit: impl FnMut(Key)) -> Result<(), DiskError> {
        let mut waiting = self.entries(&Prefix::root())?;
        while let Some((key, kind)) = waiting.pop() {
            match kind {
                Kind::Folder => waiting.extend(self.entries(&Prefix::of(&key))?),
                Kind::File => visit(key),
                Kind::Nothing | Kind::BelowFile => {}
            }
        }
        Ok(())
    }

    /// What a folder holds, in order. Names that are no keys are the engine's own or somebody else's.
    pub(crate) fn entries(&self, prefix: &Prefix) -> Result<Vec<(Key, Kind)>, DiskError> {
        let listed = absent(self.disk.list(&self.root.join(prefix.as_str())))?.unwrap_or_default();
        let named = listed
            .into_iter()
            .filter_map(|(name, kind)| Some((prefix.join(&name)?, kind)));
        let mut entries: Vec<(Key, Kind)> = named.collect();
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(entries)
    }
}

/// A missing file, a folder in its place or a file in place of its folder are all no file.
pub(crate) fn absent<T>(result: Result<T, DiskError>) -> Result<Option<T>, DiskError> {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | IsADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}
