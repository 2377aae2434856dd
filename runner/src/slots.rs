//! The files and folders that one job passes on to the next, so that a job without results creates and removes no files: some
//! file systems search long for free space after many removals. A slot is used by one job at a time. It is a folder with the
//! files of the steps, which are rewritten for each step, and with the empty folder of the last job, which becomes the folder of
//! the next job.
//!
//! A step can change these files in any way. Changed files and folders are removed and made again, and links are never followed.

use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{OFlags, llistxattr, rename};
use rustix::io::Errno;
use rustix::process::geteuid;
use uuid::Uuid;

use crate::workdir::{FILE_MODE, make_file, make_private_folder, open_without_links, remove};

/// The folder of the slots, in the working directory.
pub(crate) const SLOTS: &str = ".everscan-slots";

const SPARE: &str = "spare";

const FOLDER_MODE: u32 = 0o700;

/// The mode of a script, which a step may execute.
const SCRIPT_MODE: u32 = 0o700;

/// The only attribute of a new folder: the kernel sets it where SELinux is used.
const LABEL: &[u8] = b"security.selinux\0";

#[derive(Debug)]
pub(crate) struct Slots {
    workdir: PathBuf,
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    slots: Vec<PathBuf>,
    next: u64,
}

#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    /// The files of its steps. They are outside of the job's folder, so that artifacts cannot contain them.
    slot: PathBuf,
}

impl Slots {
    /// The slots of a canonical working directory, in which no other runner works.
    pub(crate) const fn new(workdir: PathBuf) -> Self {
        let free = Free {
            slots: Vec::new(),
            next: 0,
        };
        Self {
            workdir,
            free: Mutex::new(free),
        }
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self, job: Uuid) -> io::Result<Place> {
        let place = Place {
            folder: self.folder(job),
            slot: self.free_slot(),
        };
        match place.make_folder() {
            Ok(()) => Ok(place),
            Err(error) => {
                self.free().slots.push(place.slot);
                Err(error)
            }
        }
    }

    pub(crate) fn folder(&self, job: Uuid) -> PathBuf {
        self.workdir.join(job.to_string())
    }

    fn free_slot(&self) -> PathBuf {
        let mut free = self.free();
        free.slots.pop().unwrap_or_else(|| {
            let number = free.next;
            free.next += 1;
            self.workdir.join(SLOTS).join(number.to_string())
        })
    }

    /// Gives the slot back. The job's processes must have ended. The error is the job's folder, if it has to be removed.
    pub(crate) fn give_back(&self, place: Place) -> Result<(), PathBuf> {
        let is_spare = is_like_new(&place.folder) && rename(&place.folder, place.spare()).is_ok();
        self.free().slots.push(place.slot);
        if is_spare { Ok(()) } else { Err(place.folder) }
    }
}

impl Place {
    fn spare(&self) -> PathBuf {
        self.slot.join(SPARE)
    }

    fn make_folder(&self) -> io::Result<()> {
        self.restore_slot()?;
        let spare = self.spare();
        if is_own_folder(&spare) && rename(&spare, &self.folder).is_ok() {
            return Ok(());
        }
        remove(&spare);
        DirBuilder::new().mode(FOLDER_MODE).create(&self.folder)
    }

    /// Makes the slot's folder and the folder of all slots, unless they are unchanged.
    fn restore_slot(&self) -> io::Result<()> {
        for folder in [self.slot.parent(), Some(&*self.slot)]
            .into_iter()
            .flatten()
        {
            if is_own_folder(folder) {
                continue;
            }
            // Other jobs may use the folder of all slots, so only restore its mode, which a `chmod` may have changed.
            if std::fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir()) {
                std::fs::set_permissions(folder, PermissionsExt::from_mode(FOLDER_MODE))?;
                continue;
            }
            remove(folder);
            // A job may have removed the working directory completely.
            make_private_folder(folder)?;
        }
        Ok(())
    }

    /// The file of a step's script, until the value is dropped.
    pub(crate) fn script(&self, step: u32, text: &str) -> io::Result<StepFile> {
        let (script, mut file) = self.file(&format!("step-{step}"), SCRIPT_MODE)?;
        file.write_all(text.as_bytes())?;
        Ok(script)
    }

    /// The empty file of a step's outputs, until the value is dropped.
    pub(crate) fn outputs(&self, step: u32) -> io::Result<StepFile> {
        let made = self.file(&format!("outputs-{step}"), FILE_MODE);
        made.map(|(outputs, _)| outputs)
    }

    fn file(&self, name: &str, mode: u32) -> io::Result<(StepFile, File)> {
        let kept = StepFile {
            path: self.slot.join(name),
            mode,
        };
        let file = kept.emptied().or_else(|_| {
            self.restore_slot()?;
            make_file(&kept.path, mode)
        });
        file.map(|file| (kept, file))
    }
}

