//! New folders that are removed again if the operation fails.

use std::io;
use std::path::{Path, PathBuf};

use crate::workdir::make_private_folder;

/// Folders that were made. Dropping the value removes the empty ones.
#[derive(Debug)]
pub(super) struct NewFolders {
    /// The deepest first.
    made: Vec<PathBuf>,
}

impl NewFolders {
    /// Makes a folder, and those above it, that only this user can enter.
    pub(super) fn make(path: &Path) -> io::Result<Self> {
        let missing = path
            .ancestors()
            .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        // Exists before the first folder is made, so that a failure halfway is cleaned up too.
        let folders = Self {
            made: missing.map(Path::to_owned).collect(),
        };
        make_private_folder(path)?;
        Ok(folders)
    }

    pub(super) fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for NewFolders {
    fn drop(&mut self) {
        for folder in &self.made {
            // A folder with content stays, and so do those above it.
            if std::fs::remove_dir(folder).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn only_folders_that_were_missing_are_removed() {
        let home = TempDir::new().unwrap();
        let there = home.path().join("there");
        std::fs::create_dir(&there).unwrap();
        let deep = there.join("a/b");
        drop(NewFolders::make(&deep).unwrap());
        assert!(there.exists() && !there.join("a").exists());

        let folders = NewFolders::make(&deep).unwrap();
        std::fs::write(there.join("a/file"), "").unwrap();
        drop(folders);
        assert!(there.join("a/file").exists() && !deep.exists());

        NewFolders::make(&deep).unwrap().keep();
        assert!(deep.exists());
        NewFolders::make(&there.join("a/file/below")).unwrap_err();
    }
}
