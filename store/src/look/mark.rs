//! By what a look knows that the store has gone on.

use std::path::PathBuf;

use crate::disk::{Disk, DiskError};
use crate::limits::CONTROL_FILE_BYTES;
use crate::paths::Paths;
use crate::scan;

/// What changes with every commit and every checkpoint, and is quick to read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) checkpoint: Vec<u8>,
    pub(super) segments: Vec<PathBuf>,
    pub(super) end: scan::End,
}

impl Mark {
    pub(super) fn read(disk: &Disk, paths: &Paths, end: u64) -> Result<Self, DiskError> {
        let segments = scan::segments(disk, &paths.journal)?;
        Ok(Self {
            checkpoint: checkpoint_bytes(disk, paths)?,
            end: scan::end_at(disk, &segments, end)?,
            segments,
        })
    }
}

pub(super) fn checkpoint_bytes(disk: &Disk, paths: &Paths) -> Result<Vec<u8>, DiskError> {
    match disk.read(&paths.checkpoint, CONTROL_FILE_BYTES) {
        Err(error) if error.is_missing() => Ok(Vec::new()),
        result => result,
    }
}
