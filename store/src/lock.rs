//! One writer per store: an exclusive lock on the file `LOCK`. If the file is replaced, another process could lock
//! the new one. So each commit checks that the file is still the same. The file names its holder, for messages only.

use std::fmt;
use std::path::Path;

use rustix::fs::{major, minor};
use serde::{Deserialize, Serialize};

use crate::disk::{Disk, DiskError, DiskFile, Identity};
use crate::limits::{CONTROL_FILE_BYTES, LOCKS_BYTES};
use crate::open_error::OpenError;
use crate::paths::Paths;

const HOST_NAME: &str = "/proc/sys/kernel/hostname";
const LOCKS: &str = "/proc/locks";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The process that holds a store. Fields are missing if the process could not find them out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub pid: Option<u32>,
    pub host: Option<String>,
    /// The boot of the host, which makes the process id unique.
    pub boot: Option<String>,
    /// Seconds since 1970.
    pub since: Option<u64>,
}

/// Released on drop.
pub(crate) struct Lock {
    file: DiskFile,
    identity: Identity,
}

impl Lock {
    /// Creates `path` if it is missing, and locks it.
    pub(crate) fn take(disk: &Disk, path: &Path, root: &Path) -> Result<Self, OpenError> {
        let file = disk.open_or_create(path)?;
        if !file.try_lock()? {
            return Err(OpenError::Locked {
                root: root.to_owned(),
                owner: read_owner(disk, path),
            });
        }
        let identity = file.inspect()?.identity;
        let lock = Self { file, identity };
        lock.verify(disk)?;
        lock.write_owner(disk)?;
        Ok(lock)
    }

    /// Fails when the path no longer leads to the locked file, because another process may have locked the new file.
    /// The locked file stays open, so its inode number is not used again.
    pub(crate) fn verify(&self, disk: &Disk) -> Result<(), DiskError> {
        disk.verify(self.file.path(), self.identity)
    }

    fn write_owner(&self, disk: &Disk) -> Result<(), DiskError> {
        let text = serde_json::to_string(&Owner::this_process(disk)).unwrap_or_default() + "\n";
        self.file.set_len(0)?;
        self.file.write_at(text.as_bytes(), 0)
    }
}

impl Owner {
    fn this_process(disk: &Disk) -> Self {
        let line = |path: &str| {
            let bytes = disk.read_special(Path::new(path), 256).ok()?;
            Some(String::from_utf8_lossy(&bytes).trim().to_owned())
        };
        Self {
            pid: Some(std::process::id()),
            host: line(HOST_NAME),
            boot: line(BOOT_ID),
            since: disk.seconds_since_1970(),
        }
    }
}

/// The process that has the store in `root` open, if the system can tell.
pub fn user(root: &Path) -> Option<Owner> {
    holder(&Disk::new(), &Paths::new(root).lock)
}

/// The holder of the lock, from the list of locks of the kernel. Trying to lock could prevent a daemon from starting.
/// A holder in another container is not found.
pub(crate) fn holder(disk: &Disk, path: &Path) -> Option<Owner> {
    let identity = disk.identity(path).ok()?;
    let locks = disk.read_special(Path::new(LOCKS), LOCKS_BYTES).ok()?;
    let locks = String::from_utf8_lossy(&locks);
    let owner = read_owner(disk, path);
    // A process has a different id inside a container.
    let is_here = owner.host == Owner::this_process(disk).host;
    let pid = owner.pid.filter(|_| is_here);
    let mut lines = locks.lines();
    let is_held = lines.any(|line| is_lock_of(line, identity, pid));
    is_held.then_some(owner)
}

/// True if a line of the kernel's list is about the lock of this file. Its fields are `number: FLOCK ADVISORY WRITE
/// pid major:minor:inode first last`. On some file systems this device number differs from that of their files, and
/// another file system may use the same inode number. Then the process id in the lock file decides, if it is known.
fn is_lock_of(line: &str, file: Identity, pid: Option<u32>) -> bool {
    let mut fields = line.split_whitespace().skip(1);
    if fields.next() != Some("FLOCK") {
        return false;
    }
    let holder: Option<u32> = fields.nth(2).and_then(|field| field.parse().ok());
    let Some(place) = fields.next() else {
        return false;
    };
    let (major, minor) = (major(file.device), minor(file.device));
    place.rsplit(':').next() == Some(&file.inode.to_string())
        && (place.starts_with(&format!("{major:02x}:{minor:02x}:"))
            || pid.is_none_or(|pid| holder == Some(pid)))
}

fn read_owner(disk: &Disk, path: &Path) -> Owner {
    let bytes = disk.read(path, CONTROL_FILE_BYTES).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid}")?,
            None => f.write_str("another process")?,
        }
        match &self.host {
            Some(host) => write!(f, " on {host}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_of_another_file_with_the_same_inode_is_ignored() {
        let file = Identity {
            device: rustix::fs::makedev(0xfe, 0),
            inode: 18,
        };
        let line = |kind: &str, pid: u32, place: &str| {
            format!("1: {kind}  ADVISORY  WRITE {pid} {place} 0 EOF")
        };
        for (is_it, line) in [
            (true, line("FLOCK", 7, "fe:00:18")),
            (true, line("FLOCK", 8, "fe:00:18")),
            (true, line("FLOCK", 7, "00:1b:18")),
            (false, line("FLOCK", 8, "00:1b:18")),
            (false, line("FLOCK", 7, "fe:00:118")),
            (false, line("POSIX", 7, "fe:00:18")),
            (false, "1: FLOCK".to_owned()),
            (false, String::new()),
        ] {
            assert_eq!(is_lock_of(&line, file, Some(7)), is_it, "{line}");
        }
        assert!(is_lock_of(&line("FLOCK", 8, "00:1b:18"), file, None));
    }
}
