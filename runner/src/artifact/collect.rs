//! Finds the files of an artifact: sorted entry names, each with its file. Follows links only inside the job's folder, so that an
//! artifact never contains files from outside.

use std::collections::BTreeMap;
use std::fs::{DirEntry, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;
use workflow::PathPattern;

use super::ArtifactError;
use super::left_out::{LeftOut, Oddity, unreadable};
use crate::limits;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The path of the file, without links.
    pub(super) path: PathBuf,
    pub(super) mode: u32,
    pub(super) kind: EntryKind,
}

impl Entry {
    pub(super) const fn length(&self) -> u64 {
        match self.kind {
            EntryKind::File(length) => length,
            EntryKind::Folder => 0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    File(u64),
    Folder,
}

/// Entries by name. The names of folders end with a slash. `folder` is the job's folder.
pub(super) fn collect(
    folder: &Path,
    paths: &[String],
    left_out: &mut LeftOut,
) -> Result<BTreeMap<String, Entry>, ArtifactError> {
    let root = folder
        .canonicalize()
        .map_err(|source| ArtifactError::Read {
            path: folder.to_owned(),
            source,
        })?;
    let mut collection = Collection {
        root,
        entries: BTreeMap::new(),
        left_out,
    };
    for path in paths {
        match PathPattern::of(path) {
            None => collection.add_declared(path, &name_of(path)?)?,
            Some(Ok(pattern)) => collection.add_matches(path, &pattern)?,
            Some(Err(problem)) => {
                return Err(ArtifactError::Pattern {
                    path: path.clone(),
                    problem,
                });
            }
        }
    }
    Ok(collection.entries)
}

/// The entry name of a declared path, without `.` and doubled slashes. Empty for the job's folder itself.
fn name_of(path: &str) -> Result<String, ArtifactError> {
    let outside = || ArtifactError::Outside {
        path: path.to_owned(),
    };
    if path.is_empty() || path.contains('\0') {
        return Err(outside());
    }
    let mut name = String::new();
    for component in Path::new(path).components() {
        match component {
            Component::CurDir => {}
            Component::Normal(part) => {
                if !name.is_empty() {
                    name.push('/');
                }
                name.push_str(part.to_str().ok_or_else(outside)?);
            }
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(outside());
            }
        }
    }
    Ok(name)
}

/// The same for the folder of a pattern. Empty for the job's folder itself.
fn name_of_folder(folder: &str) -> Result<String, ArtifactError> {
    if folder.is_empty() {
        return Ok(String::new());
    }
    name_of(folder)
}

struct Collection<'a> {
    root: PathBuf,
    entries: BTreeMap<String, Entry>,
    left_out: &'a mut LeftOut,
}

struct Pending {
    name: String,
    path: PathBuf,
    depth: usize,
}

