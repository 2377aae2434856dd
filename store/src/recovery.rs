//! Opens a store: recognises it, locks it, and redoes the journal in the tree. The order gives two guarantees: a
//! refused store is not changed, and the new epoch is durable before it is used.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::applied::Applied;
use crate::batch::{Epoch, Seq};
use crate::checkpoint::Checkpointer;
use crate::control::{self, Checkpoint, Condition, StoreId};
use crate::disk::{Disk, DiskError, Kind};
use crate::failpoint;
use crate::file::Options;
use crate::journal::Journal;
use crate::key::RESERVED;
use crate::limits::COPY_EPOCHS;
use crate::live::{Index, LiveSet};
use crate::lock::Lock;
use crate::manifest;
use crate::open_error::OpenError;
use crate::paths::Paths;
use crate::replace;
use crate::segment;
use crate::segments::{Segments, Sizes};
use crate::staged::StagedName;
use crate::survey::Survey;
use crate::tree::Tree;

pub(crate) struct Recovered {
    pub(crate) live: LiveSet,
    pub(crate) journal: Journal,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) noted: Applied,
    pub(crate) is_restored: bool,
}

pub(crate) fn recover(
    disk: &Disk,
    paths: &Paths,
    options: &Options,
) -> Result<Recovered, OpenError> {
    if !options.allow_network {
        refuse_network(disk, &paths.root)?;
    }
    let (lock, store) = claim(disk, paths)?;
    failpoint::reach("store-made");
    // Open it before the first write, so that the sync of a checkpoint reports every error since.
    let root = disk.open_to_read(&paths.root)?;
    paths.create_folders(disk)?;
    let tree = Tree::new(disk.clone(), paths.root.clone());
    let survey = Survey::read(disk, paths, store)?;
    survey.check(paths)?;
    for damage in &survey.damage {
        tracing::warn!(
            path = damage.path,
            "a live index is unreadable and is built again"
        );
    }
    survey.overlay.redo(&tree)?;
    failpoint::reach("journal-redone");
    // Not earlier: an object that a record adopts may still be in `tmp`.
    sweep(disk, paths)?;
    failpoint::reach("tmp-swept");
    let Survey {
        base,
        scan,
        overlay,
        index,
        ..
    } = survey;
    let is_restored = manifest::is_restored(disk, paths)?;
    let mut epoch = base.epoch.max(scan.epoch).next();
    if is_restored {
        epoch.0 = epoch.0.saturating_add(COPY_EPOCHS);
    }
    let at = Checkpoint {
        seq: scan.last,
        epoch,
    };
    // Frees the content of the journal.
    drop(overlay);
    let (live, is_written) = match index {
        Some(Index { at: indexed, live }) => (live, indexed.seq == at.seq),
        None => (LiveSet::rebuild(&tree)?, false),
    };

    let sizes = Sizes {
        spare: options.segment_bytes,
        keep: options.spare_segments,
        watermark: options.watermarks.full,
    };
    let segments = Arc::new(Segments::open(disk, paths, store, sizes)?);
    scan.segments
        .into_iter()
        .for_each(|path| segments.seal(path, at.seq));
    let checkpointer = Checkpointer {
        epoch: at.epoch,
        lock: Arc::new(lock),
        segments: segments.clone(),
        root,
    };
    if is_written && at.seq == base.seq {
        checkpointer.mark(at, Condition::Stopped)?;
    } else {
        checkpointer.run(at.seq, &live, Condition::Stopped)?;
    }
    failpoint::reach("store-recovered");
    let lock = checkpointer.lock.clone();
    let fresh = options.first_segment_bytes;
    let journal = Journal::start(segments, lock, at.epoch, at.seq, fresh)?;
    checkpointer.mark_open(at)?;
    Ok(Recovered {
        live,
        journal,
        checkpointer,
        noted: Applied::open(disk, paths, store)?,
        is_restored,
    })
}

