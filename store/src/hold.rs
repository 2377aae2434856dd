//! A hold keeps the journal while a backup is being made. It is the file `journal/HOLD`, locked by the process that makes
//! the backup. A file that nobody locks was left by a process that ended, and means nothing.
//!
//! The writer and the backup never wait for each other. A backup takes its hold first and reads `CHECKPOINT` after that.
//! The writer looks for a hold after it has written `CHECKPOINT` and before it removes segments. So when the writer saw
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

/// The hold of this process. It ends when it is dropped.
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
                // The writer locks the file for a moment, to learn whether it is in use, and may remove it.
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

    /// Whether the hold still exists. The writer ends one that keeps too much.
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

/// Whether a hold keeps the segments of the journal. Ends one that keeps too many, or any when the disk is nearly full,
/// since a backup can be made again.
pub(crate) fn keeps_journal(
    disk: &Disk,
    paths: &Paths,
    kept_bytes: u64,
    watermark: Watermark,
) -> Result<bool, DiskError> {
    let path = &paths.hold;
    let file = match disk.open_to_write(path) {
        Err(error) if error.is_missing() => return Ok(false),
        // It belongs to another user, who may be at work.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
        result => Some(result?),
    };
    let why = if let Some(file) = file
        && file.try_lock()?
    {
        match disk.verify(path, file.inspect()?.identity) {
            Ok(()) => "its process is gone",
            // Released in this moment, and perhaps another one taken.
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
    tracing::warn!(path = %path.display(), why, "the hold of a backup is ended");
    match disk.remove_file(path) {
        Err(error) if error.is_missing() => {}
        result => result?,
    }
    failpoint::reach("hold-ended");
    Ok(false)
}
