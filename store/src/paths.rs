//! The paths of the engine's own files below a state root. Everything else there is a file of some key.

use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskError};

#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub(crate) root: PathBuf,
    /// Format and identity of the store; written once, last of all, when a store is made.
    pub(crate) format: PathBuf,
    /// Locked by the one writer; never removed.
    pub(crate) lock: PathBuf,
    /// Segments, spares, `CHECKPOINT`, `APPLIED` and `HOLD`.
    pub(crate) journal: PathBuf,
    pub(crate) checkpoint: PathBuf,
    /// A commit that is in the journal for certain.
    pub(crate) applied: PathBuf,
    /// Exists while a backup is being made, locked by the process that makes it.
    pub(crate) hold: PathBuf,
    /// The manifest of a backup. In a state folder it says that the state was restored from one.
    pub(crate) manifest: PathBuf,
    /// Large objects that no batch has adopted. Every open empties it, once adopted objects have their keys.
    pub(crate) tmp: PathBuf,
    /// Copies of damaged files, and files that repair tools moved away.
    pub(crate) quarantine: PathBuf,
    /// The live index, which can be rebuilt from the other files.
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

    /// Creates the engine's folders where they are missing.
    pub(crate) fn create_folders(&self, disk: &Disk) -> Result<(), DiskError> {
        [&self.journal, &self.tmp, &self.quarantine, &self.index]
            .into_iter()
            .try_for_each(|folder| disk.create_folder(folder))
    }
}
