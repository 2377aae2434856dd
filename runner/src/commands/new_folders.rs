//! New folders that are removed again if the operation fails.

use std::io;
use std::path::{Path, PathBuf};

use crate::workdir::make_private_folder;

/// Folders that were made. Dropping the value removes those that are still empty.
#[derive(Debug)]
pub(super) struct NewFolders {
    /// The made folders, deepest first.
    made: Vec<PathBuf>,
}

impl NewFolders {
    /// Makes a folder and its missing parents. Only this user can enter them.
    pub(super) fn make(path: &Path) -> io::Result<Self> {
        let missing = path
            .ancestors()
            .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        // Exists before the first folder is made, so that a partial failure is also cleaned up.
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
            // A folder with content stays, and so do its parents.
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
