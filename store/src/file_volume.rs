//! Large objects and growing files as files of the tree. An object is written to `tmp/` until a batch adopts it.

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::append_file::AppendFile;
use crate::disk::{DiskError, DiskFile};
use crate::failpoint;
use crate::fault::Fault;
use crate::key::Key;
use crate::limits::{COPY_BYTES, LARGE_WRITE};
use crate::manifest::{self, Manifest};
use crate::parallel;
use crate::paths::Paths;
use crate::pending::Pending;
use crate::space::{DiskBytes, Gauge, Room};
use crate::staged::{Object, OwnedFile, Staged, StagedName};
use crate::tree::{Tree, absent};
use crate::volume::{GrowingFile, ObjectWriter, ReadAt, Volume};

pub(crate) struct FileVolume {
    pub(crate) tree: Tree,
    pub(crate) pending: Arc<Pending>,
    pub(crate) gauge: Gauge,
}

impl Volume for FileVolume {
    fn create_object(&self) -> Result<Box<dyn ObjectWriter>, Fault> {
        let tree = self.tree.clone();
        let name = StagedName::random(&tree.disk)?;
        let file = tree.disk.create_file(&tree.staged(&name))?;
        let owned = OwnedFile::new(tree.disk.clone(), file.path().to_owned());
        Ok(Box::new(UnfinishedObject {
            tree,
            name,
            file,
            owned,
            size: 0,
            hasher: Sha256::new(),
        }))
    }

    fn open_object(&self, key: &Key) -> Result<Option<Box<dyn ReadAt>>, Fault> {
        // The applier may rename the object to its key at any moment; then the file at the key is opened.
        let staged = self.pending.adopted(key);
        let file = self.tree.open_adopted(key, staged.as_ref())?;
        Ok(file.map(reading))
    }

    fn share_object(&self, key: &Key, object: Object) -> Result<Option<Staged>, Fault> {
        let Tree { disk, tmp, .. } = &self.tree;
        let name = StagedName::random(disk)?;
        let shared = self.tree.staged(&name);
        // The object moves from `tmp/` to its key, so search in that order.
        let adopted = self.pending.adopted(key);
        let before = adopted.map(|staged| self.tree.staged(staged.name()));
        for path in before.into_iter().chain([self.tree.path(key)]) {
            match absent(disk.link(&path, &shared)) {
                Ok(None) => {}
                Ok(Some(())) => {
                    let owned = OwnedFile::new(disk.clone(), shared);
                    disk.sync_folder(tmp)?;
                    return Ok(Some(Staged::written(owned, name, object)));
                }
                Err(error) if error.is_unsupported() => return self.copy_object(key),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    fn open_growing(&self, key: &Key) -> Result<Box<dyn GrowingFile>, Fault> {
        let file = AppendFile::open(self.tree.clone(), key)?;
        Ok(Box::new(file))
    }

    fn read_growing(&self, key: &Key) -> Result<Option<Box<dyn ReadAt>>, Fault> {
        Ok(self.tree.open(key)?.map(reading))
    }

    fn room(&self) -> Result<Room, Fault> {
        Ok(self.gauge.read()?)
    }

    fn disk_bytes(&self) -> Result<Option<DiskBytes>, Fault> {
        Ok(Some(self.gauge.bytes()?))
    }

    fn newest_backup(&self) -> Result<Option<u64>, Fault> {
        let path = Paths::new(self.tree.root()).last_backup;
        let manifest = Manifest::read(&self.tree.disk, &path)?;
        Ok(manifest.map(|manifest| manifest.made))
    }

    fn forget_restored(&self) -> Result<(), Fault> {
        let (disk, root) = (&self.tree.disk, self.tree.root());
        Ok(manifest::forget_restored(disk, root)?)
    }
}

impl FileVolume {
    /// Used where the file system has no hard links.
    fn copy_object(&self, key: &Key) -> Result<Option<Staged>, Fault> {
        let staged = self.pending.adopted(key);
        let Some(file) = self.tree.open_adopted(key, staged.as_ref())? else {
            return Ok(None);
        };
        let mut copy = self.create_object()?;
        let mut at = 0;
        loop {
            let piece = Bytes::from(file.read_at(at, COPY_BYTES)?);
            if piece.is_empty() {
                return copy.finish().map(Some);
            }
            at += piece.len() as u64;
            copy.write(&[piece])?;
        }
    }
}

fn reading(file: DiskFile) -> Box<dyn ReadAt> {
    Box::new(file)
}

impl ReadAt for DiskFile {
    fn size(&self) -> Result<u64, Fault> {
        Ok(self.len()?)
    }

    fn read_at(&self, at: u64, limit: usize) -> Result<Vec<u8>, Fault> {
        let left = self.len()?.saturating_sub(at);
        let limit = limit.min(usize::try_from(left).unwrap_or(usize::MAX));
        Ok(Self::read_at(self, at, limit)?)
    }
}

/// An object in `tmp/` that is being written.
struct UnfinishedObject {
    tree: Tree,
    name: StagedName,
    file: DiskFile,
    owned: OwnedFile,
    size: u64,
    hasher: Sha256,
}

impl ObjectWriter for UnfinishedObject {
    /// Large writes are hashed on a second thread.
    fn write(&mut self, pieces: &[Bytes]) -> Result<(), Fault> {
        let Self {
            file, size, hasher, ..
        } = self;
        let start = *size;
        let write = || {
            let mut at = start;
            for piece in pieces {
                file.write_at(piece, at)?;
                at += piece.len() as u64;
            }
            Ok::<_, DiskError>(at)
        };
        let mut hash = || pieces.iter().for_each(|piece| hasher.update(piece));
        let bytes: usize = pieces.iter().map(Bytes::len).sum();
        if bytes < LARGE_WRITE {
            *size = write()?;
            hash();
            return Ok(());
        }
        let ((), written) = parallel::both(hash, write);
        *size = written?;
        file.start_writeback(start, *size - start);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Staged, Fault> {
        failpoint::reach("object-begun");
        self.file.sync_data()?;
        failpoint::reach("object-synced");
        self.tree.disk.sync_folder(&self.tree.tmp)?;
        failpoint::reach("object-staged");
        let object = Object {
            sha256: self.hasher.finalize().into(),
            size: self.size,
        };
        Ok(Staged::written(self.owned, self.name, object))
    }
}
