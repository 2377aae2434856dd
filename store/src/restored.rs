//! The mark of a folder that is a copy: what ran when it was made has not been ended yet. It also tells which holds
//! mean nothing here any more, since somebody gave up what the copy lacks of what they promised.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::disk::{Disk, DiskError, Kind};
use crate::failpoint;
use crate::layout::Layout;
use crate::limits::CONTROL_FILE_BYTES;
use crate::replace::replace_durably;

/// What the file of the mark says.
#[derive(Default, Serialize, Deserialize)]
struct MarkFile {
    /// Ids of holds.
    #[serde(default)]
    over: BTreeSet<String>,
}

/// The store at `root` is a copy, made by whatever means: the next opening is told so. A mark that is there stays.
pub(crate) fn mark(disk: &Disk, layout: &Layout) -> Result<(), DiskError> {
    if is_marked(disk, layout)? {
        return Ok(());
    }
    replace_durably(disk, &layout.restored, b"")
}

/// The same, and the holds with these ids are over, all at once.
pub(crate) fn mark_with_holds_over(
    disk: &Disk,
    layout: &Layout,
    over: BTreeSet<String>,
) -> Result<(), DiskError> {
    let line = serde_json::json!(MarkFile { over });
    replace_durably(disk, &layout.restored, format!("{line}\n").as_bytes())
}

pub(crate) fn is_marked(disk: &Disk, layout: &Layout) -> Result<bool, DiskError> {
    Ok(disk.kind(&layout.restored)? == Kind::File)
}

/// The ids of the holds that are over though their files are there.
pub(crate) fn holds_over(disk: &Disk, layout: &Layout) -> Result<BTreeSet<String>, DiskError> {
    let bytes = match disk.read(&layout.restored, CONTROL_FILE_BYTES) {
        Err(error) if error.is_missing() => return Ok(BTreeSet::new()),
        result => result?,
    };
    // Most marks say nothing.
    let file: MarkFile = serde_json::from_slice(&bytes).unwrap_or_default();
    Ok(file.over)
}

/// The store at `root` is a copy: the next opening is told so.
pub fn mark_restored(root: &Path) -> Result<(), DiskError> {
    mark(&Disk::new(), &Layout::new(root))
}

/// What follows from being a copy has been done, durably.
pub fn forget_restored(root: &Path) -> Result<(), DiskError> {
    let (disk, layout) = (Disk::new(), Layout::new(root));
    match disk.remove_file(&layout.restored) {
        Err(error) if error.is_missing() => Ok(()),
        result => {
            result?;
            failpoint::reach("mark-removed");
            disk.sync_folder(&layout.journal)
        }
    }
}
