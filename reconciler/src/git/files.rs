//! The files of one commit that a job gets: first their list, which is checked, then a tar of them.
//!
//! Listing finds everything that must be refused before the first byte is sent. The content of a repository is not
//! trusted: a tree that no Git tool would create, such as a tree with two entries of the same name, is refused.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use git2::{ErrorCode, Odb, Oid, Repository};
use tar::{Builder, EntryType, Header};

use super::{CommitId, FileLimits, left_out, limits};

#[derive(Debug)]
pub(crate) struct Files {
    commit: CommitId,
    /// The time of the commit, in seconds.
    time: u64,
    /// Sorted by path, so that the same files make the same tar.
    entries: BTreeMap<Vec<u8>, Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    kind: Kind,
    object: Oid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File {
        executable: bool,
    },
    Link,
    /// The commit of another repository.
    Submodule,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum FilesError {
    #[error("commit {commit} is not in the mirror")]
    Missing { commit: CommitId },
    #[error("commit {commit} has no `{path}`{}", only_there(only.as_deref()))]
    NoSuchPath {
        commit: CommitId,
        path: String,
        /// The only entry at the top of the commit, if there is exactly one and the path is not below it.
        only: Option<String>,
    },
    #[error("commit {commit}: {path} {problem}")]
    Refused {
        commit: CommitId,
        path: String,
        problem: String,
    },
    #[error(
        "commit {commit} has more than {limit} {what}; name the paths that the job needs in `checkout`"
    )]
    TooMuch {
        commit: CommitId,
        what: &'static str,
        limit: u64,
    },
    #[error("the mirror cannot be read")]
    Damaged(#[source] git2::Error),
    #[error("the files cannot be sent")]
    Unsent(#[source] io::Error),
}

/// `everscand up` commits the folder of workflows alone, and its users do not see the commit.
fn only_there(name: Option<&str>) -> String {
    name.map(|name| format!("; only `{name}` is there"))
        .unwrap_or_default()
}

/// Lists the files at or below `paths`; all files if there are none.
pub(super) fn list(
    mirror: &Repository,
    commit: CommitId,
    paths: &[String],
    limits: &FileLimits,
) -> Result<Files, FilesError> {
    let found = mirror.find_commit(commit.oid()).map_err(|error| {
        if error.code() == ErrorCode::NotFound {
            FilesError::Missing { commit }
        } else {
            FilesError::Damaged(error)
        }
    })?;
    let mut lister = Lister {
        mirror,
        objects: mirror.odb().map_err(FilesError::Damaged)?,
        limits,
        visited: 0,
        bytes: 0,
        left_out: None,
        files: Files {
            commit,
            time: u64::try_from(found.time().seconds()).unwrap_or(0),
            entries: BTreeMap::new(),
        },
    };
    if paths.is_empty() {
        lister.folder(found.tree_id(), &[], 0)?;
    }
    for path in paths {
        lister.path(found.tree_id(), path)?;
    }
    Ok(lister.files)
}

struct Lister<'a> {
    mirror: &'a Repository,
    objects: Odb<'a>,
    limits: &'a FileLimits,
    visited: usize,
    bytes: u64,
    /// Loaded when the first blob is missing.
    left_out: Option<BTreeMap<Oid, usize>>,
    files: Files,
}

impl<'a> Lister<'a> {
    fn path(&mut self, top: Oid, path: &str) -> Result<(), FilesError> {
        let none = || FilesError::NoSuchPath {
            commit: self.files.commit,
            path: path.to_owned(),
            only: self
                .only_entry(top)
                .filter(|only| !path.starts_with(only.as_str())),
        };
        let names: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
        let Some((last, folders)) = names.split_last() else {
            return Err(none());
        };
        let mut tree = top;
        let mut above = Vec::new();
        for name in folders {
            if let Some(problem) = problem_of(name) {
                return Err(self.refused(&joined(&above, name), problem));
            }
            let found = self.tree(tree)?;
            let entry = entry_of(&found, name).filter(|entry| entry.mode == Mode::Folder);
            tree = entry.ok_or_else(none)?.object;
            above = joined(&above, name);
        }
        let found = self.tree(tree)?;
        let entry = entry_of(&found, last).ok_or_else(none)?;
        self.entry(&above, &entry, folders.len())
    }

