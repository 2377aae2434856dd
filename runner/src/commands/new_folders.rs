//! Folders for something that may still fail.

use std::io;
use std::path::{Path, PathBuf};

use crate::workdir::make_private_folder;

/// Folders that were missing and are made; dropped, those that are still empty go again.
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
        // Stands before the first is made, so that a failure half-way is cleaned up too.
        let folders = Self {
            made: missing.map(Path::to_owned).collect(),
        };
        make_private_folder(path)?;
        Ok(folders)
    }

    /// What they were made for has come about.
    pub(super) fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for NewFolders {
    fn drop(&mut self) {
        for folder in &self.made {
            // One that somebody has put something into meanwhile stays, with those above it.
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
    fn only_what_was_missing_goes_again() {
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
