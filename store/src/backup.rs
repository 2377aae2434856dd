//! Backups: copies the folder of a store while its writer works, and restores the copy.
//!
//! Files change while they are copied, so the copy holds files of different moments. The journal corrects that: a
//! [`Hold`] keeps it, and the records since the last checkpoint are applied to the copy, as after a crash. The
//! journal does not contain large objects and growing files. Those that its records name are copied after the journal
//! was read. If one is missing, it was deleted meanwhile, and the journal is read again to find the record of that
//! deletion.
//!
//! A finished backup is a stopped store with a manifest. `FORMAT` is written last, durably. Without `FORMAT` the
//! folder cannot be opened as a store.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::applied;
use crate::batch::{Epoch, Seq};
use crate::control::{self, Checkpoint, Condition, Mark, StoreId};
use crate::copy::{Copier, Size, measure};
use crate::disk::{Disk, DiskError, DiskFile};
use crate::failpoint;
use crate::hold::Hold;
use crate::key::Key;
use crate::limits::{BACKUP_ROUNDS, CONTROL_FILE_BYTES};
use crate::lock::Owner;
use crate::manifest::Manifest;
use crate::open_error::OpenError;
use crate::overlay::Overlay;
use crate::paths::Paths;
use crate::record::Record;
use crate::replace;
use crate::scan::{self, Scan};
use crate::staged::{Object, Staged};
use crate::tree::Tree;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Number of files and their bytes, without the manifest.
    pub files: u64,
    pub bytes: u64,
    /// The last commit in the copy.
    pub sequence: Seq,
}

#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Open(OpenError),
    #[error("there is no state in {root}")]
    NoState { root: PathBuf },
    #[error("a backup of {root} is being made by {owner}; wait until it ends")]
    Busy { root: PathBuf, owner: Owner },
    #[error("{path} is not empty; choose an empty or missing folder")]
    NotEmpty { path: PathBuf },
    #[error(
        "{path} lies in {root}: a copy of a folder into itself never ends; choose a folder outside"
    )]
    Inside { path: PathBuf, root: PathBuf },
    #[error("{path} is not a finished backup: it has no FORMAT or no BACKUP")]
    NotABackup { path: PathBuf },
    #[error("the backup {path} is incomplete: {what}")]
    NotWhole { path: PathBuf, what: String },
    #[error(
        "the daemon ended the backup: it kept too much of the journal, or the disk is nearly full; start the backup again"
    )]
    HoldEnded,
    #[error("objects and logs are deleted faster than they are copied; start the backup again")]
    TooBusy,
    #[error("stopped; the copy is incomplete")]
    Stopped,
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl From<OpenError> for CopyError {
    /// Opening may create a missing store; copying cannot.
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::NotAState { root } => Self::NoState { root },
            error => Self::Open(error),
        }
    }
}

/// Options of a copy.
#[derive(Clone, Copy)]
pub struct Copying<'a> {
    /// True for folders that are not copied. Paths are relative to the root.
    pub leave_out: &'a dyn Fn(&Path) -> bool,
    /// The growing file that a change of this key depends on.
    pub counts_on: &'a dyn Fn(&Key) -> Option<Key>,
    /// Checked between two pieces.
    pub is_stopped: &'a dyn Fn() -> bool,
}

impl Copying<'_> {
    fn leaves_out(&self, root: &Path, path: &Path) -> bool {
        path.strip_prefix(root)
            .is_ok_and(|below| (self.leave_out)(below))
    }
}

/// Copies the store at `root` to the empty folder `to`. A writer may continue meanwhile.
pub fn back_up(root: &Path, to: &Path, copying: Copying<'_>) -> Result<Copied, CopyError> {
    back_up_on(&Disk::new(), root, to, copying)
}