fn absolute(root: &Path) -> PathBuf {
    std::path::absolute(root).unwrap_or_else(|_| root.to_owned())
}

fn refuse_network(disk: &Disk, root: &Path) -> Result<(), OpenError> {
    for path in absolute(root).ancestors() {
        match disk.network(path) {
            Ok(None) => return Ok(()),
            Ok(Some(protocol)) => {
                return Err(OpenError::Network {
                    root: root.to_owned(),
                    protocol,
                });
            }
            // A missing folder will be created in its nearest existing parent.
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Locks the store at the root, or creates one. Writes nothing unless the folder is a store of this format or vacant.
fn claim(disk: &Disk, paths: &Paths) -> Result<(Lock, StoreId), OpenError> {
    if control::read_format(disk, &paths.format)?.is_none() {
        check_vacant(disk, paths)?;
        create_root(disk, &paths.root)?;
    }
    let lock = Lock::take(disk, &paths.lock, &paths.root)?;
    failpoint::reach("store-locked");
    // Check again under the lock: another process may have created the store meanwhile.
    let store = match control::read_format(disk, &paths.format)? {
        Some(store) => store,
        None => initialise(disk, paths)?,
    };
    Ok((lock, store))
}

/// A vacant folder is missing, empty, or has only files of an interrupted first start.
fn check_vacant(disk: &Disk, paths: &Paths) -> Result<(), OpenError> {
    let list = |path| match disk.list(path) {
        Err(error) if error.is_missing() => Ok(Vec::new()),
        result => result,
    };
    // The root of a file system has this folder.
    let ours = |name: &str| {
        RESERVED.contains(&name) || replace::is_temporary(name) || name == "lost+found"
    };
    if !list(&paths.root)?.iter().all(|(name, _)| ours(name)) {
        return Err(OpenError::NotAState {
            root: paths.root.clone(),
        });
    }
    if list(&paths.journal)?
        .iter()
        .any(|(name, _)| segment::first_of_file_name(name).is_some())
    {
        let what = "it is missing, although there is a journal";
        return Err(OpenError::damaged(&paths.format, 0, what));
    }
    Ok(())
}

/// Creates the root and its missing parents, durably.
fn create_root(disk: &Disk, root: &Path) -> Result<(), DiskError> {
    let root = absolute(root);
    let mut missing = Vec::new();
    for path in root.ancestors() {
        if disk.kind(path)? != Kind::Nothing {
            break;
        }
        missing.push(path);
    }
    disk.create_folders(&root)?;
    let mut parents = missing.iter().filter_map(|path| path.parent());
    parents.try_for_each(|parent| disk.sync_folder(parent))
}

fn initialise(disk: &Disk, paths: &Paths) -> Result<StoreId, DiskError> {
    let store = StoreId(disk.random()?);
    paths.create_folders(disk)?;
    let nothing = Checkpoint {
        seq: Seq(0),
        epoch: Epoch(0),
    };
    control::write_checkpoint(disk, &paths.checkpoint, store, nothing, Condition::Stopped)?;
    // `FORMAT` comes last: if it exists, everything else does.
    disk.sync_folder(&paths.root)?;
    control::write_format(disk, &paths.format, store)?;
    Ok(store)
}

/// Removes temporary files of an earlier opening. The folders of keys have none, because a redo
/// writes them again under the same temporary name.
fn sweep(disk: &Disk, paths: &Paths) -> Result<(), DiskError> {
    for (folder, is_left) in [
        (
            &paths.tmp,
            (|name| StagedName::parse(name).is_some()) as fn(&str) -> bool,
        ),
        (&paths.index, replace::is_temporary),
        (&paths.journal, replace::is_temporary),
    ] {
        for (name, _) in disk
            .list(folder)?
            .into_iter()
            .filter(|(name, _)| is_left(name))
        {
            disk.remove_file(&folder.join(name))?;
        }
    }
    Ok(())
}
