//! A hold keeps the journal while a backup is being made. It is the file `journal/HOLD`, locked by the process that
//! makes the backup. An unlocked file is left over from a process that ended, and has no effect.
//!
//! The writer and the backup never wait for each other. A backup takes its hold first and then reads `CHECKPOINT`.
//! The writer writes `CHECKPOINT` first and then checks for a hold, before it removes segments. So if the writer saw
//! no hold, the backup reads that `CHECKPOINT` or a later one.

use std::io;

use crate::backup::CopyError;
use crate::disk::{Action, Disk, DiskError};
use crate::failpoint;
use crate::limits::{HOLD_JOURNAL_BYTES, HOLD_PAUSE, READ_TRIES};
use crate::lock::Lock;
use crate::open_error::OpenError;
use crate::paths::Paths;
use crate::space::Watermark;

/// Released on drop.
pub(crate) struct Hold {
    disk: Disk,
    paths: Paths,
    lock: Lock,
}

impl Hold {
    pub(crate) fn take(disk: &Disk, paths: &Paths) -> Result<Self, CopyError> {
        let mut tries = 1;
        loop {
            match Lock::take(disk, &paths.hold, &paths.root) {
                Ok(lock) => {
                    failpoint::reach("hold-taken");
                    return Ok(Self {
                        disk: disk.clone(),
                        paths: paths.clone(),
                        lock,
                    });
                }
                // The writer locks the file briefly to check whether it is in use, and may remove it.
                Err(OpenError::Locked { .. }) if tries < READ_TRIES => {}
                Err(OpenError::Disk(error))
                    if error.action() == Action::GoOn && tries < READ_TRIES => {}
                Err(OpenError::Locked { root, owner }) => {
                    return Err(CopyError::Busy { root, owner });
                }
                Err(error) => return Err(error.into()),
            }
            std::thread::sleep(HOLD_PAUSE);
            tries += 1;
        }
    }

    /// The writer ends a hold that keeps too much of the journal.
    pub(crate) fn lasts(&self) -> Result<bool, DiskError> {
        match self.lock.verify(&self.disk) {
            Ok(()) => Ok(true),
            Err(error) if error.action() == Action::GoOn => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let ended = match self.lasts() {
            Ok(true) => self.disk.remove_file(&self.paths.hold),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        match ended {
            Ok(()) => failpoint::reach("hold-removed"),
            Err(error) => {
                tracing::warn!(%error, "the file of a hold stays until the next checkpoint")
            }
        }
    }
}

/// True if a hold keeps the segments of the journal. Ends a hold that keeps too many of them, or any hold when the
/// disk is nearly full, because a backup can be made again.
pub(crate) fn keeps_journal(
    disk: &Disk,
    paths: &Paths,
    kept_bytes: u64,
    watermark: Watermark,
) -> Result<bool, DiskError> {
    let path = &paths.hold;
    let file = match disk.open_to_write(path) {
        Err(error) if error.is_missing() => return Ok(false),
        // It belongs to another user, whose backup may be running.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
        result => Some(result?),
    };
    let why = if let Some(file) = file
        && file.try_lock()?
    {
        match disk.verify(path, file.inspect()?.identity) {
            Ok(()) => "its process has ended",
            // Just released; another process may have taken a new hold.
            Err(error) if error.action() == Action::GoOn => return Ok(true),
            Err(error) => return Err(error),
        }
    } else if kept_bytes > HOLD_JOURNAL_BYTES {
        "it keeps too much of the journal"
    } else if watermark.is_passed_by(disk.space(&paths.root)?) {
        "the disk is nearly full"
    } else {
        return Ok(true);
    };
    tracing::warn!(path = %path.display(), why, "removed the hold of a backup");
    match disk.remove_file(path) {
        Err(error) if error.is_missing() => {}
        result => result?,
    }
    failpoint::reach("hold-ended");
    Ok(false)
}