pub(crate) fn back_up_on(
    disk: &Disk,
    root: &Path,
    to: &Path,
    copying: Copying<'_>,
) -> Result<Copied, CopyError> {
    let from = Paths::new(root);
    let store = control::store_at(disk, &from)?;
    refuse_inside(root, to)?;
    make_empty(disk, to)?;
    // Open it before the first write, so that the sync reports every error since.
    let target = disk.open_to_read(to)?;
    let hold = Hold::take(disk, &from)?;
    let mut backup = Backup {
        copier: Copier { disk, copying },
        store,
        from,
        to: Paths::new(to),
        min_segment_epoch: None,
        whole: BTreeSet::new(),
        missed: BTreeSet::new(),
        growing: BTreeSet::new(),
    };
    let copied = backup.copy();
    // Without its hold the copy may have failed anywhere, or read only half a journal.
    let lasted = hold.lasts()?;
    let (journal, at) = match copied {
        Err(CopyError::Stopped) => return Err(CopyError::Stopped),
        _ if !lasted => return Err(CopyError::HoldEnded),
        copied => copied?,
    };
    drop(hold);
    backup.finish(&target, journal, at)
}

/// Changes in the journal that the copied files may lack.
#[derive(Default)]
struct Journal {
    overlay: Overlay,
    /// The growing files that its newest records depend on.
    counted_on: BTreeSet<Key>,
}

struct Backup<'a> {
    copier: Copier<'a>,
    store: StoreId,
    from: Paths,
    to: Paths,
    /// See [`Mark::min_segment_epoch`].
    min_segment_epoch: Option<Epoch>,
    /// Objects in the copy, by their names in `tmp/`.
    whole: BTreeSet<String>,
    /// Objects that were not found.
    missed: BTreeSet<String>,
    /// Growing files that were copied after the tree.
    growing: BTreeSet<Key>,
}

