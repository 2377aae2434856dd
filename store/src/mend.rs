//! Repairs a store that no process has open. Files that cannot be trusted are moved to `quarantine/`, and a damaged
//! journal ends at its first unreadable record. Nothing is deleted: `quarantine/` keeps every file at the same path.

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

/// A store that is being repaired. It is locked, so that nobody else can open it.
pub struct Mending {
    disk: Disk,
    paths: Paths,
    store: StoreId,
    _lock: Lock,
}

/// A file that was moved. Both paths are relative to the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moved {
    pub from: String,
    pub to: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The first unreadable change.
    pub first: Seq,
    /// The last lost change that is known.
    pub last: Seq,
}

impl Mending {
    /// Locks the store at `root`.
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

    /// Moves the file or folder at `path` to the quarantine; `None` if there is none. Durable when this returns.
    pub fn set_aside(&self, path: &str) -> Result<Option<Moved>, DiskError> {
        let from = self.paths.root.join(path);
        let to = quarantine::take(&self.disk, &self.paths, &from)?;
        Ok(to.map(|to| self.moved(&from, &to)))
    }

    /// Removes the permissions of everyone but the owner. Returns the previous mode.
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

    /// Moves the live indexes to the quarantine. The next start reads the tree instead.
    pub fn set_index_aside(&self) -> Result<Vec<Moved>, DiskError> {
        let mut moved = Vec::new();
        for path in live::paths(&self.disk, &self.paths.index)? {
            moved.extend(self.set_aside(&self.paths.below(&path))?);
        }
        Ok(moved)
    }

    /// Rewrites a missing or damaged `CHECKPOINT` if an index or the journal still shows the position. More of the
    /// journal than needed may then be redone, which is harmless.
    pub fn mend_checkpoint(&self) -> Result<Vec<Moved>, OpenError> {
        let segments = scan::segments(&self.disk, &self.paths.journal)?;
        match control::read_checkpoint(&self.disk, &self.paths.checkpoint, self.store) {
            Ok(Some(_)) | Err(OpenError::Disk(_)) => return Ok(Vec::new()),
            // The lost journal may have held acknowledged changes: the caller must accept that loss.
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
        // It is no longer known whether a segment was being written. If there are segments, require the newest one.
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

    /// Gives up the records behind the damage of a journal, or the records that a backup lacks. Applies the readable
    /// records, except where a file is newer. Then moves the segments to the quarantine. An intact journal stays as
    /// it is.
    pub fn accept_loss(&self) -> Result<Option<(Loss, Vec<Moved>)>, OpenError> {
        let (disk, paths) = (&self.disk, &self.paths);
        let tree = Tree::new(disk.clone(), paths.root.clone());
        // Fails if it is unreadable: `mend_checkpoint` moves it to the quarantine first.
        control::read_checkpoint(disk, &paths.checkpoint, self.store)?;
        let survey = Survey::read(disk, paths, self.store)?;
        let Some((first, last)) = survey.lost() else {
            return Ok(None);
        };
        let epoch = survey.base.epoch.max(survey.scan.epoch);
        let root = disk.open_to_read(&paths.root)?;
        // Some copy tools skip empty folders.
        paths.create_folders(disk)?;
        survey.overlay.redo_unless(&tree, |key, seq| {
            // Only records state when they were written. Other files may be large, so do not read them.
            if !key.is_record() {
                return Ok(false);
            }
            let content = tree.read(key, GET_BYTES)?;
            let newer = content.and_then(|bytes| sequence_of(key, &bytes));
            Ok(newer.is_some_and(|newer| newer > seq))
        })?;
        root.sync_file_system()?;
        // After an interruption the store may open and remove these files, or the loss must be accepted again.
        let mut leaving = live::paths(disk, &paths.index)?;
        leaving.extend(survey.scan.segments);
        leaving.extend(self.objects_without_a_place()?);
        let moved = self.name_aside(&leaving)?;
        // A file of a lost change may remain, so do not use its number again. Add one more, so that no index is as
        // new: an index may be the only evidence of the loss.
        let last = newest_record(&tree, last)?;
        let at = Checkpoint {
            seq: last.next(),
            epoch,
        };
        self.write_checkpoint(at, Condition::Stopped)?;
        self.remove(&leaving)?;
        Ok(Some((Loss { first, last }, moved)))
    }

    /// Links files into the quarantine. Durable when this returns.
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

    /// Removes files of the journal, the index and `tmp/` from their folders. Durable when this returns.
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

    /// Objects without a readable record that names them. The next start would remove them.
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

/// The newest change that a record names as its writer, if it is later than `known`. Ignores numbers that no journal
/// can have reached.
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
                // The check reports unreadable records.
                Err(error) => tracing::warn!(%key, %error, "skipped an unreadable record"),
            }
        }
    })?;
    Ok(newest)
}
