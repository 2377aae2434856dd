//! The files: one per key below the root. A put replaces a whole file. A delete also removes folders that become
//! empty. An append writes in place. A change becomes durable through the journal or a checkpoint. Every operation
//! can be repeated.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::disk::{Disk, DiskError, DiskFile, Form, Kind};
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

    /// Moves an object to its key. Does nothing if it is already there.
    pub(crate) fn adopt(&self, key: &Key, staged: &Staged) -> Result<(), DiskError> {
        let (from, to) = (self.staged(staged.name()), self.path(key));
        if self.disk.kind(&from)? == Kind::File {
            self.in_folder(&to, || self.disk.rename(&from, &to))?;
            failpoint::reach("object-adopted");
        } else if self.disk.kind(&to)? != Kind::File {
            // Readers of its record learn that the object is missing; the store continues.
            tracing::error!(%key, "a large object is missing: somebody removed its file from `tmp`");
        }
        Ok(())
    }

    /// The path of an object that has no key yet.
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

    /// A missing file is no error.
    pub(crate) fn delete(&self, key: &Key) -> Result<(), DiskError> {
        match self.disk.remove_file(&self.path(key)) {
            Ok(()) => {
                failpoint::reach("file-removed");
                self.prune(key)
            }
            Err(error) => match self.disk.kind(&self.path(key))? {
                // During a redo the key may already be a folder of a later commit, or lie below a later file.
                Kind::Folder | Kind::BelowFile => Ok(()),
                // A crash may have removed the file but not its folders.
                Kind::Nothing => self.prune(key),
                Kind::File => Err(error),
            },
        }
    }

    /// Also deletes the leftover of an interrupted replacement.
    pub(crate) fn delete_with_leftover(&self, key: &Key) -> Result<(), DiskError> {
        absent(self.disk.remove_file(&replace::temporary(&self.path(key))))?;
        self.delete(key)
    }

    /// Removes the empty folders above `key`.
    pub(crate) fn prune(&self, key: &Key) -> Result<(), DiskError> {
        use io::ErrorKind::{DirectoryNotEmpty, NotADirectory, NotFound, ResourceBusy};
        for folder in key.ancestors() {
            match self.disk.remove_folder(&self.path(&folder)) {
                Ok(()) => {}
                Err(error) if error.kind() == NotFound => {}
                // In use, a mount point, or now a file.
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

    /// Runs `operation`, which creates `path`. Creates the folder if it is missing.
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

    /// The content of a file. If it is longer than `limit`, fails with `FileTooLarge`.
    pub(crate) fn read(&self, key: &Key, limit: u64) -> Result<Option<Bytes>, DiskError> {
        absent(self.disk.read(&self.path(key), limit)).map(|found| found.map(Bytes::from))
    }

    /// Like [`Self::read`], but the content may still be an object in `tmp/`.
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

    /// Opens the file of a key, or the object that will get the key.
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
        match absent(self.disk.inspect(&self.path(key)))? {
            Some(details) if details.form == Form::File => Ok(Some(details.bytes)),
            // A link has a length of its own.
            Some(_) => self.open(key)?.map(|file| file.len()).transpose(),
            None => Ok(None),
        }
    }

    pub(crate) fn open(&self, key: &Key) -> Result<Option<DiskFile>, DiskError> {
        // Check the kind first, because a folder can be opened like a file.
        match self.kind(key)? {
            Kind::File => absent(self.disk.open_to_read(&self.path(key))),
            Kind::Nothing | Kind::Folder | Kind::BelowFile => Ok(None),
        }
    }

    /// Makes the name `key` and its folders durable.
    pub(crate) fn sync_folders_of(&self, key: &Key) -> Result<(), DiskError> {
        key.ancestors()
            .try_for_each(|folder| self.disk.sync_folder(&self.path(&folder)))?;
        self.disk.sync_folder(&self.root)
    }

    pub(crate) fn kind(&self, key: &Key) -> Result<Kind, DiskError> {
        self.disk.kind(&self.path(key))
    }

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

    /// The entries of a folder, in order. Skips names that are not keys.
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

/// Turns the errors for a missing file, a folder in its place or a file in place of its folder into `None`.
pub(crate) fn absent<T>(result: Result<T, DiskError>) -> Result<Option<T>, DiskError> {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | IsADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}