/// A file that is kept for further steps. It is emptied between steps, because it may hold secrets.
#[derive(Debug)]
pub(crate) struct StepFile {
    path: PathBuf,
    mode: u32,
}

impl StepFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn emptied(&self) -> io::Result<File> {
        let file = open_without_links(&self.path, OFlags::RDWR)?;
        let found = file.metadata()?;
        if !(found.is_file() && found.nlink() == 1 && is_own(&found, self.mode)) {
            return Err(io::Error::other("a step has replaced it"));
        }
        if found.len() > 0 {
            file.set_len(0)?;
        }
        Ok(file)
    }
}

impl Drop for StepFile {
    fn drop(&mut self) {
        if self.emptied().is_err() {
            remove(&self.path);
        }
    }
}

fn is_own(found: &Metadata, mode: u32) -> bool {
    found.uid() == geteuid().as_raw() && found.mode() & 0o777 == mode
}

fn is_own_folder(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && is_own(&found, FOLDER_MODE))
}

/// Whether a folder is unchanged: empty, private, and without attributes that a step has set. A folder that had many entries
/// stays large and slow to read.
fn is_like_new(folder: &Path) -> bool {
    let is_small = |found: Metadata| {
        found.is_dir() && is_own(&found, FOLDER_MODE) && found.size() <= found.blksize()
    };
    std::fs::symlink_metadata(folder).is_ok_and(is_small)
        && has_no_attributes(folder)
        && std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

fn has_no_attributes(folder: &Path) -> bool {
    let mut names = [0; 256];
    match llistxattr(folder, &mut names[..]) {
        Ok(length) => length == 0 || names.starts_with(LABEL) && length == LABEL.len(),
        Err(error) => error == Errno::OPNOTSUPP,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions, hard_link};
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use tempfile::TempDir;

    use super::*;

    fn workdir() -> (TempDir, Slots) {
        let workdir = TempDir::new().unwrap();
        let slots = Slots::new(workdir.path().canonicalize().unwrap());
        (workdir, slots)
    }

    fn inode(path: &Path) -> u64 {
        fs::symlink_metadata(path).unwrap().ino()
    }

    #[test]
    fn a_job_that_leaves_nothing_hands_on_its_folder_and_its_files() {
        let (workdir, slots) = workdir();
        let inodes = [1, 2].map(|job| {
            let job = Uuid::from_u128(job);
            let place = slots.take(job).unwrap();
            assert_eq!(place.folder.file_name().unwrap(), &*job.to_string());
            let script = place.script(0, "echo secret").unwrap();
            let outputs = place.outputs(0).unwrap();
            assert_eq!(fs::read_to_string(script.path()).unwrap(), "echo secret");
            assert_eq!(fs::read_to_string(outputs.path()).unwrap(), "");
            fs::write(outputs.path(), "secret=1\n").unwrap();
            let paths = [script.path(), outputs.path()].map(Path::to_owned);
            drop((script, outputs));
            for path in &paths {
                assert_eq!(fs::read_to_string(path).unwrap(), "");
            }
            let inodes = [&place.folder, &paths[0], &paths[1]].map(|path| inode(path));
            slots.give_back(place).unwrap();
            inodes
        });
        assert_eq!(inodes[0], inodes[1]);
        let names = fs::read_dir(workdir.path()).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [SLOTS]);
    }

    #[test]
    fn jobs_at_the_same_time_have_slots_of_their_own() {
        let (_workdir, slots) = workdir();
        let one = slots.take(Uuid::from_u128(1)).unwrap();
        let two = slots.take(Uuid::from_u128(2)).unwrap();
        assert_ne!(one.slot, two.slot);
        fs::write(one.folder.join("file"), "").unwrap();
        assert!(slots.take(Uuid::from_u128(1)).is_err());
        assert_eq!(slots.free().slots.len(), 1);
        slots.give_back(one).unwrap_err();
        slots.give_back(two).unwrap();
        assert_eq!(slots.free().slots.len(), 3);
    }

    #[test]
    fn what_a_step_makes_of_its_files_harms_nobody() {
        let (workdir, slots) = workdir();
        let outside = workdir.path().join("outside");
        let kept = |path: &Path| fs::remove_file(path).unwrap();
        let tricks: [&dyn Fn(&Path); 12] = [
            &|path| kept(path),
            &|path| {
                kept(path);
                symlink(&outside, path).unwrap();
            },
            &|path| {
                kept(path);
                hard_link(&outside, path).unwrap();
            },
            &|path| {
                kept(path);
                fs::create_dir_all(path.join("deep")).unwrap();
            },
            &|path| {
                kept(path);
                let made = Command::new("mkfifo").arg(path).status().unwrap();
                assert!(made.success());
            },
            &|path| fs::set_permissions(path, Permissions::from_mode(0o400)).unwrap(),
            &|path| fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap(),
            &|path| fs::write(path, "longer than what was there").unwrap(),
            &|path| fs::remove_dir_all(path.parent().unwrap()).unwrap(),
            &|path| {
                let slot = path.parent().unwrap();
                fs::set_permissions(slot, Permissions::from_mode(0o500)).unwrap();
            },
            &|path| {
                let slot = path.parent().unwrap();
                fs::remove_dir_all(slot).unwrap();
                symlink(workdir.path(), slot).unwrap();
            },
            &|path| {
                let all = path.parent().unwrap().parent().unwrap();
                fs::remove_dir_all(all).unwrap();
                symlink(workdir.path(), all).unwrap();
            },
        ];
        for (number, trick) in (0..).zip(tricks) {
            fs::write(&outside, "kept").unwrap();
            let place = slots.take(Uuid::from_u128(number)).unwrap();
            let script = place.script(0, "secret").unwrap();
            trick(script.path());
            drop(script);
            for step in [0, 1] {
                let script = place.script(step, "new").unwrap();
                assert_eq!(fs::read_to_string(script.path()).unwrap(), "new");
            }
            slots
                .give_back(place)
                .unwrap_or_else(|folder| remove(&folder));

            let place = slots.take(Uuid::from_u128(100)).unwrap();
            let script = place.script(0, "next").unwrap();
            let found = fs::symlink_metadata(script.path()).unwrap();
            assert!(found.is_file() && found.nlink() == 1, "trick {number}");
            assert!(is_own(&found, SCRIPT_MODE), "trick {number}");
            assert_eq!(fs::read_to_string(script.path()).unwrap(), "next");
            assert_eq!(fs::read_to_string(&outside).unwrap(), "kept");
            drop(script);
            slots.give_back(place).unwrap();
            assert!(is_own_folder(&workdir.path().join(SLOTS)), "trick {number}");
        }
    }

    #[test]
    fn only_a_folder_as_it_was_made_goes_to_the_next_job() {
        let (workdir, slots) = workdir();
        let tricks: [&dyn Fn(&Path); 6] = [
            &|folder| fs::write(folder.join("file"), "").unwrap(),
            &|folder| fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap(),
            &|folder| fs::remove_dir(folder).unwrap(),
            &|folder| {
                fs::remove_dir(folder).unwrap();
                symlink(workdir.path(), folder).unwrap();
            },
            &|folder| {
                fs::remove_dir(folder).unwrap();
                fs::write(folder, "").unwrap();
            },
            &|folder| {
                let flags = rustix::fs::XattrFlags::empty();
                let set = rustix::fs::setxattr(folder, "user.mark", b"x", flags);
                // Some file systems have no such attributes.
                if set.is_err() {
                    fs::write(folder.join("file"), "").unwrap();
                }
            },
        ];
        for trick in tricks {
            let place = slots.take(Uuid::nil()).unwrap();
            trick(&place.folder);
            let left = slots.give_back(place).unwrap_err();
            remove(&left);
            let next = slots.take(Uuid::max()).unwrap();
            assert!(is_like_new(&next.folder));
            slots.give_back(next).unwrap();
        }
    }

    #[test]
    fn what_replaced_a_spare_folder_is_no_job_s_folder() {
        let (workdir, slots) = workdir();
        let place = slots.take(Uuid::nil()).unwrap();
        let spare = place.slot.join(SPARE);
        slots.give_back(place).unwrap();
        fs::remove_dir(&spare).unwrap();
        symlink(workdir.path(), &spare).unwrap();
        let place = slots.take(Uuid::max()).unwrap();
        assert!(is_like_new(&place.folder));
    }
}