    fn folder(&mut self, tree: Oid, above: &[u8], depth: usize) -> Result<(), FilesError> {
        if depth > self.limits.depth {
            return Err(self.too_much("folders inside each other", self.limits.depth as u64));
        }
        let found = self.tree(tree)?;
        let mut names = HashSet::new();
        for entry in &found {
            if !names.insert(entry.name_bytes().to_vec()) {
                let path = joined(above, entry.name_bytes());
                return Err(self.refused(&path, "is there twice"));
            }
        }
        for entry in &found {
            self.entry(above, &TreeEntry::of(&entry), depth)?;
        }
        Ok(())
    }

    fn entry(&mut self, above: &[u8], entry: &TreeEntry, depth: usize) -> Result<(), FilesError> {
        let path = joined(above, &entry.name);
        self.visited += 1;
        if self.visited > self.limits.entries {
            return Err(self.too_much("files and folders", self.limits.entries as u64));
        }
        if let Some(problem) = problem_of(&entry.name) {
            return Err(self.refused(&path, problem));
        }
        if path.len() > self.limits.path_bytes {
            return Err(self.refused(&path, "is a path that is too long"));
        }
        let kind = match entry.mode {
            Mode::Folder => return self.folder(entry.object, &path, depth + 1),
            Mode::File { executable } => Kind::File { executable },
            Mode::Link => Kind::Link,
            Mode::Submodule => Kind::Submodule,
            Mode::Unknown(mode) => {
                return Err(
                    self.refused(&path, &format!("has mode {mode:o}, which Git does not use"))
                );
            }
        };
        let size = match kind {
            Kind::File { .. } => self.size(&path, entry.object, self.limits.file_bytes)?,
            Kind::Link => self.link(&path, entry.object)?,
            Kind::Submodule => 0,
        };
        // The job may name both a path and a folder above it.
        let object = entry.object;
        if self
            .files
            .entries
            .insert(path, Entry { kind, object })
            .is_none()
        {
            self.bytes += size as u64;
        }
        if self.bytes > self.limits.total_bytes {
            return Err(self.too_much("bytes of files", self.limits.total_bytes));
        }
        Ok(())
    }

    /// The size of a link's target. Refuses a target that no link can have.
    fn link(&mut self, path: &[u8], target: Oid) -> Result<usize, FilesError> {
        let size = self.size(path, target, limits::LINK_TARGET_BYTES)?;
        let target = self.objects.read(target).map_err(FilesError::Damaged)?;
        if target.data().is_empty() {
            return Err(self.refused(path, "is a link with an empty target"));
        }
        if target.data().contains(&0) {
            return Err(self.refused(path, "is a link whose target has a NUL"));
        }
        Ok(size)
    }

    /// The size of a blob, at most `limit`.
    fn size(&mut self, path: &[u8], blob: Oid, limit: usize) -> Result<usize, FilesError> {
        let size = match self.objects.read_header(blob) {
            Ok((size, _)) => size,
            Err(error) if error.code() == ErrorCode::NotFound => {
                let mirror = self.mirror.path();
                let left_out = self
                    .left_out
                    .get_or_insert_with(|| left_out::read(mirror).unwrap_or_default());
                match left_out.get(&blob) {
                    Some(size) => *size,
                    None => return Err(self.refused(path, "is missing from the repository")),
                }
            }
            Err(error) => return Err(FilesError::Damaged(error)),
        };
        if size > limit {
            let problem = format!(
                "has {size} bytes, more than the {limit} of one file; leave it out with paths in `checkout`"
            );
            return Err(self.refused(path, &problem));
        }
        Ok(size)
    }

    /// The only entry of a tree, if the tree has exactly one.
    fn only_entry(&self, tree: Oid) -> Option<String> {
        let found = self.tree(tree).ok()?;
        let mut entries = found.iter();
        let entry = TreeEntry::of(&entries.next()?);
        let end = if entry.mode == Mode::Folder { "/" } else { "" };
        let is_alone = entries.next().is_none();
        is_alone.then(|| format!("{}{end}", shown(&entry.name)))
    }

    fn tree(&self, tree: Oid) -> Result<git2::Tree<'a>, FilesError> {
        let (size, _) = self
            .objects
            .read_header(tree)
            .map_err(FilesError::Damaged)?;
        if size > limits::STRUCTURE_BYTES {
            let limit = limits::STRUCTURE_BYTES as u64;
            return Err(self.too_much("bytes in one folder's list", limit));
        }
        self.mirror.find_tree(tree).map_err(FilesError::Damaged)
    }

    fn refused(&self, path: &[u8], problem: &str) -> FilesError {
        FilesError::Refused {
            commit: self.files.commit,
            path: shown(path),
            problem: problem.to_owned(),
        }
    }

    fn too_much(&self, what: &'static str, limit: u64) -> FilesError {
        FilesError::TooMuch {
            commit: self.files.commit,
            what,
            limit,
        }
    }
}