impl Backup<'_> {
    /// Copies everything. Returns the changes to apply to the copy, and the position after that.
    fn copy(&mut self) -> Result<(Journal, Checkpoint), CopyError> {
        let disk = self.copier.disk;
        let Some(mark) = control::read_mark(disk, &self.from.checkpoint, self.store)? else {
            let what = "it is missing; the next start of the daemon makes it again";
            let damaged = OpenError::damaged(&self.from.checkpoint, 0, what);
            return Err(CopyError::Open(damaged));
        };
        let base = mark.at;
        self.min_segment_epoch = Mark::min_segment_epoch(Some(mark));
        self.copy_tree()?;
        failpoint::reach("files-copied");
        let applied = applied::read(disk, &self.from, self.store)?;
        let mut read = base.seq;
        for _ in 0..BACKUP_ROUNDS {
            let mut journal = Journal::default();
            let growing = self.copier.copying.counts_on;
            let scan = self.read_journal(base.seq, &mut |record| {
                journal.overlay.add(record.seq, &record.batch);
                if record.seq > read {
                    journal
                        .counted_on
                        .extend(record.batch.keys().filter_map(growing));
                }
            })?;
            read = scan.last;
            if let Some(applied) = applied.filter(|applied| *applied > read) {
                let what = applied::ahead(read, applied);
                return Err(CopyError::Open(OpenError::damaged(
                    &self.from.journal,
                    0,
                    what,
                )));
            }
            // Copy both in each round, so that the next round need not copy them again.
            let has_objects = self.copy_objects(&journal.overlay)?;
            if self.copy_growing(&journal, read)? && has_objects {
                let epoch = base.epoch.max(scan.epoch);
                return Ok((journal, Checkpoint { seq: read, epoch }));
            }
        }
        Err(CopyError::TooBusy)
    }

    /// Copies the tree, without the files of the engine that the copy gets new.
    fn copy_tree(&self) -> Result<(), CopyError> {
        let Paths {
            root,
            format,
            lock,
            journal,
            manifest,
            tmp,
            index,
            ..
        } = &self.from;
        let excluded = [format, lock, journal, manifest, tmp, index];
        let copying = self.copier.copying;
        self.copier.folder(root, &self.to.root, &|path| {
            excluded.iter().any(|excluded| path == *excluded) || copying.leaves_out(root, path)
        })?;
        self.to.create_folders(self.copier.disk)?;
        Ok(())
    }

    /// Reads the records after `after`, at least to the last commit acknowledged before this call.
    fn read_journal(&self, after: Seq, take: &mut dyn FnMut(Record)) -> Result<Scan, CopyError> {
        let read = |take: &mut dyn FnMut(Record)| {
            let (disk, folder) = (self.copier.disk, &self.from.journal);
            scan::read(
                disk,
                folder,
                self.store,
                after,
                self.min_segment_epoch,
                take,
            )
        };
        let scan = read(take)?;
        // A concurrent write can make the end of the journal look damaged, but not twice at the same offset.
        if let Some((path, damage)) = &scan.broken
            && let Some((again, found)) = read(&mut drop)?.broken
            && (path, damage.offset) == (&again, found.offset)
        {
            let damaged = OpenError::damaged(path, damage.offset, &damage.what);
            return Err(CopyError::Open(damaged));
        }
        Ok(scan)
    }

    /// Copies the objects that will get their keys. False if one is missing, and the journal must be read again.
    fn copy_objects(&mut self, overlay: &Overlay) -> Result<bool, CopyError> {
        let mut has_all = true;
        for (key, staged) in overlay.adoptions() {
            let name = staged.name().as_str();
            if self.whole.contains(name) {
                continue;
            }
            if !self.copy_object(key, staged)? {
                if self.missed.insert(name.to_owned()) {
                    has_all = false;
                    continue;
                }
                tracing::warn!(%key, "an object is missing in the state and therefore in its backup");
            }
            self.whole.insert(name.to_owned());
        }
        Ok(has_all)
    }

    /// False if the object does not exist. It moves from `tmp/` to its key, so search in that order.
    fn copy_object(&self, key: &Key, staged: &Staged) -> Result<bool, CopyError> {
        let disk = self.copier.disk;
        let tree = |paths: &Paths| Tree::new(disk.clone(), paths.root.clone());
        let (from, to) = (tree(&self.from), tree(&self.to));
        if let Some(file) = to.open(key)?
            && is_object(&file, staged)?
        {
            return Ok(true);
        }
        let copy = to.staged(staged.name());
        for path in [from.staged(staged.name()), from.path(key)] {
            if self.copier.file(&path, &copy)?.is_some()
                && is_object(&disk.open_to_read(&copy)?, staged)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Copies the growing files that records up to `last` depend on. False if one was deleted later.
    fn copy_growing(&mut self, journal: &Journal, last: Seq) -> Result<bool, CopyError> {
        let disk = self.copier.disk;
        self.growing.extend(journal.counted_on.iter().cloned());
        let mut missing = BTreeSet::new();
        for key in &journal.counted_on {
            let path = |paths: &Paths| paths.root.join(key.as_str());
            let to = path(&self.to);
            if let Some(folder) = to.parent() {
                disk.create_folders(folder)?;
            }
            if self.copier.file(&path(&self.from), &to)?.is_none() {
                missing.insert(key);
            }
        }
        failpoint::reach("logs-copied");
        let mut is_deleted = false;
        self.read_journal(last, &mut |record| {
            is_deleted |= record.batch.deletes.iter().any(|key| missing.contains(key));
        })?;
        Ok(!is_deleted)
    }

    /// Turns the copy into a store.
    fn finish(
        &self,
        target: &DiskFile,
        journal: Journal,
        at: Checkpoint,
    ) -> Result<Copied, CopyError> {
        let (disk, to) = (self.copier.disk, &self.to);
        let tree = Tree::new(disk.clone(), to.root.clone());
        journal.overlay.redo(&tree)?;
        for key in &self.growing {
            tree.prune(key)?;
        }
        // Objects that a later record deleted.
        for (name, _) in disk.list(&to.tmp)? {
            disk.remove_file(&to.tmp.join(name))?;
        }
        control::write_checkpoint(disk, &to.checkpoint, self.store, at, Condition::Stopped)?;
        let format = disk.read(&self.from.format, CONTROL_FILE_BYTES)?;
        let Size { files, bytes } = measure(disk, &to.root)?;
        let manifest = Manifest {
            store: self.store,
            sequence: at.seq,
            epoch: at.epoch,
            files: files + 1,
            bytes: bytes + format.len() as u64,
            made: disk.seconds_since_1970().unwrap_or_default(),
        };
        make_store(disk, target, to, &manifest, &format)?;
        if let Err(error) = manifest.write(disk, &self.from.last_backup) {
            tracing::warn!(%error, "the backup is finished, but the daemon cannot know of it");
        }
        Ok(Copied {
            files: manifest.files,
            bytes: manifest.bytes,
            sequence: manifest.sequence,
        })
    }
}

/// True if the file has the content of the object.
fn is_object(file: &DiskFile, staged: &Staged) -> Result<bool, DiskError> {
    Ok(file.len()? == staged.size() && Object::read(file)? == staged.object())
}

/// Restores a backup into the empty folder `root`. The next open finds the manifest.
pub fn restore(from: &Path, root: &Path, copying: Copying<'_>) -> Result<Copied, CopyError> {
    restore_on(&Disk::new(), from, root, copying)
}

pub(crate) fn restore_on(
    disk: &Disk,
    from: &Path,
    root: &Path,
    copying: Copying<'_>,
) -> Result<Copied, CopyError> {
    let (source, paths) = (Paths::new(from), Paths::new(root));
    let store = control::read_format(disk, &source.format)?;
    let manifest = Manifest::read(disk, &source.manifest)?;
    let (Some(store), Some(manifest)) = (store, manifest) else {
        return Err(CopyError::NotABackup {
            path: from.to_owned(),
        });
    };
    let not_whole = |what| CopyError::NotWhole {
        path: from.to_owned(),
        what,
    };
    let at = control::read_checkpoint(disk, &source.checkpoint, store)?;
    let last = at.map_or(Seq(0), |at| at.seq);
    if let Some(what) = manifest.contradicts(store, last) {
        return Err(not_whole(what));
    }
    refuse_inside(from, root)?;
    make_empty(disk, root)?;
    let target = disk.open_to_read(root)?;
    let copier = Copier { disk, copying };
    let later = [&source.format, &source.lock, &source.manifest];
    let mut size = copier.folder(from, root, &|path| {
        later.iter().any(|later| path == *later) || copying.leaves_out(from, path)
    })?;
    let format = disk.read(&source.format, CONTROL_FILE_BYTES)?;
    size.files += 1;
    size.bytes += format.len() as u64;
    let Manifest { files, bytes, .. } = manifest;
    if size.files < files || size.bytes < bytes {
        return Err(not_whole(format!(
            "it should have {files} files with {bytes} bytes, but has {} with {}",
            size.files, size.bytes
        )));
    }
    // Some copy tools skip empty folders.
    paths.create_folders(disk)?;
    manifest.write(disk, &paths.last_backup)?;
    make_store(disk, &target, &paths, &manifest, &format)?;
    Ok(Copied {
        files: size.files,
        bytes: size.bytes,
        sequence: last,
    })
}

/// Makes the copy durable before `FORMAT` makes it a store.
fn make_store(
    disk: &Disk,
    target: &DiskFile,
    paths: &Paths,
    manifest: &Manifest,
    format: &[u8],
) -> Result<(), CopyError> {
    target.sync_file_system()?;
    failpoint::reach("copy-synced");
    manifest.write(disk, &paths.manifest)?;
    failpoint::reach("manifest-written");
    replace::replace_durably(disk, &paths.format, format)?;
    failpoint::reach("copy-finished");
    Ok(())
}

/// Refuses to copy a folder into itself, also by another name.
fn refuse_inside(from: &Path, to: &Path) -> Result<(), CopyError> {
    let real = |path: &Path| path.canonicalize().ok();
    let root = real(from);
    let absolute = std::path::absolute(to).unwrap_or_else(|_| to.to_owned());
    // A missing folder will be created in its nearest existing parent.
    let place = absolute.ancestors().find_map(real);
    match (root, place) {
        (Some(root), Some(place)) if place.starts_with(&root) => Err(CopyError::Inside {
            path: to.to_owned(),
            root: from.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// The folder must be empty or missing.
fn make_empty(disk: &Disk, path: &Path) -> Result<(), CopyError> {
    disk.create_folders(path)?;
    // The root of a file system has this folder.
    if disk
        .list(path)?
        .iter()
        .all(|(name, _)| name == "lost+found")
    {
        Ok(())
    } else {
        Err(CopyError::NotEmpty {
            path: path.to_owned(),
        })
    }
}
