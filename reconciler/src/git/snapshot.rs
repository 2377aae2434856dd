//! The workflow files of one commit, read directly from the object store.
//!
//! An unreadable file is listed with the reason. So a file that is not listed does not exist.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use git2::{ErrorCode, FileMode, ObjectType, Odb, Oid, Repository, TreeEntry};
use model::plan::TipFolder;
use workflow::{Diagnostic, NotUtf8, SETTINGS_FILE};

use super::{CommitId, ReadError, ReadLimits, left_out, limits};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// Sorted by path, each path once.
    pub(crate) files: Vec<File>,
    /// The entry at the path of the folder.
    pub(crate) folder: TipFolder,
    /// The content of `everscan.yaml` at the top.
    pub(crate) settings: Option<Content>,
    /// Warnings about files and links that were not read.
    pub(crate) warnings: Vec<Diagnostic>,
}

/// A file with a workflow's extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// Path from the top of the repository, with `/` between names. In a name that is not UTF-8, bytes are written as `\xNN`.
    pub(crate) path: String,
    pub(crate) content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Text(Arc<str>),
    Unreadable(Unreadable),
}

/// Why the text of a file is unknown. Nothing follows for its workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("the file is a symbolic link, and links are not followed")]
    Symlink,
    #[error("the file has {size} bytes, more than the allowed {limit}")]
    TooLarge { size: usize, limit: usize },
    #[error("the name of the file is not UTF-8")]
    Misnamed,
    #[error(transparent)]
    NotUtf8(NotUtf8),
    #[error("the content of the file is missing from the repository")]
    Missing,
}

/// A path below the top of a repository. Empty for the top itself.
pub(super) struct Folder(Vec<String>);

impl Folder {
    /// Accepts `workflows`, `./a/b/`, `.` and the empty text.
    pub(super) fn parse(text: &str) -> Result<Folder, ReadError> {
        let refused = || ReadError::Folder {
            folder: text.chars().take(limits::TITLE_CHARACTERS).collect(),
        };
        if text.starts_with('/') || text.contains('\0') {
            return Err(refused());
        }
        let names: Vec<String> = text
            .split('/')
            .filter(|name| !matches!(*name, "" | "."))
            .map(str::to_owned)
            .collect();
        if names.iter().any(|name| name == "..") {
            return Err(refused());
        }
        Ok(Folder(names))
    }
}

pub(super) fn read(
    mirror: &Repository,
    commit: CommitId,
    folder: &Folder,
    limits: &ReadLimits,
) -> Result<Snapshot, ReadError> {
    let damaged = |source| ReadError::Damaged {
        dir: mirror.path().to_owned(),
        source,
    };
    let found = mirror.find_commit(commit.oid()).map_err(|source| {
        if source.code() == ErrorCode::NotFound {
            ReadError::CommitMissing { commit }
        } else {
            damaged(source)
        }
    })?;
    let objects = mirror.odb().map_err(damaged)?;
    let mut reader = Reader {
        mirror,
        objects,
        commit,
        limits,
        files: BTreeMap::new(),
        entries: 0,
        text_bytes: 0,
        left_out: None,
        top: found.tree_id(),
        warnings: Vec::new(),
    };
    let top = reader.tree(reader.top)?;
    let settings = top.get_name(SETTINGS_FILE);
    let settings = settings.filter(|entry| entry.kind() == Some(ObjectType::Blob));
    let settings = settings.map(|entry| reader.read_file(&entry)).transpose()?;
    let found = match reader.descend(&folder.0)? {
        Found::Tree(tree) => {
            let prefix: String = folder.0.iter().map(|name| format!("{name}/")).collect();
            reader.read_folder(tree, &prefix, 0)?;
            TipFolder::Read
        }
        Found::Nothing => TipFolder::Missing,
        Found::Other(what) => TipFolder::Unreadable(what),
    };
    Ok(Snapshot {
        files: reader
            .files
            .into_iter()
            .map(|(path, content)| File { path, content })
            .collect(),
        folder: found,
        settings,
        warnings: reader.warnings,
    })
}