impl Collection<'_> {
    fn add_declared(&mut self, declared: &str, name: &str) -> Result<(), ArtifactError> {
        let path = self.root.join(name);
        match std::fs::symlink_metadata(&path) {
            Ok(_) => {}
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Err(ArtifactError::Missing {
                    path: declared.to_owned(),
                });
            }
            Err(source) => return Err(ArtifactError::Read { path, source }),
        }
        self.left_out.declare(name);
        let mut pending = Vec::new();
        self.add(name.to_owned(), &path, 0, &mut pending)?;
        while let Some(folder) = pending.pop() {
            for child in self.children(&folder)? {
                let name = child.file_name();
                let added = match name.to_str() {
                    Some(name) => {
                        let name = format!("{}{name}", folder.name);
                        self.add(name, &child.path(), folder.depth + 1, &mut pending)
                    }
                    None => Err(ArtifactError::Odd {
                        name: format!("{}{}", folder.name, name.to_string_lossy()),
                        oddity: Oddity::NotUtf8,
                    }),
                };
                self.left_out.tolerate(added)?;
            }
        }
        Ok(())
    }

    /// Adds the files that match a pattern. The search does not follow links to folders.
    fn add_matches(&mut self, declared: &str, pattern: &PathPattern) -> Result<(), ArtifactError> {
        let name = name_of_folder(pattern.folder())?;
        self.left_out.declare(&name);
        let path = self.root.join(&name);
        let is_folder = std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        let mut pending = Vec::new();
        if is_folder {
            // A link in the path may lead out of the job's folder.
            let (path, _) = self.resolve(&name, &path)?;
            let name = if name.is_empty() { name } else { name + "/" };
            pending.push(Pending {
                name,
                path,
                depth: 0,
            });
        }
        let (mut entries, mut is_missing) = (0, true);
        while let Some(folder) = pending.pop() {
            for child in self.children(&folder)? {
                entries += 1;
                if entries > limits::PATTERN_ENTRIES {
                    return Err(ArtifactError::TooWide {
                        path: declared.to_owned(),
                        limit: limits::PATTERN_ENTRIES,
                    });
                }
                let path = child.path();
                let file_name = child.file_name();
                let relative = Path::new(&folder.name).join(&file_name);
                let kind = child.file_type().map_err(|source| ArtifactError::Read {
                    path: path.clone(),
                    source,
                })?;
                let is_match = !kind.is_dir() && pattern.matches(&relative);
                let Some(file_name) = file_name.to_str() else {
                    if is_match || kind.is_dir() {
                        let name = relative.to_string_lossy().into_owned();
                        let oddity = Oddity::NotUtf8;
                        let odd = Err(ArtifactError::Odd { name, oddity });
                        self.left_out.tolerate::<()>(odd)?;
                    }
                    continue;
                };
                let name = format!("{}{file_name}", folder.name);
                if kind.is_dir() {
                    if folder.depth >= limits::ARTIFACT_DEPTH {
                        let limit = limits::ARTIFACT_DEPTH;
                        return Err(ArtifactError::TooDeep { name, limit });
                    }
                    pending.push(Pending {
                        name: name + "/",
                        path,
                        depth: folder.depth + 1,
                    });
                } else if is_match {
                    let added = self.add_file(name, &path);
                    is_missing &= self.left_out.tolerate(added)? != Some(true);
                }
            }
        }
        if is_missing {
            return Err(ArtifactError::NoMatch {
                path: declared.to_owned(),
            });
        }
        Ok(())
    }

    /// Adds a file, or the target of a link to a file. False for a link to a folder.
    fn add_file(&mut self, name: String, path: &Path) -> Result<bool, ArtifactError> {
        // The target may be anywhere.
        if std::fs::metadata(path).is_ok_and(|found| found.is_dir()) {
            return Ok(false);
        }
        let (path, metadata) = self.resolve(&name, path)?;
        if !metadata.is_file() {
            let oddity = Oddity::Special;
            return Err(ArtifactError::Odd { name, oddity });
        }
        let mode = metadata.permissions().mode() & 0o777;
        let kind = EntryKind::File(metadata.len());
        self.insert(name, Entry { path, mode, kind })?;
        Ok(true)
    }

    /// The entries of a folder. Empty if the folder is left out.
    fn children(&mut self, folder: &Pending) -> Result<Vec<DirEntry>, ArtifactError> {
        let read = self.left_out.tolerate(read_folder(folder))?;
        Ok(read.unwrap_or_default())
    }

    fn add(
        &mut self,
        name: String,
        path: &Path,
        depth: usize,
        pending: &mut Vec<Pending>,
    ) -> Result<(), ArtifactError> {
        let (resolved, metadata) = self.resolve(&name, path)?;
        // Only the last part of the path can be a link, because its folder was resolved.
        if path != resolved && path.starts_with(&resolved) {
            let oddity = Oddity::LinkToOwnFolder;
            return Err(ArtifactError::Odd { name, oddity });
        }
        let path = resolved;
        if depth > limits::ARTIFACT_DEPTH {
            return Err(ArtifactError::TooDeep {
                name,
                limit: limits::ARTIFACT_DEPTH,
            });
        }
        let mode = metadata.permissions().mode() & 0o777;
        if metadata.is_file() {
            let kind = EntryKind::File(metadata.len());
            self.insert(name, Entry { path, mode, kind })
        } else if metadata.is_dir() {
            let name = if name.is_empty() { name } else { name + "/" };
            if !name.is_empty() {
                let kind = EntryKind::Folder;
                let path = path.clone();
                self.insert(name.clone(), Entry { path, mode, kind })?;
            }
            pending.push(Pending { name, path, depth });
            Ok(())
        } else {
            let oddity = Oddity::Special;
            Err(ArtifactError::Odd { name, oddity })
        }
    }

    fn insert(&mut self, name: String, entry: Entry) -> Result<(), ArtifactError> {
        self.entries.insert(name, entry);
        if self.entries.len() > limits::ARTIFACT_ENTRIES {
            return Err(ArtifactError::TooMany {
                limit: limits::ARTIFACT_ENTRIES,
            });
        }
        Ok(())
    }

    /// Follows links. Refuses links that lead out of the job's folder.
    fn resolve(&self, name: &str, path: &Path) -> Result<(PathBuf, Metadata), ArtifactError> {
        let resolved = match path.canonicalize() {
            Ok(resolved) => resolved,
            Err(error) => {
                return Err(match Errno::from_io_error(&error) {
                    Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => ArtifactError::Odd {
                        name: name.to_owned(),
                        oddity: Oddity::LinkToNothing,
                    },
                    Some(_) | None => unreadable(name, path, error),
                });
            }
        };
        if !resolved.starts_with(&self.root) {
            return Err(ArtifactError::LinkOutside {
                name: name.to_owned(),
            });
        }
        let metadata =
            std::fs::metadata(&resolved).map_err(|error| unreadable(name, path, error))?;
        Ok((resolved, metadata))
    }
}

fn read_folder(folder: &Pending) -> Result<Vec<DirEntry>, ArtifactError> {
    let failed = |error| unreadable(&folder.name, &folder.path, error);
    let mut children = Vec::new();
    for entry in std::fs::read_dir(&folder.path).map_err(failed)? {
        children.push(entry.map_err(failed)?);
        // One entry more than the limit is enough to refuse the artifact.
        if children.len() > limits::PATTERN_ENTRIES {
            break;
        }
    }
    Ok(children)
}
