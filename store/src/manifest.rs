//! The file `BACKUP`, the manifest of a backup, and its copy in the store. `restore` copies it too. In a restored store it marks that the work
//! that was running at the backup does not run here.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::batch::{Epoch, Seq};
use crate::control::StoreId;
use crate::disk::{Disk, DiskError, Kind};
use crate::failpoint;
use crate::limits::CONTROL_FILE_BYTES;
use crate::paths::Paths;
use crate::replace::replace_durably;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) store: StoreId,
    /// The last commit in the backup.
    pub(crate) sequence: Seq,
    pub(crate) epoch: Epoch,
    /// Number of files and their bytes, without the manifest.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Seconds since 1970.
    pub(crate) made: u64,
}

impl Manifest {
    /// `None` if it is missing or unreadable.
    pub(crate) fn read(disk: &Disk, path: &Path) -> Result<Option<Self>, DiskError> {
        match disk.read(path, CONTROL_FILE_BYTES) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn write(&self, disk: &Disk, path: &Path) -> Result<(), DiskError> {
        let line = serde_json::json!(self);
        replace_durably(disk, path, format!("{line}\n").as_bytes())
    }

    /// Why this manifest does not belong to a folder whose last commit is `last`.
    pub(crate) fn contradicts(&self, store: StoreId, last: Seq) -> Option<String> {
        if self.store != store {
            Some(format!("it belongs to store {}, not {store}", self.store))
        } else if self.sequence > last {
            let sequence = self.sequence;
            Some(format!(
                "it says that the last record is {sequence}, but the files end with record {last}"
            ))
        } else {
            None
        }
    }
}

/// True if the folder is a backup or was restored from one, and the work that was running at the backup is not
/// settled yet.
pub(crate) fn is_restored(disk: &Disk, paths: &Paths) -> Result<bool, DiskError> {
    Ok(disk.kind(&paths.manifest)? == Kind::File)
}

/// Durably clears the "restored" mark.
pub(crate) fn forget_restored(disk: &Disk, root: &Path) -> Result<(), DiskError> {
    let paths = Paths::new(root);
    match disk.remove_file(&paths.manifest) {
        Err(error) if error.is_missing() => Ok(()),
        result => {
            result?;
            failpoint::reach("manifest-removed");
            disk.sync_folder(&paths.root)
        }
    }
}
