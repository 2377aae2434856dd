//! Finds workflow files: every `*.yaml` and `*.yml` below a folder, like the daemon in a commit. Files that the daemon would
//! refuse are also found, so that they can be reported.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::FileType;
use std::path::{Path, PathBuf};

use workflow::SETTINGS_FILE;

use crate::error::Error;
use crate::reading::is_stdin;

const GIT_FOLDER: &str = ".git";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file, or a missing path. Reading shows which.
    File,
    /// A symbolic link inside a folder. A link that is named directly is followed.
    Link,
    /// A file inside a folder with a name that is not UTF-8.
    Misnamed,
    /// A pipe, socket or device. Reading it could block forever.
    Special,
}

impl Kind {
    fn of(kind: FileType) -> Self {
        if kind.is_symlink() {
            Self::Link
        } else if kind.is_file() {
            Self::File
        } else {
            Self::Special
        }
    }
}

/// The workflow files among `paths` and below the folders among them, each once and in order. A file that is named directly is
/// taken under any name.
pub(crate) fn find(paths: &[PathBuf]) -> Result<BTreeMap<PathBuf, Kind>, Error> {
    let mut found = Found::new();
    let (folders, named): (Vec<_>, Vec<_>) = paths.iter().partition(|path| is_folder(path));
    for folder in folders {
        below(folder, &mut found)?;
    }
    // After the folders, so that a directly named file counts as such even if a folder contains it.
    for path in named.into_iter().filter(|path| !is_settings(path)) {
        add_named(path, &mut found);
    }
    Ok(found.into_values().collect())
}

pub(crate) fn is_settings(path: &Path) -> bool {
    path.file_name() == Some(OsStr::new(SETTINGS_FILE))
}

/// The settings files of repositories: those among `paths`, in the folders among them, and at the top of the Git repositories
/// around them.
pub(crate) fn settings(paths: &[PathBuf]) -> Vec<(PathBuf, Kind)> {
    let mut found: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    let here = Path::new(".").canonicalize().ok();
    for path in paths.iter().filter(|path| !is_stdin(path)) {
        let folder = match path.parent() {
            _ if path.is_dir() => path.as_path(),
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        let Ok(place) = folder.canonicalize() else {
            continue;
        };
        let top = place.ancestors().find(|top| top.join(GIT_FOLDER).exists());
        if path.is_dir() || is_settings(path) {
            let shown = folder.strip_prefix(".").unwrap_or(folder);
            found.entry(place.clone()).or_insert(shown.to_owned());
        }
        if let Some(top) = top {
            let shown = here.as_ref().and_then(|here| top.strip_prefix(here).ok());
            let shown = shown.unwrap_or(top).to_owned();
            found.entry(top.to_owned()).or_insert(shown);
        }
    }
    let found = found.into_values().map(|shown| shown.join(SETTINGS_FILE));
    let kind = |file: &Path| Some(Kind::of(file.symlink_metadata().ok()?.file_type()));
    found
        .filter_map(|file| Some((kind(&file)?, file)))
        .map(|(kind, file)| (file, kind))
        .collect()
}

pub(crate) fn is_folder(path: &Path) -> bool {
    !is_stdin(path) && path.is_dir()
}

/// The files by their place, each with the first path to it.
type Found = BTreeMap<PathBuf, (PathBuf, Kind)>;

/// Adds a file that is named directly, or the target of a link that is named directly.
fn add_named(path: &Path, found: &mut Found) {
    if is_stdin(path) {
        found.insert(path.to_owned(), (path.to_owned(), Kind::File));
        return;
    }
    let link = place(path);
    let target = path.canonicalize().unwrap_or_else(|_| link.clone());
    if link != target {
        // The folder contains it as a link, which would be refused.
        found.remove(&link);
    }
    let kind = match std::fs::metadata(path) {
        Ok(there) => Kind::of(there.file_type()),
        Err(_) => Kind::File,
    };
    let (_, known) = found.entry(target).or_insert((path.to_owned(), kind));
    *known = kind;
}

/// The place of the path itself, not of a link's target. A missing path stays unchanged.
fn place(path: &Path) -> PathBuf {
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return path.to_owned(),
    };
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        (Err(_), _) | (_, None) => path.to_owned(),
    }
}

