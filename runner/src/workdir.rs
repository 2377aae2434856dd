//! The folders in which a runner works: one for each job, private to the runner's user, and locked against a second runner.
//! `slots.rs` has the files that jobs pass on. Leftovers of a killed runner are removed. Removal never follows a link.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use uuid::Uuid;

use crate::slots::{SLOTS, Slots};
use crate::{limits, lock};

const LOCK: &str = ".everscan-runner.lock";

pub(crate) const FILE_MODE: u32 = 0o600;

/// Length of a job id as text.
const ID_BYTES: usize = 36;

#[derive(Debug, thiserror::Error)]
pub enum WorkdirError {
    #[error("the working directory {} is in use by another runner", path.display())]
    InUse { path: PathBuf },
    #[error("cannot use the working directory {}", path.display())]
    Unusable { path: PathBuf, source: io::Error },
}

/// A working directory that belongs to this process while the value exists.
#[derive(Debug)]
pub(crate) struct Workdir {
    path: PathBuf,
    pub(crate) slots: Slots,
    /// Closing the file releases the lock.
    _lock: File,
}

impl Workdir {
    /// Makes the directory if it is missing, and locks it.
    pub(crate) fn open(path: &Path) -> Result<Self, WorkdirError> {
        let unusable = |source| WorkdirError::Unusable {
            path: path.to_owned(),
            source,
        };
        make_private_folder(path).map_err(unusable)?;
        let Some(lock) = lock::take(&path.join(LOCK)).map_err(unusable)? else {
            return Err(WorkdirError::InUse {
                path: path.to_owned(),
            });
        };
        // Scripts start in folders below it, so the path must not depend on the current directory.
        let path = path.canonicalize().map_err(unusable)?;
        Ok(Self {
            slots: Slots::new(path.clone()),
            path,
            _lock: lock,
        })
    }

    /// The jobs of an earlier runner that left files or folders here.
    pub(crate) fn jobs(&self) -> BTreeSet<Uuid> {
        let leftovers = leftovers(&self.path).into_iter();
        leftovers.map(|(job, _)| job).collect()
    }

    /// Removes the leftovers of earlier jobs.
    pub(crate) fn clear(&self) {
        remove_leftovers(&self.path);
        remove(&self.path.join(SLOTS));
    }

    /// Checks whether a job could write here.
    pub(crate) fn try_file(&self, job: Uuid) -> io::Result<()> {
        // A job may have removed the directory completely.
        make_private_folder(&self.path)?;
        try_file(&self.pack_path(job))
    }

    /// The file in which an artifact is packed.
    pub(crate) fn pack_path(&self, job: Uuid) -> PathBuf {
        self.path.join(format!("{job}-artifact.zip"))
    }
}

/// Makes a folder and its missing parents. Only this user can enter them.
pub(crate) fn make_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Whether an error means that this machine lacks a resource, independent of the job.
pub(crate) fn is_of_machine(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::AGAIN
                | Errno::DQUOT
                | Errno::IO
                | Errno::MFILE
                | Errno::NFILE
                | Errno::NOMEM
                | Errno::NOSPC
                | Errno::ROFS
        )
    )
}

/// Checks whether this machine has the resources for a job: space on the disk of this file, and open files.
pub(crate) fn try_file(path: &Path) -> io::Result<()> {
    let tried = make_private_file(path).and_then(|mut file| {
        file.write_all(&[0; limits::TRIED_BYTES])?;
        let further = (1..limits::JOB_FILES).map(|_| file.try_clone());
        further.collect::<io::Result<Vec<File>>>().map(drop)
    });
    remove(path);
    tried
}

/// Makes a file that only this user can open. It replaces anything that a step has put there.
pub(crate) fn make_private_file(path: &Path) -> io::Result<File> {
    make_file(path, FILE_MODE)
}

/// The same with another mode.
pub(crate) fn make_file(path: &Path, mode: u32) -> io::Result<File> {
    remove(path);
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
}

