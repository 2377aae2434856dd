//! The paths that belong to the engine below a state root. Everything else there is a file of some key.

use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) root: PathBuf,
    /// Format and identity of the store; written once, last of all, when a store is made.
    pub(crate) format: PathBuf,
    /// Locked by the one writer; never removed.
    pub(crate) lock: PathBuf,
    /// Segments, spares, `CHECKPOINT` and `HOLD`.
    pub(crate) journal: PathBuf,
    pub(crate) checkpoint: PathBuf,
    /// There while a backup is being made, and locked by its process.
    pub(crate) hold: PathBuf,
    /// What a backup says of itself. In a state it says that this was restored from one.
    pub(crate) manifest: PathBuf,
    /// Large objects that no batch has adopted; emptied at every open, after what was adopted has its key.
    pub(crate) tmp: PathBuf,
    /// Copies of damaged files, and what repair tools do not trust.
    pub(crate) quarantine: PathBuf,
    /// What can be rebuilt from the other files.
    pub(crate) index: PathBuf,
}

impl Layout {
    pub(crate) fn new(root: &Path) -> Self {
        let journal = root.join("journal");
        Self {
            format: root.join("FORMAT"),
            lock: root.join("LOCK"),
            checkpoint: journal.join("CHECKPOINT"),
            hold: journal.join("HOLD"),
            manifest: root.join("BACKUP"),
            tmp: root.join("tmp"),
            quarantine: root.join("quarantine"),
            index: root.join("index"),
            root: root.to_owned(),
            journal,
        }
    }

    /// A path as people are told of it: below the root.
    pub(crate) fn below(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        below.to_string_lossy().into_owned()
    }

    pub(crate) fn folders(&self) -> [&Path; 4] {
        [&self.journal, &self.tmp, &self.quarantine, &self.index]
    }
}
