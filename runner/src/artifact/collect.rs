//! Finds the files of an artifact: sorted entry names, each with its file. Follows links only inside the job's folder, so
//! that an artifact never has files of others.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use super::ArtifactError;
use crate::limits;

/// One entry of a zip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Where it is, without links.
    pub(super) path: PathBuf,
    /// Permission bits.
    pub(super) mode: u32,
    /// What it is.
    pub(super) kind: EntryKind,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// A file of this length.
    File(u64),
    /// A folder.
    Folder,
}

/// Entries by name; the names of folders end with a slash. `folder` is the job's.
///
/// # Errors
/// [`ArtifactError`] for the first thing that cannot be packed.
pub(super) fn collect(
    folder: &Path,
    paths: &[String],
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
    };
    for path in paths {
        let name = name_of(path)?;
        collection.add_declared(path, &name)?;
    }
    Ok(collection.entries)
}

/// The entry name of a declared path: without `.` and doubled slashes. Empty for the job's folder itself.
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

struct Collection {
    root: PathBuf,
    entries: BTreeMap<String, Entry>,
}

/// A folder still to be read.
struct Pending {
    name: String,
    path: PathBuf,
    depth: usize,
}

impl Collection {
    fn add_declared(&mut self, declared: &str, name: &str) -> Result<(), ArtifactError> {
        let path = self.root.join(name);
        match std::fs::symlink_metadata(&path) {
            Ok(_) => {}
            Err(error) if is_absence(&error) => {
                return Err(ArtifactError::Missing {
                    path: declared.to_owned(),
                });
            }
            Err(source) => return Err(ArtifactError::Read { path, source }),
        }
        let mut pending = Vec::new();
        self.add(name.to_owned(), &path, 0, &mut pending)?;
        while let Some(folder) = pending.pop() {
            self.add_children(&folder, &mut pending)?;
        }
        Ok(())
    }

    fn add_children(
        &mut self,
        folder: &Pending,
        pending: &mut Vec<Pending>,
    ) -> Result<(), ArtifactError> {
        let unreadable = |source| ArtifactError::Read {
            path: folder.path.clone(),
            source,
        };
        for child in std::fs::read_dir(&folder.path).map_err(unreadable)? {
            let child = child.map_err(unreadable)?;
            let file_name = child.file_name();
            let Some(file_name) = file_name.to_str() else {
                return Err(ArtifactError::Name {
                    name: format!("{}{}", folder.name, file_name.to_string_lossy()),
                });
            };
            let name = format!("{}{file_name}", folder.name);
            self.add(name, &child.path(), folder.depth + 1, pending)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        name: String,
        path: &Path,
        depth: usize,
        pending: &mut Vec<Pending>,
    ) -> Result<(), ArtifactError> {
        let (path, metadata) = self.resolve(&name, path)?;
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
            Err(ArtifactError::Special { name })
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

    /// Follows links. Refuses those that lead out of the job's folder.
    fn resolve(&self, name: &str, path: &Path) -> Result<(PathBuf, Metadata), ArtifactError> {
        let unreadable = |source| ArtifactError::Read {
            path: path.to_owned(),
            source,
        };
        let resolved = match path.canonicalize() {
            Ok(resolved) => resolved,
            Err(error) if is_absence(&error) => {
                return Err(ArtifactError::BrokenLink {
                    name: name.to_owned(),
                });
            }
            Err(source) => return Err(unreadable(source)),
        };
        if !resolved.starts_with(&self.root) {
            return Err(ArtifactError::LinkOutside {
                name: name.to_owned(),
            });
        }
        let metadata = std::fs::metadata(&resolved).map_err(unreadable)?;
        Ok((resolved, metadata))
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
