//! Large objects: files too big for a batch. An object is written to `tmp/`, whole and durable before it is
//! [`Staged`]; a batch gives it its key together with the record that names it. So no object stands at a key that no
//! record knows, and none is named that does not exist. Everything here blocks.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::disk::{DiskError, DiskFile};
use crate::failpoint;
use crate::key::Key;
use crate::limits::{LARGE_WRITE, OBJECT_PIECE_BYTES, OPTIMISTIC_READS};
use crate::parallel;
use crate::pending::Pending;
use crate::staged::{Staged, StagedName};
use crate::tree::Tree;

/// What a large object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    pub sha256: [u8; 32],
    /// In bytes.
    pub size: u64,
}

/// The large objects of an open store.
#[derive(Clone)]
pub(crate) struct Objects {
    tree: Tree,
    pending: Arc<Pending>,
}

/// An object being written; gone when dropped unfinished.
pub(crate) struct ObjectWriter {
    tree: Tree,
    name: StagedName,
    file: DiskFile,
    /// Whether the file is whole, and its [`Staged`] the one to remove it.
    is_finished: bool,
    size: u64,
    hasher: Sha256,
}

impl Object {
    /// Reads all of a file.
    pub(crate) fn read(file: &DiskFile) -> Result<Self, DiskError> {
        let (mut size, mut hasher) = (0, Sha256::new());
        loop {
            let piece = file.read_at(size, OBJECT_PIECE_BYTES)?;
            size += piece.len() as u64;
            hasher.update(&piece);
            if piece.len() < OBJECT_PIECE_BYTES {
                let sha256 = hasher.finalize().into();
                return Ok(Self { sha256, size });
            }
        }
    }
}

impl Objects {
    pub(crate) fn new(tree: Tree, pending: Arc<Pending>) -> Self {
        Self { tree, pending }
    }

    pub(crate) fn create(&self) -> Result<ObjectWriter, DiskError> {
        let tree = self.tree.clone();
        let name = StagedName::random(&tree.disk)?;
        let file = tree.disk.create_file(&tree.staged(&name))?;
        Ok(ObjectWriter {
            tree,
            name,
            file,
            is_finished: false,
            size: 0,
            hasher: Sha256::new(),
        })
    }

    /// The object at `key`, open for reading. One that was adopted is there at once.
    pub(crate) fn open(&self, key: &Key) -> Result<Option<DiskFile>, DiskError> {
        // The applier may give an object its key at any moment; then the next look finds it there.
        for _ in 0..OPTIMISTIC_READS {
            let adopted = self.pending.adopted(key);
            let found = match &adopted {
                Some(staged) => self.tree.open_staged(staged.name())?,
                None => self.tree.open(key)?,
            };
            if found.is_some() || adopted.is_none() {
                return Ok(found);
            }
        }
        self.tree.open(key)
    }
}

impl ObjectWriter {
    /// Adds pieces in their order. Many bytes are hashed while they are written, and are on their way to the disk
    /// afterwards.
    pub(crate) fn write_all(
        &mut self,
        pieces: &[impl AsRef<[u8]> + Sync],
    ) -> Result<(), DiskError> {
        let Self {
            file, size, hasher, ..
        } = self;
        let start = *size;
        let write = || {
            let mut at = start;
            for piece in pieces {
                file.write_at(piece.as_ref(), at)?;
                at += piece.as_ref().len() as u64;
            }
            Ok(at)
        };
        let mut hash = || pieces.iter().for_each(|piece| hasher.update(piece));
        let bytes: usize = pieces.iter().map(|piece| piece.as_ref().len()).sum();
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

    /// The object as a batch can adopt it: whole, and durable under its name in `tmp/`.
    pub(crate) fn finish(mut self) -> Result<Staged, DiskError> {
        failpoint::reach("object-begun");
        self.file.sync_data()?;
        failpoint::reach("object-synced");
        self.tree.sync_staged()?;
        failpoint::reach("object-staged");
        self.is_finished = true;
        Ok(Staged::written(
            self.tree.disk.clone(),
            self.file.path().to_owned(),
            self.name.clone(),
            self.size,
            self.hasher.clone().finalize().into(),
        ))
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if !self.is_finished
            && let Err(error) = self.tree.disk.remove_file(self.file.path())
        {
            tracing::warn!(%error, "an unfinished object stays until the next start");
        }
    }
}
