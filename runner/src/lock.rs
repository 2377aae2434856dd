//! A lock file that one process at a time can hold. It is never removed, because locking a removed file has no effect. When the
//! holder dies, the kernel releases the lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Locks the file for as long as the result is open. Makes the file if it is missing. `None` if another process holds the
/// lock.
pub(crate) fn take(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