/// An entry of a tree. It may have any content.
struct TreeEntry {
    name: Vec<u8>,
    mode: Mode,
    object: Oid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Folder,
    File { executable: bool },
    Link,
    Submodule,
    Unknown(i32),
}

impl TreeEntry {
    fn of(entry: &git2::TreeEntry<'_>) -> Self {
        Self {
            name: entry.name_bytes().to_vec(),
            // The upper half is the type, the lower half the permissions.
            mode: match entry.filemode_raw() {
                0o040_000 => Mode::Folder,
                mode if mode & !0o777 == 0o100_000 => Mode::File {
                    executable: mode & 0o100 != 0,
                },
                0o120_000 => Mode::Link,
                0o160_000 => Mode::Submodule,
                mode => Mode::Unknown(mode),
            },
            object: entry.id(),
        }
    }
}

fn entry_of(tree: &git2::Tree<'_>, name: &[u8]) -> Option<TreeEntry> {
    // A search would miss entries if the tree is not sorted.
    let entry = tree.iter().find(|entry| entry.name_bytes() == name)?;
    Some(TreeEntry::of(&entry))
}

/// Why a job's folder cannot contain a file of this name.
fn problem_of(name: &[u8]) -> Option<&'static str> {
    match name {
        b"" => Some("has an empty name"),
        b"." | b".." => Some("has a name that leads elsewhere"),
        _ if name.eq_ignore_ascii_case(b".git") => {
            Some("has the name of a repository's own folder")
        }
        _ if name.contains(&b'/') || name.contains(&0) => Some("has a name with a slash or a NUL"),
        _ if name.len() > limits::FILE_NAME_BYTES => Some("has a name that is too long"),
        _ => None,
    }
}

fn joined(above: &[u8], name: &[u8]) -> Vec<u8> {
    if above.is_empty() {
        name.to_vec()
    } else {
        [above, b"/", name].concat()
    }
}

/// A path in a message: one line of bounded length.
fn shown(path: &[u8]) -> String {
    let text = path.escape_ascii().to_string();
    text.chars().take(limits::TITLE_CHARACTERS).collect()
}

impl Files {
    /// Writes the tar. Its only folders are submodules, which are empty.
    pub(super) fn write(&self, mirror: &Repository, to: &mut dyn Write) -> Result<(), FilesError> {
        let objects = mirror.odb().map_err(FilesError::Damaged)?;
        let mut tar = Builder::new(to);
        for (path, Entry { kind, object }) in &self.entries {
            let written = match kind {
                Kind::Submodule => {
                    let mut header = self.header(EntryType::Directory, 0o755, 0);
                    tar.append_data(&mut header, as_path(path), io::empty())
                }
                Kind::File { executable } => {
                    let blob = objects.read(*object).map_err(FilesError::Damaged)?;
                    let mode = if *executable { 0o755 } else { 0o644 };
                    let size = blob.data().len() as u64;
                    let mut header = self.header(EntryType::Regular, mode, size);
                    tar.append_data(&mut header, as_path(path), blob.data())
                }
                Kind::Link => {
                    let blob = objects.read(*object).map_err(FilesError::Damaged)?;
                    self.write_link(&mut tar, path, blob.data())
                }
            };
            written.map_err(FilesError::Unsent)?;
        }
        tar.finish().map_err(FilesError::Unsent)
    }

    /// The target is written as it is in Git, without a check.
    fn write_link(
        &self,
        tar: &mut Builder<&mut dyn Write>,
        path: &[u8],
        target: &[u8],
    ) -> io::Result<()> {
        let mut header = self.header(EntryType::Symlink, 0o777, 0);
        if header.set_link_name_literal(target).is_err() {
            // The target does not fit into the header.
            let size = target.len() as u64 + 1;
            let mut long = self.header(EntryType::GNULongLink, 0o644, size);
            long.set_path("././@LongLink")?;
            long.set_cksum();
            tar.append(&long, &[target, b"\0"].concat()[..])?;
        }
        tar.append_data(&mut header, as_path(path), io::empty())
    }

    fn header(&self, kind: EntryType, mode: u32, size: u64) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(self.time);
        header.set_size(size);
        header
    }
}

fn as_path(path: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(path))
}
