//! A file that one process at a time holds. It is never removed, since a lock on a removed file locks nothing, and the
//! kernel lets go of it when its holder dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Locks the file, which is made when it is missing, for as long as the result is open. `None` when another process
/// holds it.
///
/// # Errors
/// What the system says.
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
