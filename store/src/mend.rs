//! Repairs a store that nobody has open: files that cannot be trusted are moved to `quarantine/`, and a damaged journal
//! is cut where it becomes unreadable. Nothing is lost by it: everything is in `quarantine/`, at the same path.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::batch::{Seq, sequence_of};
use crate::control::{self, Checkpoint, Condition, StoreId};
use crate::disk::{Disk, DiskError, Form, Kind};
use crate::failpoint;
use crate::limits::GET_BYTES;
use crate::live;
use crate::lock::Lock;
use crate::open_error::OpenError;
use crate::paths::Paths;
use crate::quarantine;
use crate::scan;
use crate::segment::SEARCH_AHEAD;
use crate::staged::StagedName;
use crate::survey::Survey;
use crate::tree::Tree;

/// A store that is being repaired. Nobody else can open it meanwhile.
pub struct Mending {
    disk: Disk,
    paths: Paths,
    store: StoreId,
    _lock: Lock,
}

/// A file that left its place. Both paths are below the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moved {
    pub from: String,
    pub to: String,
}

/// Changes that were lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The first change that can no longer be read.
    pub first: Seq,
    /// The last that is known to have been there.
    pub last: Seq,
}

impl Mending {
    /// Takes the lock of the store at `root`.
    pub fn begin(root: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::begin_on(Disk::new(), root.as_ref())
    }

    pub(crate) fn begin_on(disk: Disk, root: &Path) -> Result<Self, OpenError> {
        let paths = Paths::new(root);
        let store = control::store_at(&disk, &paths)?;
        let lock = Lock::take(&disk, &paths.lock, &paths.root)?;
        Ok(Self {
            disk,
            paths,
            store,
            _lock: lock,
        })
    }

    /// Moves what stands at `path` aside; none when nothing does. Durable when this returns.
    pub fn set_aside(&self, path: &str) -> Result<Option<Moved>, DiskError> {
        let from = self.paths.root.join(path);
        let to = quarantine::take(&self.disk, &self.paths, &from)?;
        Ok(to.map(|to| self.moved(&from, &to)))
    }

    /// Takes everything from others than the owner, and answers the mode before.
    pub fn close_to_others(&self, path: &str) -> Result<Option<u32>, DiskError> {
        let path = self.paths.root.join(path);
        let Some(details) = self.disk.details(&path)? else {
            return Ok(None);
        };
        let owners = if details.form == Form::Folder {
            0o700
        } else {
            0o600
        };
        self.disk.set_mode(&path, details.mode & owners)?;
        Ok(Some(details.mode))
    }

    /// Moves the live indexes aside: the next start reads the files instead.
    pub fn set_index_aside(&self) -> Result<Vec<Moved>, DiskError> {
        let mut moved = Vec::new();
        for path in live::paths(&self.disk, &self.paths.index)? {
            moved.extend(self.set_aside(&self.paths.below(&path))?);
        }
        Ok(moved)
    }

    /// Writes `CHECKPOINT` anew when it is missing or damaged and an index or the journal still tells the position. The journal is
    /// then done again from further back than needed, which changes nothing.
    pub fn mend_checkpoint(&self) -> Result<Vec<Moved>, OpenError> {
        let segments = scan::segments(&self.disk, &self.paths.journal)?;
        match control::read_checkpoint(&self.disk, &self.paths.checkpoint, self.store) {
            Ok(Some(_)) | Err(OpenError::Disk(_)) => return Ok(Vec::new()),
            // What went with it may have been acknowledged: that is a loss to be accepted.
            Ok(None) if segments.is_empty() => return Ok(Vec::new()),
            Ok(None) | Err(_) => {}
        }
        let index = live::survey(&self.disk, &self.paths.index, self.store, Seq(0))?.newest;
        let at = match index {
            Some(index) => index.at,
            None if segments.is_empty() => return Ok(Vec::new()),
            None => scan::beginning(&self.disk, &self.paths.journal)?,
        };
        let moved = self.set_aside(&self.paths.below(&self.paths.checkpoint))?;
        // Whether a segment was being written is not known any more: where one is, the newest must not be missing.
        let condition = if segments.is_empty() {
            Condition::Stopped
        } else {
            Condition::Open
        };
        self.write_checkpoint(at, condition)?;
        Ok(moved.into_iter().collect())
    }

    fn write_checkpoint(&self, at: Checkpoint, condition: Condition) -> Result<(), DiskError> {
        let (disk, path) = (&self.disk, &self.paths.checkpoint);
        control::write_checkpoint(disk, path, self.store, at, condition)
    }