/// Opens a file that a step may have replaced. It follows no link, and opening a pipe does not block.
pub(crate) fn open_without_links(path: &Path, access: OFlags) -> io::Result<File> {
    let flags = access | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // A kernel before 5.6 protects only the last part of the path.
        Err(Errno::NOSYS) => openat(CWD, path, flags, Mode::empty()),
        opened => opened,
    };
    Ok(opened?.into())
}

/// Removes everything in a folder whose name begins with a job id, because no job outlives its runner.
pub(crate) fn remove_leftovers(folder: &Path) {
    for (_, path) in leftovers(folder) {
        remove(&path);
    }
}

fn leftovers(folder: &Path) -> Vec<(Uuid, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let of_jobs = entries.flatten().filter_map(|entry| {
        let name = entry.file_name();
        let id = name.to_str()?.get(..ID_BYTES)?;
        Some((Uuid::try_parse(id).ok()?, entry.path()))
    });
    of_jobs.collect()
}

/// Removes a file or a tree. If a script has made a folder read-only, its mode is changed first. Files that cannot be removed
/// stay, with a warning.
pub(crate) fn remove(path: &Path) {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path).or_else(|_| {
            make_removable(path);
            std::fs::remove_dir_all(path)
        }),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot remove what a job left")
        }
    }
}

/// Makes every folder of a tree writable for its owner. Not recursive, because a script can nest folders very deeply.
fn make_removable(path: &Path) {
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        // If this fails, the second attempt to remove the tree reports the error.
        let _ = std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700));
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        folders.extend(entries.flatten().filter_map(|entry| {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            is_folder.then(|| entry.path())
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    #[test]
    fn a_second_runner_is_refused() {
        let folder = TempDir::new().unwrap();
        let first = Workdir::open(folder.path()).unwrap();
        assert!(matches!(
            Workdir::open(folder.path()),
            Err(WorkdirError::InUse { .. })
        ));
        drop(first);
        Workdir::open(folder.path()).unwrap();
    }

    #[test]
    fn leftovers_are_removed_and_everything_else_stays() {
        let folder = TempDir::new().unwrap();
        let outside = TempDir::new().unwrap();
        std::fs::write(outside.path().join("keep"), "").unwrap();
        let job = Uuid::now_v7();
        let left = folder.path().join(job.to_string());
        std::fs::create_dir_all(left.join("deep/er")).unwrap();
        symlink(outside.path(), left.join("link")).unwrap();
        std::fs::set_permissions(left.join("deep"), PermissionsExt::from_mode(0o500)).unwrap();
        std::fs::create_dir_all(folder.path().join(SLOTS).join("0")).unwrap();
        std::fs::write(folder.path().join(format!("{job}-artifact.zip")), "").unwrap();
        std::fs::write(folder.path().join("notes"), "").unwrap();

        let workdir = Workdir::open(folder.path()).unwrap();
        assert_eq!(workdir.jobs(), BTreeSet::from([job]));
        workdir.clear();

        let mut names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, [LOCK, "notes"]);
        assert!(outside.path().join("keep").exists());
    }

    #[test]
    fn what_a_machine_lacks_differs_from_what_a_job_does() {
        for errno in [Errno::MFILE, Errno::NOSPC, Errno::AGAIN] {
            assert!(is_of_machine(&errno.into()), "{errno}");
        }
        for errno in [Errno::NOENT, Errno::TOOBIG, Errno::EXIST, Errno::ACCESS] {
            assert!(!is_of_machine(&errno.into()), "{errno}");
        }
        let folder = TempDir::new().unwrap();
        try_file(&folder.path().join("try")).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(try_file(&folder.path().join("missing/try")).is_err());
    }

    #[test]
    fn a_file_takes_the_place_of_what_a_step_has_put_there() {
        let folder = TempDir::new().unwrap();
        let outside = folder.path().join("outside");
        std::fs::write(&outside, "kept").unwrap();
        let path = folder.path().join("file");
        symlink(&outside, &path).unwrap();
        make_private_file(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir_all(path.join("deep")).unwrap();
        let made = make_private_file(&path).unwrap();
        assert_eq!(made.metadata().unwrap().len(), 0);
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "kept");
    }
}