/// Pairs of files whose names differ only in the extension. Both would be the same workflow. Each pair is the later and the
/// earlier file.
pub(crate) fn rivals<'f>(
    files: impl IntoIterator<Item = &'f PathBuf>,
) -> BTreeMap<&'f Path, &'f Path> {
    let mut names: BTreeMap<PathBuf, &Path> = BTreeMap::new();
    let mut rivals = BTreeMap::new();
    for file in files.into_iter().filter(|file| is_yaml(file)) {
        if let Some(first) = names.insert(file.with_extension(""), file) {
            rivals.insert(file.as_path(), first);
        }
    }
    rivals
}

fn below(folder: &Path, found: &mut Found) -> Result<(), Error> {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let failed = Error::reading(&folder);
        let place = folder.canonicalize().map_err(failed)?;
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            let (name, path) = (entry.file_name(), entry.path());
            if kind.is_dir() {
                if name != GIT_FOLDER {
                    open.push(path);
                }
            } else if is_yaml(&path) && name != SETTINGS_FILE {
                let kind = match Kind::of(kind) {
                    Kind::File if name.to_str().is_none() => Kind::Misnamed,
                    kind => kind,
                };
                found.entry(place.join(name)).or_insert((path, kind));
            }
        }
    }
    Ok(())
}

fn is_yaml(path: &Path) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    path.ends_with(b".yaml") || path.ends_with(b".yml")
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn finds_the_files_that_the_daemon_reads() {
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
        for (target, link) in [
            ("b.yaml", "link.yaml"),
            ("deep", "folder.yaml"),
            ("", "circle"),
        ] {
            std::os::unix::fs::symlink(at(target), at(link)).unwrap();
        }
        let _socket = UnixListener::bind(at("socket.yml")).unwrap();
        let misnamed = OsStr::from_bytes(b"\xff.yaml");
        std::fs::write(folder.path().join(misnamed), "").unwrap();
        std::fs::create_dir(at(".git")).unwrap();
        std::fs::write(at(".git/branch.yaml"), "").unwrap();
        let found = find(&[at("notes.txt"), folder.path().to_owned()]);
        let expected = [
            ("a.yml", Kind::File),
            ("b.yaml", Kind::File),
            ("deep/er/c.yaml", Kind::File),
            ("folder.yaml", Kind::Link),
            ("link.yaml", Kind::Link),
            ("notes.txt", Kind::File),
            ("socket.yml", Kind::Special),
        ];
        let mut expected = BTreeMap::from(expected.map(|(name, kind)| (at(name), kind)));
        expected.insert(folder.path().join(misnamed), Kind::Misnamed);
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn a_named_link_is_followed_and_a_socket_is_special() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("text"), "").unwrap();
        std::os::unix::fs::symlink(at("text"), at("link.yaml")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        for (name, kind) in [
            ("link.yaml", Kind::File),
            ("nothing", Kind::File),
            ("socket", Kind::Special),
        ] {
            let paths = [folder.path().to_owned(), at(name)];
            assert_eq!(find(&paths).unwrap()[&at(name)], kind, "{name}");
        }
        let stdin = PathBuf::from("-");
        assert_eq!(
            find(std::slice::from_ref(&stdin)).unwrap()[&stdin],
            Kind::File
        );
    }

    #[test]
    fn each_file_is_found_once_by_the_path_that_led_there_first() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("deep")).unwrap();
        for name in ["b.yaml", "deep/c.yaml"] {
            std::fs::write(at(name), "").unwrap();
        }
        for (target, link) in [("b.yaml", "link.yaml"), ("deep", "folder")] {
            std::os::unix::fs::symlink(at(target), at(link)).unwrap();
        }
        for (paths, expected) in [
            (["b.yaml", "./b.yaml", "deep/../b.yaml"], &["b.yaml"][..]),
            (["link.yaml", "b.yaml", "./b.yaml"], &["link.yaml"]),
            (["folder", "deep", "deep/c.yaml"], &["folder/c.yaml"]),
            // The folder contains the file, so no refused link remains.
            ([".", "link.yaml", "deep"], &["./b.yaml", "./deep/c.yaml"]),
            (["nothing", "./nothing", "deep/../nothing"], &["nothing"]),
        ] {
            let given = paths.map(&at);
            let expected = expected.iter().map(|path| (at(path), Kind::File));
            assert_eq!(find(&given).unwrap(), expected.collect(), "{paths:?}");
        }
    }

    #[test]
    fn files_that_differ_only_in_the_extension_conflict() {
        let files = ["a.yaml", "a.yml", "b.yaml", "d/a.yml"].map(PathBuf::from);
        let expected = BTreeMap::from([(Path::new("a.yml"), Path::new("a.yaml"))]);
        assert_eq!(rivals(&files), expected);
    }
}