    /// Gives up the records behind the damage of a journal, or those that a backup lacks. The readable records are applied,
    /// except where a file is newer already. Then the segments go to the quarantine. An intact journal stays as it is.
    pub fn accept_loss(&self) -> Result<Option<(Loss, Vec<Moved>)>, OpenError> {
        let (disk, paths) = (&self.disk, &self.paths);
        let tree = Tree::new(disk.clone(), paths.root.clone());
        // What cannot be read is moved aside first, by `mend_checkpoint`.
        control::read_checkpoint(disk, &paths.checkpoint, self.store)?;
        let survey = Survey::read(disk, paths, self.store)?;
        let Some((first, last)) = survey.lost() else {
            return Ok(None);
        };
        let epoch = survey.base.epoch.max(survey.scan.epoch);
        let root = disk.open_to_read(&paths.root)?;
        // A tool may have copied no empty folders.
        paths.create_folders(disk)?;
        survey.overlay.redo_unless(&tree, |key, seq| {
            // Only records tell when they were written. Anything else may be large, and is not read for nothing.
            if !key.is_record() {
                return Ok(false);
            }
            let content = tree.read(key, GET_BYTES)?;
            let newer = content.and_then(|bytes| sequence_of(key, &bytes));
            Ok(newer.is_some_and(|newer| newer > seq))
        })?;
        root.sync_file_system()?;
        // When this is interrupted, the store may open and remove these files, or the loss has to be accepted again.
        let mut leaving = live::paths(disk, &paths.index)?;
        leaving.extend(survey.scan.segments);
        leaving.extend(self.objects_without_a_place()?);
        let moved = self.name_aside(&leaving)?;
        // No number is given out twice: a file may be left from a lost change. One more, so that no index is as new: an
        // index may be the only evidence of the loss.
        let last = newest_record(&tree, last)?;
        let at = Checkpoint {
            seq: last.next(),
            epoch,
        };
        self.write_checkpoint(at, Condition::Stopped)?;
        self.remove(&leaving)?;
        Ok(Some((Loss { first, last }, moved)))
    }

    /// Gives files a second name in the quarantine. Durable when this returns.
    fn name_aside(&self, files: &[PathBuf]) -> Result<Vec<Moved>, DiskError> {
        let mut moved = Vec::new();
        for path in files {
            if self.disk.kind(path)? == Kind::File {
                let to = quarantine::keep(&self.disk, &self.paths, path, &[])?;
                moved.push(self.moved(path, &to));
            }
        }
        Ok(moved)
    }

    /// Takes their first names from files of the journal, the index and `tmp/`. Durable when this returns.
    fn remove(&self, files: &[PathBuf]) -> Result<(), DiskError> {
        for path in files {
            match self.disk.remove_file(path) {
                Err(error) if error.is_missing() => {}
                result => result?,
            }
            failpoint::reach("loss-removed");
        }
        let Paths {
            journal,
            index,
            tmp,
            ..
        } = &self.paths;
        [journal, index, tmp]
            .into_iter()
            .try_for_each(|folder| self.disk.sync_folder(folder))
    }

    /// Objects that no readable record gives a place: the next start would remove them.
    fn objects_without_a_place(&self) -> Result<Vec<PathBuf>, DiskError> {
        let tmp = &self.paths.tmp;
        let names = self.disk.list(tmp)?.into_iter().map(|(name, _)| name);
        let objects = names.filter(|name| StagedName::parse(name).is_some());
        Ok(objects.map(|name| tmp.join(name)).collect())
    }

    fn moved(&self, from: &Path, to: &Path) -> Moved {
        Moved {
            from: self.paths.below(from),
            to: self.paths.below(to),
        }
    }
}

/// The last change that any record says it was written by, if it is later than `known`. A number that no journal can have
/// come to is none.
fn newest_record(tree: &Tree, known: Seq) -> Result<Seq, DiskError> {
    let plausible = known.0..known.0.saturating_add(SEARCH_AHEAD);
    let mut newest = known;
    tree.walk(|key| {
        if key.is_record() {
            match tree.read(&key, GET_BYTES) {
                Ok(content) => {
                    let sequence = content.and_then(|bytes| sequence_of(&key, &bytes));
                    let believed = sequence.filter(|sequence| plausible.contains(&sequence.0));
                    newest = newest.max(believed.unwrap_or(newest));
                }
                // The check tells of what cannot be read.
                Err(error) => tracing::warn!(%key, %error, "a record is passed over"),
            }
        }
    })?;
    Ok(newest)
}
