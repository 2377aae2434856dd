//! Reads a store from outside: the files as they will be after the journal is replayed. It takes no lock and
//! writes nothing, so it works while another process has the store open. A caller that finds a problem checks
//! [`Look::is_current`] first, because the store may have changed meanwhile.

mod content;
mod folders;

use std::path::{Path, PathBuf};

pub use self::folders::{Entry, Role};
use crate::batch::{Epoch, Seq};
use crate::control::{self, StoreId};
use crate::disk::{Disk, DiskError};
use crate::engine::LiveRecord;
use crate::key::Key;
use crate::limits::{CONTROL_FILE_BYTES, READ_TRIES};
use crate::live::LiveSet;
use crate::lock::{self, Owner};
use crate::open_error::OpenError;
use crate::paths::Paths;
use crate::scan;
pub use crate::staged::Object;
use crate::survey::Survey;
pub use crate::survey::{Damage, Part};
use crate::tree::Tree;

/// A snapshot of a store.
pub struct Look {
    tree: Tree,
    paths: Paths,
    survey: Survey,
    fingerprint: Fingerprint,
}

/// Changes with every commit and every checkpoint, and is quick to read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fingerprint {
    checkpoint: Vec<u8>,
    segments: Vec<PathBuf>,
    end: scan::End,
}

/// The progress of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The tree is durable up to this commit.
    pub checkpoint: Seq,
    /// The last known commit.
    pub last: Seq,
    /// The number of the latest opening.
    pub epoch: Epoch,
}

impl Look {
    /// Reads the store at `root`. Fails if there is no store or its format is newer. Damage is not an error here.
    pub fn at(root: impl AsRef<Path>) -> Result<Self, OpenError> {
        let (disk, paths) = (Disk::new(), Paths::new(root.as_ref()));
        // A missing folder must give a different error than a folder with other files.
        disk.identity(&paths.root)?;
        let store = control::store_at(&disk, &paths)?;
        let mut tries = 1;
        loop {
            match Self::read(&disk, &paths, store) {
                // A missing segment or index means that a checkpoint removed it meanwhile.
                Err(error) if error.is_missing() && tries < READ_TRIES => tries += 1,
                result => return Ok(result?),
            }
        }
    }

    fn read(disk: &Disk, paths: &Paths, store: StoreId) -> Result<Self, DiskError> {
        // Read the checkpoint first, so that a concurrent checkpoint is noticed.
        let checkpoint = checkpoint_bytes(disk, paths)?;
        let survey = Survey::read(disk, paths, store)?;
        let fingerprint = Fingerprint {
            checkpoint,
            segments: survey.scan.segments.clone(),
            end: survey.scan.end.clone(),
        };
        Ok(Self {
            tree: Tree::new(disk.clone(), paths.root.clone()),
            paths: paths.clone(),
            survey,
            fingerprint,
        })
    }

    pub fn position(&self) -> Position {
        let Survey { base, scan, .. } = &self.survey;
        Position {
            checkpoint: base.seq,
            last: scan.last,
            epoch: base.epoch.max(scan.epoch),
        }
    }

    /// Damage in the files of the engine.
    pub fn damage(&self) -> &[Damage] {
        &self.survey.damage
    }

    pub fn root(&self) -> &Path {
        &self.paths.root
    }

    /// True if nothing was committed since this snapshot, so that everything read through it is consistent.
    pub fn is_current(&self) -> Result<bool, DiskError> {
        let (disk, paths) = (&self.tree.disk, &self.paths);
        let read = || -> Result<_, DiskError> {
            let segments = scan::segments(disk, &paths.journal)?;
            Ok(Fingerprint {
                checkpoint: checkpoint_bytes(disk, paths)?,
                end: scan::end_at(disk, &segments, self.fingerprint.end.offset)?,
                segments,
            })
        };
        match read() {
            Ok(now) => Ok(now == self.fingerprint),
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The id of the user that owns the state folder.
    pub fn owner(&self) -> Result<Option<u32>, DiskError> {
        let root = self.tree.disk.details(&self.paths.root)?;
        Ok(root.map(|details| details.owner))
    }

    /// The process that has the store open, if the system can tell.
    pub fn user(&self) -> Option<Owner> {
        lock::holder(&self.tree.disk, &self.paths.lock)
    }

    /// The live records that the next start finds. `None` if the next start has to rebuild them from the tree.
    pub fn live(&self) -> Option<impl Iterator<Item = LiveRecord<'_>>> {
        self.live_set().map(LiveSet::iter)
    }

    /// See [`Self::live`].
    pub fn live_record(&self, key: &Key) -> Option<&[u8]> {
        self.live_set()?.get(key)
    }

    fn live_set(&self) -> Option<&LiveSet> {
        self.survey.index.as_ref().map(|index| &index.live)
    }
}

fn checkpoint_bytes(disk: &Disk, paths: &Paths) -> Result<Vec<u8>, DiskError> {
    match disk.read(&paths.checkpoint, CONTROL_FILE_BYTES) {
        Err(error) if error.is_missing() => Ok(Vec::new()),
        result => result,
    }
}
