//! The instance name, by which the daemon distinguishes a runner's process from another process with the same registration.
//!
//! The name is derived from the machine's boot and the lock file in the runner's folder:
//!
//! - A process that restarts in the same folder has the same name. The earlier process is dead, because it held the lock.
//! - A process in a copy of the folder has a different name.
//! - After a reboot the name changes, because a cloned machine looks like a rebooted machine. The daemon then waits until the
//!   earlier process is silent.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::{lock, workdir};

const LOCK: &str = "lock";

const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// Why this process cannot be the runner.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    #[error("the runner in {} is running already", folder.display())]
    Running { folder: PathBuf },
    #[error("cannot lock the runner's folder {}", folder.display())]
    Unusable { folder: PathBuf, source: io::Error },
}

/// The name of this process, and the lock that keeps other processes from using the name.
#[derive(Debug)]
pub(crate) struct Instance {
    id: Uuid,
    /// Closing the file releases the lock.
    _lock: File,
}

impl Instance {
    /// Makes this process the runner of the folder.
    pub(crate) fn take(folder: &Path) -> Result<Self, InstanceError> {
        let unusable = |source| InstanceError::Unusable {
            folder: folder.to_owned(),
            source,
        };
        workdir::make_private_folder(folder).map_err(unusable)?;
        let lock = lock::take(&folder.join(LOCK))
            .map_err(unusable)?
            .ok_or_else(|| InstanceError::Running {
                folder: folder.to_owned(),
            })?;
        let file = lock.metadata().map_err(unusable)?;
        let place = format!("{}:{}", file.dev(), file.ino());
        Ok(Self {
            id: Uuid::new_v5(&boot(), place.as_bytes()),
            _lock: lock,
        })
    }

    pub(crate) const fn id(&self) -> Uuid {
        self.id
    }
}

/// The id of the machine's current boot. If the system has no boot id, a random id, so that no two processes share a name.
fn boot() -> Uuid {
    let boot = std::fs::read_to_string(BOOT).ok();
    boot.and_then(|boot| boot.trim().parse().ok())
        .unwrap_or_else(Uuid::new_v4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn one_process_at_a_time_is_the_runner_of_a_folder() {
        let home = TempDir::new().unwrap();
        let folder = home.path().join("one");
        let first = Instance::take(&folder).unwrap();
        let second = Instance::take(&folder);
        assert!(matches!(second, Err(InstanceError::Running { .. })));
        let id = first.id();
        drop(first);
        assert_eq!(Instance::take(&folder).unwrap().id(), id);
    }

    #[test]
    fn the_copy_of_a_folder_has_another_name() {
        let home = TempDir::new().unwrap();
        let (one, two) = (home.path().join("one"), home.path().join("two"));
        let original = Instance::take(&one).unwrap();
        std::fs::create_dir(&two).unwrap();
        std::fs::copy(one.join(LOCK), two.join(LOCK)).unwrap();
        let copy = Instance::take(&two).unwrap();
        assert_ne!(copy.id(), original.id());
    }
}
