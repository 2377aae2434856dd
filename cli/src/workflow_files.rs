//! Which files of a folder are workflows: every `*.yaml` and `*.yml` below it, as the daemon takes them from a commit.
//! Links are passed over, as there.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The file of a repository that is about the repository.
const NOT_A_WORKFLOW: &str = "everscan.yaml";

/// The workflow files among `paths` and below those that are folders, in order. A file that is named is taken whatever
/// it is called.
pub(crate) fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            below(path, &mut files)?;
        } else if path.file_name() == Some(OsStr::new(NOT_A_WORKFLOW)) {
            return Err(Error::Usage {
                what: format!("{} is no workflow", path.display()),
                hint: "that file is about its repository; name the files of workflows",
            });
        } else {
            files.push(path.clone());
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// For each file whose name another one has with the other extension, that other one: they would be one workflow.
pub(crate) fn rivals(files: &[PathBuf]) -> BTreeMap<&Path, &Path> {
    let mut names: BTreeMap<PathBuf, &Path> = BTreeMap::new();
    let mut rivals = BTreeMap::new();
    for file in files.iter().filter(|file| is_yaml(file)) {
        if let Some(first) = names.insert(file.with_extension(""), file) {
            rivals.insert(file.as_path(), first);
        }
    }
    rivals
}

fn below(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let failed = |source| Error::Read {
            path: folder.clone(),
            source,
        };
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            let path = entry.path();
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() && is_yaml(&path) && entry.file_name() != NOT_A_WORKFLOW {
                files.push(path);
            }
        }
    }
    Ok(())
}

fn is_yaml(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    matches!(extension, Some("yaml" | "yml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_the_daemon_would_take() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("deep/er")).unwrap();
        for name in [
            "b.yaml",
            "a.yml",
            "deep/er/c.yaml",
            "everscan.yaml",
            "notes.txt",
        ] {
            std::fs::write(at(name), "").unwrap();
        }
        std::os::unix::fs::symlink(at("b.yaml"), at("link.yaml")).unwrap();
        std::os::unix::fs::symlink(folder.path(), at("circle")).unwrap();
        let found = find(&[folder.path().to_owned(), at("notes.txt")]).unwrap();
        let expected = ["a.yml", "b.yaml", "deep/er/c.yaml", "notes.txt"].map(at);
        assert_eq!(found, expected);
    }

    #[test]
    fn files_that_differ_in_their_extension_are_rivals() {
        let files = ["a.yaml", "a.yml", "b.yaml", "d/a.yml"].map(PathBuf::from);
        let expected = BTreeMap::from([(Path::new("a.yml"), Path::new("a.yaml"))]);
        assert_eq!(rivals(&files), expected);
    }
}
