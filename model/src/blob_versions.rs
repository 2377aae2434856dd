//! Old contents of blobs. Each version is stored as a blob in a folder at the top of the project. So lists, downloads,
//! links, the quota and backups need no code for versions.

use std::collections::BTreeMap;

use crate::Timestamp;
use crate::blob::{Blob, BlobPath, BlobPathError};

/// The folder of all old contents. They have no versions themselves.
const VERSIONS: &str = ".versions";

/// How many old contents of a blob are kept, by folder. The deepest folder with an entry decides. Without an entry, no
/// old content is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptVersions(BTreeMap<Vec<String>, u8>);

impl KeptVersions {
    pub fn new(folders: BTreeMap<Vec<String>, u8>) -> Self {
        Self(folders)
    }

    pub fn of(&self, path: &BlobPath) -> usize {
        let folders = path.folders();
        if is_version(path) {
            return 0;
        }
        let mut depths = (0..=folders.len()).rev();
        let kept = depths.find_map(|depth| self.0.get(&folders[..depth]));
        kept.copied().unwrap_or(0).into()
    }
}

/// True for paths of old contents. Users cannot store blobs there.
pub fn is_version(path: &BlobPath) -> bool {
    path.names().first().is_some_and(|first| first == VERSIONS)
}

/// The folder of the blob's old contents.
pub fn versions_of(path: &BlobPath) -> Vec<String> {
    [&[VERSIONS.to_owned()], path.names()].concat()
}

/// The path for the content of a blob that is replaced now. Paths sort by time.
pub fn version_path(blob: &Blob, now: Timestamp) -> Result<BlobPath, BlobPathError> {
    let mut names = versions_of(&blob.path);
    let replaced = now.format("%Y-%m-%dT%H%M%S%.3fZ");
    // If two contents are replaced at the same time, both are kept.
    let content = blob.sha256.get(..8).unwrap_or(&blob.sha256);
    names.push(format!("{replaced}-{content}"));
    BlobPath::new(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Actor, ProjectId};

    fn path(text: &str) -> BlobPath {
        text.parse().unwrap()
    }

    fn names(text: &str) -> Vec<String> {
        text.split_terminator('/').map(str::to_owned).collect()
    }

    #[test]
    fn the_deepest_folder_with_an_entry_decides() {
        let folders = [("", 1), ("a/b", 3), ("a/b/c", 0)];
        let kept = KeptVersions::new(folders.map(|(folder, kept)| (names(folder), kept)).into());
        for (at, expected) in [
            ("x", 1),
            ("a/x", 1),
            ("a/b", 1),
            ("a/b/x", 3),
            ("a/b/d/x", 3),
            ("a/b/c/x", 0),
            (".versions/a/b/x/1", 0),
        ] {
            assert_eq!(kept.of(&path(at)), expected, "{at}");
        }
        assert_eq!(KeptVersions::default().of(&path("x")), 0);
    }

    #[test]
    fn the_name_of_a_version_has_its_time_of_replacement_and_its_digest() {
        let blob = Blob {
            project: ProjectId::of_source(&"recon".parse().unwrap()),
            path: path("a/b.txt"),
            size: 1,
            sha256: "0123456789abcdef".repeat(4),
            modified_at: Timestamp::UNIX_EPOCH,
            by: Actor::Daemon,
            expires_at: None,
        };
        let now = "2026-11-24T02:03:04.5Z".parse().unwrap();
        let version = version_path(&blob, now).unwrap().to_string();
        assert_eq!(version, ".versions/a/b.txt/2026-11-24T020304.500Z-01234567");
        let deep = BlobPath::new(vec!["d".to_owned(); 32]).unwrap();
        let deep = Blob { path: deep, ..blob };
        assert_eq!(version_path(&deep, now), Err(BlobPathError::Deep(34)));
    }
}
