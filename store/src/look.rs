//! Reads a store from outside: the files as they will be once the journal has been redone. It takes no lock and writes
//! nothing, so it works beside the process that has the store open. A caller that finds a problem asks
//! [`Look::is_current`] first, since the store may have changed meanwhile.

mod content;
mod folders;

use std::path::{Path, PathBuf};

use bytes::Bytes;

pub use self::folders::{Entry, Role};
use crate::batch::{Epoch, Seq};
use crate::control::{self, StoreId};
use crate::disk::{Disk, DiskError};
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

/// A store as it was at one moment.
pub struct Look {
    tree: Tree,
    paths: Paths,
    survey: Survey,
    fingerprint: Fingerprint,
}

/// What changes with every commit and every checkpoint, and is quick to read again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fingerprint {
    checkpoint: Vec<u8>,
    segments: Vec<PathBuf>,
    end: scan::End,
}

/// How far a store has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The files alone show everything up to this commit.
    pub checkpoint: Seq,
    /// The last commit that is known of.
    pub last: Seq,
    /// The latest opening.
    pub epoch: Epoch,
}

impl Look {
    /// Looks at the store at `root`. One of a newer format, or none at all, is an error; damage is not.
    pub fn at(root: impl AsRef<Path>) -> Result<Self, OpenError> {
        let (disk, paths) = (Disk::new(), Paths::new(root.as_ref()));
        // No folder at all is another mistake than one with other files.
        disk.identity(&paths.root)?;
        let store = control::store_at(&disk, &paths)?;
        let mut tries = 1;
        loop {
            match Self::read(&disk, &paths, store) {
                // A segment or an index can go while it is looked for; then a checkpoint has come in between.
                Err(error) if error.is_missing() && tries < READ_TRIES => tries += 1,
                result => return Ok(result?),
            }
        }
    }

    fn read(disk: &Disk, paths: &Paths, store: StoreId) -> Result<Self, DiskError> {
        // Read first, so that a checkpoint that comes in between shows.
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

    /// How far the store has come.
    pub fn position(&self) -> Position {
        let Survey { base, scan, .. } = &self.survey;
        Position {
            checkpoint: base.seq,
            last: scan.last,
            epoch: base.epoch.max(scan.epoch),
        }
    }

    /// What is wrong with the store's own files.
    pub fn damage(&self) -> &[Damage] {
        &self.survey.damage
    }

    pub fn root(&self) -> &Path {
        &self.paths.root
    }

    /// Whether nothing has been committed since this look, so that what was read through it fits together.
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

    /// The user that the state folder belongs to.
    pub fn owner(&self) -> Result<Option<u32>, DiskError> {
        let root = self.tree.disk.details(&self.paths.root)?;
        Ok(root.map(|details| details.owner))
    }

    /// The process that has the store open, as far as this system tells.
    pub fn user(&self) -> Option<Owner> {
        lock::holder(&self.tree.disk, &self.paths.lock)
    }

    /// The live records as the next start would stream them; none when it would have to look for them.
    pub fn live(&self) -> Option<impl Iterator<Item = (&Key, &Bytes)>> {
        self.live_set().map(LiveSet::iter)
    }

    /// The live record of that key, as the next start would stream it.
    pub fn live_record(&self, key: &Key) -> Option<&Bytes> {
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
