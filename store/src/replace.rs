//! Replaces whole files: readers see the old content or the new one, also after a crash. The new content is written
//! next to the file, under a name that no key can have, and renamed over it.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskError, DiskFile};
use crate::failpoint;

const SUFFIX: &str = "+new";

/// Not durable: after a power cut the file may be empty.
pub(crate) fn replace(disk: &Disk, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    replace_with(disk, path, |file| file.write_at(bytes, 0))
}

/// Durable when this returns.
pub(crate) fn replace_durably(disk: &Disk, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    replace_with(disk, path, |file| {
        file.write_at(bytes, 0)?;
        file.sync_data()
    })?;
    disk.sync_folder(path.parent().unwrap_or(path))
}

/// `write` gets an empty file.
pub(crate) fn replace_with(
    disk: &Disk,
    path: &Path,
    write: impl FnOnce(&DiskFile) -> Result<(), DiskError>,
) -> Result<(), DiskError> {
    let temporary = temporary(path);
    let file = create_temporary(disk, &temporary)?;
    let replaced = write(&file)
        .inspect(|()| failpoint::reach("file-written"))
        .and_then(|()| disk.rename(&temporary, path))
        .inspect(|()| failpoint::reach("file-replaced"));
    if replaced.is_err() {
        // Gives the disk its space back. A failure here adds nothing to the first error.
        let _ = disk.remove_file(&temporary);
    }
    replaced
}

/// A leftover of an interrupted replacement is removed and never truncated: it may be a hard link to another file.
fn create_temporary(disk: &Disk, temporary: &Path) -> Result<DiskFile, DiskError> {
    match disk.create_file(temporary) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            disk.remove_file(temporary)?;
            disk.create_file(temporary)
        }
        result => result,
    }
}

/// The name for the next content of `path`. No key contains a `+`.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(SUFFIX);
    name.into()
}

pub(crate) fn is_temporary(name: &str) -> bool {
    name.ends_with(SUFFIX)
}
