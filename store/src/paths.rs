//! The paths of the engine's own files below a state root. All other paths are keys.

use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskError};

#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub(crate) root: PathBuf,
    /// Format and identity of the store; written once, as the last step of creating a store.
    pub(crate) format: PathBuf,
    /// Locked by the writer; never removed.
    pub(crate) lock: PathBuf,
    /// Segments, spares, `CHECKPOINT`, `APPLIED`, `HOLD` and `LAST_BACKUP`.
    pub(crate) journal: PathBuf,
    pub(crate) checkpoint: PathBuf,
    /// The number of a commit that is durable in the journal.
    pub(crate) applied: PathBuf,
    /// Exists during a backup, locked by the process that makes it.
    pub(crate) hold: PathBuf,
    /// The manifest of the newest backup of this store. Backups do not contain it.
    pub(crate) last_backup: PathBuf,
    /// The manifest of a backup. A restored state keeps it until it is settled.
    pub(crate) manifest: PathBuf,
    /// Large objects that no batch has adopted. Every open removes them, after adopted objects have been moved to
    /// their keys.
    pub(crate) tmp: PathBuf,
    /// Copies of damaged files, and files that repair tools moved away.
    pub(crate) quarantine: PathBuf,
    /// The live index; it can be rebuilt from the tree.
    pub(crate) index: PathBuf,
}

impl Paths {
    pub(crate) fn new(root: &Path) -> Self {
        let journal = root.join("journal");
        Self {
            format: root.join("FORMAT"),
            lock: root.join("LOCK"),
            checkpoint: journal.join("CHECKPOINT"),
            applied: journal.join("APPLIED"),
            hold: journal.join("HOLD"),
            last_backup: journal.join("LAST_BACKUP"),
            manifest: root.join("BACKUP"),
            tmp: root.join("tmp"),
            quarantine: root.join("quarantine"),
            index: root.join("index"),
            root: root.to_owned(),
            journal,
        }
    }

    /// A path relative to the root, for messages.
    pub(crate) fn below(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        below.to_string_lossy().into_owned()
    }

    pub(crate) fn create_folders(&self, disk: &Disk) -> Result<(), DiskError> {
        [&self.journal, &self.tmp, &self.quarantine, &self.index]
            .into_iter()
            .try_for_each(|folder| disk.create_folder(folder))
    }
}