enum Found {
    Tree(Oid),
    Nothing,
    /// A description for people.
    Other(String),
}

struct Reader<'a> {
    mirror: &'a Repository,
    objects: Odb<'a>,
    commit: CommitId,
    limits: &'a ReadLimits,
    files: BTreeMap<String, Content>,
    entries: usize,
    text_bytes: usize,
    /// Loaded when the first blob is missing.
    left_out: Option<BTreeMap<Oid, usize>>,
    top: Oid,
    warnings: Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    /// Finds the entry at `names` below the top.
    fn descend(&self, names: &[impl AsRef<str>]) -> Result<Found, ReadError> {
        let (mut tree, mut path) = (self.top, String::new());
        for name in names {
            path = match path.as_str() {
                "" => name.as_ref().to_owned(),
                above => format!("{above}/{}", name.as_ref()),
            };
            let found = self.tree(tree)?;
            match found.get_name(name.as_ref()) {
                Some(entry) if entry.kind() == Some(ObjectType::Tree) => tree = entry.id(),
                Some(entry) => return Ok(Found::Other(self.describe(&path, &entry))),
                None => return Ok(Found::Nothing),
            }
        }
        Ok(Found::Tree(tree))
    }

    /// Describes an entry that is not a folder.
    fn describe(&self, path: &str, entry: &TreeEntry<'_>) -> String {
        if entry.kind() == Some(ObjectType::Commit) {
            return format!(
                "`{path}` is a submodule, whose files are in another repository (follow that one as a source)"
            );
        }
        if !is_link(entry) {
            return format!("`{path}` is a file");
        }
        let to = self.link_target(entry);
        let to = to.map_or_else(String::new, |target| format!(" to `{target}`"));
        format!(
            "`{path}` is a symbolic link{to}, and links are not followed (name the folder itself as `path`)"
        )
    }

    /// The target of a link, if it can be read as text.
    fn link_target(&self, link: &TreeEntry<'_>) -> Option<String> {
        let (size, _) = self.objects.read_header(link.id()).ok()?;
        if size > limits::LINK_TARGET_BYTES {
            return None;
        }
        let object = self.objects.read(link.id()).ok()?;
        String::from_utf8(object.data().to_vec()).ok()
    }

    /// True if a link below `prefix` points to a folder of this commit.
    fn leads_to_folder(&self, prefix: &str, link: &TreeEntry<'_>) -> Result<bool, ReadError> {
        let Some(target) = self.link_target(link).filter(|to| !to.starts_with('/')) else {
            return Ok(false);
        };
        let mut names: Vec<&str> = Vec::new();
        for name in prefix.split('/').chain(target.split('/')) {
            match name {
                "" | "." => {}
                ".." if names.pop().is_none() => return Ok(false),
                ".." => {}
                name => names.push(name),
            }
        }
        Ok(matches!(self.descend(&names)?, Found::Tree(_)))
    }

    fn read_folder(&mut self, tree: Oid, prefix: &str, depth: usize) -> Result<(), ReadError> {
        if depth > self.limits.depth {
            return Err(self.too_much("folders inside each other", self.limits.depth));
        }
        for entry in &self.tree(tree)? {
            self.entries += 1;
            if self.entries > self.limits.entries {
                return Err(self.too_much("entries", self.limits.entries));
            }
            let name = entry.name_bytes();
            let path = format!("{prefix}{}", escaped(name));
            match entry.kind() {
                Some(ObjectType::Tree) => {
                    self.read_folder(entry.id(), &format!("{path}/"), depth + 1)?;
                }
                Some(ObjectType::Blob) if is_workflow(name) => {
                    let content = self.read_file(&entry)?;
                    self.keep(path, content)?;
                }
                _ if self.warnings.len() >= limits::WARNINGS => {}
                Some(ObjectType::Commit) => self.warnings.push(Diagnostic::submodule(&path)),
                Some(ObjectType::Blob) if is_link(&entry) => {
                    if self.leads_to_folder(prefix, &entry)? {
                        self.warnings.push(Diagnostic::linked_folder(&path));
                    }
                }
                Some(ObjectType::Blob | ObjectType::Tag | ObjectType::Any) | None => {}
            }
        }
        Ok(())
    }

    fn read_file(&mut self, entry: &TreeEntry<'_>) -> Result<Content, ReadError> {
        let limit = self.limits.file_bytes;
        if is_link(entry) {
            return Ok(Content::Unreadable(Unreadable::Symlink));
        }
        if entry.name().is_err() {
            return Ok(Content::Unreadable(Unreadable::Misnamed));
        }
        let size = match self.objects.read_header(entry.id()) {
            Ok((size, _)) => size,
            Err(error) if error.code() == ErrorCode::NotFound => {
                let unreadable = match self.size_if_left_out(entry.id()) {
                    Some(size) => Unreadable::TooLarge { size, limit },
                    None => Unreadable::Missing,
                };
                return Ok(Content::Unreadable(unreadable));
            }
            Err(source) => return Err(self.damaged(source)),
        };
        if size > limit {
            return Ok(Content::Unreadable(Unreadable::TooLarge { size, limit }));
        }
        let object = self
            .objects
            .read(entry.id())
            .map_err(|source| self.damaged(source))?;
        Ok(match workflow::utf8(object.data()) {
            Ok(text) => Content::Text(Arc::from(text)),
            Err(place) => Content::Unreadable(Unreadable::NotUtf8(place)),
        })
    }

    /// Adds a file. A crafted tree may contain a name twice. Like Git tools, keep the first entry.
    fn keep(&mut self, path: String, content: Content) -> Result<(), ReadError> {
        if let Content::Text(text) = &content {
            self.text_bytes += text.len();
            if self.text_bytes > self.limits.total_bytes {
                return Err(self.too_much("bytes of workflow files", self.limits.total_bytes));
            }
        }
        self.files.entry(path).or_insert(content);
        if self.files.len() > self.limits.files {
            return Err(self.too_much("workflow files", self.limits.files));
        }
        Ok(())
    }

    fn size_if_left_out(&mut self, blob: Oid) -> Option<usize> {
        let mirror = self.mirror.path();
        let left_out = self
            .left_out
            .get_or_insert_with(|| left_out::read(mirror).unwrap_or_default());
        left_out.get(&blob).copied()
    }

    fn tree(&self, tree: Oid) -> Result<git2::Tree<'a>, ReadError> {
        let (size, _) = self
            .objects
            .read_header(tree)
            .map_err(|source| self.damaged(source))?;
        if size > limits::STRUCTURE_BYTES {
            return Err(self.too_much("bytes in one folder's list", limits::STRUCTURE_BYTES));
        }
        self.mirror
            .find_tree(tree)
            .map_err(|source| self.damaged(source))
    }

    fn too_much(&self, what: &'static str, limit: usize) -> ReadError {
        ReadError::TooMuch {
            commit: self.commit,
            what,
            limit,
        }
    }

    fn damaged(&self, source: git2::Error) -> ReadError {
        ReadError::Damaged {
            dir: PathBuf::from(self.mirror.path()),
            source,
        }
    }
}

fn is_link(entry: &TreeEntry<'_>) -> bool {
    entry.filemode() == i32::from(FileMode::Link)
}

fn is_workflow(name: &[u8]) -> bool {
    let is_yaml = name.ends_with(b".yaml") || name.ends_with(b".yml");
    is_yaml && name != SETTINGS_FILE.as_bytes()
}

/// A name as text. Different names result in different texts.
fn escaped(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) => text.to_owned(),
        Err(_) => name
            .iter()
            .map(|byte| match byte {
                b' '..=b'~' if *byte != b'\\' => char::from(*byte).to_string(),
                _ => format!("\\x{byte:02x}"),
            })
            .collect(),
    }
}
