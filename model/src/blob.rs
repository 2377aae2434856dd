//! Blobs: files that users store in a project. Paths, records, and conditions for replacing a blob.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits::{BLOB_PATH_BYTES, BLOB_PATH_SEGMENTS};
use crate::{Actor, BlobLinkId, ProjectId, Scope, Timestamp, TokenHash, TokenId, UserId};

/// The path of a blob: the names of its folders, outermost first, and the name of the blob. A name may have any
/// characters except control characters, and is not `.` or `..`.
///
/// As text, names are joined by `/`. A `/` in a name is written `%2F`. A `%` is written `%25` if it would otherwise
/// start such an escape. A leading slash is ignored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct BlobPath(Vec<String>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BlobPathError {
    #[error("is empty")]
    Empty,
    #[error("has an empty name between two slashes or at its end")]
    EmptyName,
    #[error("has the name `.` or `..`, which no folder or blob can have")]
    Dots,
    #[error("has a control character, such as a line end")]
    Control,
    #[error("has {0} names, and at most {BLOB_PATH_SEGMENTS} are allowed")]
    Deep(usize),
    #[error("has {0} bytes, and at most {BLOB_PATH_BYTES} are allowed")]
    Long(usize),
}

impl BlobPath {
    pub fn new(names: Vec<String>) -> Result<Self, BlobPathError> {
        if names.is_empty() {
            return Err(BlobPathError::Empty);
        }
        if names.len() > BLOB_PATH_SEGMENTS {
            return Err(BlobPathError::Deep(names.len()));
        }
        let bytes = names.iter().map(|name| name.len() + 1).sum::<usize>() - 1;
        if bytes > BLOB_PATH_BYTES {
            return Err(BlobPathError::Long(bytes));
        }
        names.iter().try_for_each(|name| check_name(name))?;
        Ok(Self(names))
    }

    pub fn names(&self) -> &[String] {
        &self.0
    }

    pub fn name(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    pub fn folders(&self) -> &[String] {
        self.0.split_last().map_or(&[], |(_, folders)| folders)
    }

    /// True if the path is in `folder` or in a folder below it.
    pub fn is_below(&self, folder: &Self) -> bool {
        self.0.len() > folder.0.len() && self.0.starts_with(&folder.0)
    }

    /// Moves the path from folder `from` to folder `to`. None if it is not below `from`.
    pub fn rebased(&self, from: &[String], to: &[String]) -> Option<Result<Self, BlobPathError>> {
        let rest = self.0.strip_prefix(from)?;
        Some(Self::new([to, rest].concat()))
    }
}

fn check_name(name: &str) -> Result<(), BlobPathError> {
    match name {
        "" => Err(BlobPathError::EmptyName),
        "." | ".." => Err(BlobPathError::Dots),
        name if name.contains(char::is_control) => Err(BlobPathError::Control),
        _ => Ok(()),
    }
}

/// Names as text, joined by `/`.
pub fn joined(names: &[String]) -> String {
    let escaped: Vec<String> = names.iter().map(|name| escaped(name)).collect();
    escaped.join("/")
}

/// Splits a text that may be an incomplete path, such as one with a slash at its end.
pub fn split(text: &str) -> Vec<String> {
    text.split('/').map(unescaped).collect()
}

fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for (at, character) in name.char_indices() {
        match character {
            '/' => text.push_str("%2F"),
            '%' if escape_at(&name[at..]).is_some() => text.push_str("%25"),
            other => text.push(other),
        }
    }
    text
}

fn unescaped(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let (character, length) = match escape_at(rest) {
            Some(escape) => (escape, 3),
            None => (character, character.len_utf8()),
        };
        name.push(character);
        rest = &rest[length..];
    }
    name
}

/// The character of an escape at the beginning of the text.
fn escape_at(text: &str) -> Option<char> {
    match text.get(..3)? {
        "%2F" | "%2f" => Some('/'),
        "%25" => Some('%'),
        _ => None,
    }
}

impl FromStr for BlobPath {
    type Err = BlobPathError;

    fn from_str(text: &str) -> Result<Self, BlobPathError> {
        match text.strip_prefix('/').unwrap_or(text) {
            "" => Err(BlobPathError::Empty),
            text => Self::new(split(text)),
        }
    }
}

impl TryFrom<String> for BlobPath {
    type Error = BlobPathError;

    fn try_from(text: String) -> Result<Self, BlobPathError> {
        text.parse()
    }
}

impl From<BlobPath> for String {
    fn from(path: BlobPath) -> Self {
        path.to_string()
    }
}

impl fmt::Display for BlobPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(&self.0))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    pub project: ProjectId,
    pub path: BlobPath,
    /// In bytes.
    pub size: u64,
    /// Hexadecimal.
    pub sha256: String,
    /// When this content was stored at this path.
    pub modified_at: Timestamp,
    pub by: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl Blob {
    /// True if it has expired. Readers no longer get it, even if its file still exists.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobUsage {
    pub project: ProjectId,
    pub blobs: u64,
    pub bytes: u64,
}

impl BlobUsage {
    pub const fn none(project: ProjectId) -> Self {
        Self {
            project,
            blobs: 0,
            bytes: 0,
        }
    }

    /// The usage after `before` is replaced by `after`.
    #[must_use]
    pub fn with(&self, before: Option<&Blob>, after: Option<&Blob>) -> Self {
        let count = |blob: Option<&Blob>| u64::from(blob.is_some());
        let size = |blob: Option<&Blob>| blob.map_or(0, |blob| blob.size);
        Self {
            project: self.project,
            blobs: (self.blobs + count(after)).saturating_sub(count(before)),
            bytes: (self.bytes + size(after)).saturating_sub(size(before)),
        }
    }
}

/// A link that allows reading or storing a blob without a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobLink {
    pub id: BlobLinkId,
    /// Hash of the secret in the link.
    pub hash: TokenHash,
    pub project: ProjectId,
    pub path: BlobPath,
    pub use_for: LinkUse,
    /// The token that created the link, which ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    /// The person who created the link without a token. Without both, a job has created it for its project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// The person's epoch at that time. The link ends when the person signs out everywhere.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub epoch: u64,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkUse {
    Get,
    Put,
}

impl LinkUse {
    /// The scope that the link's token needs.
    pub const fn scope(self) -> Scope {
        match self {
            Self::Get => Scope::BlobRead,
            Self::Put => Scope::BlobWrite,
        }
    }
}

impl BlobLink {
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }
}

/// A condition on the current blob at a path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum BlobCondition {
    #[default]
    None,
    Exists,
    Absent,
    /// The blob's SHA-256 is in this list.
    Sha256(Vec<String>),
}

impl BlobCondition {
    pub fn holds(&self, found: Option<&Blob>) -> bool {
        match self {
            Self::None => true,
            Self::Exists => found.is_some(),
            Self::Absent => found.is_none(),
            Self::Sha256(wanted) => found.is_some_and(|blob| wanted.contains(&blob.sha256)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.parse::<BlobPath>().unwrap().0
    }

    #[test]
    fn paths_are_split_at_slashes_and_a_leading_slash_is_ignored() {
        assert_eq!(names("a/b c/d.txt"), ["a", "b c", "d.txt"]);
        assert_eq!(names("/a/b"), ["a", "b"]);
        assert_eq!(names("a%2Fb/100%.txt"), ["a/b", "100%.txt"]);
        assert_eq!(names("a%252Fb"), ["a%2Fb"]);
        assert_eq!(names(".hidden/ä/…/日本"), [".hidden", "ä", "…", "日本"]);
    }

    #[test]
    fn invalid_paths_are_refused() {
        let deep = ["a"; 33].join("/");
        let long = "a".repeat(1_025);
        for (text, problem) in [
            ("", BlobPathError::Empty),
            ("/", BlobPathError::Empty),
            ("//a", BlobPathError::EmptyName),
            ("a//b", BlobPathError::EmptyName),
            ("a/", BlobPathError::EmptyName),
            (".", BlobPathError::Dots),
            ("a/../b", BlobPathError::Dots),
            ("a\nb", BlobPathError::Control),
            ("a\u{7f}", BlobPathError::Control),
            ("a\0", BlobPathError::Control),
            (&deep, BlobPathError::Deep(33)),
            (&long, BlobPathError::Long(1_025)),
        ] {
            assert_eq!(text.parse::<BlobPath>(), Err(problem), "{text:?}");
        }
        assert!(["a"; 32].join("/").parse::<BlobPath>().is_ok());
        assert!("a".repeat(1_024).parse::<BlobPath>().is_ok());
    }

    #[test]
    fn a_path_moves_with_its_folder() {
        let path: BlobPath = "a/b/c".parse().unwrap();
        let folder: BlobPath = "a/b".parse().unwrap();
        assert!(path.is_below(&folder) && !folder.is_below(&folder));
        let to = ["x".to_owned()];
        let moved = path.rebased(folder.names(), &to).unwrap().unwrap();
        assert_eq!(moved.to_string(), "x/c");
        assert_eq!(folder.rebased(path.names(), &to), None);
    }

    proptest! {
        #[test]
        fn a_path_is_unchanged_after_writing_and_reading(
            names in prop::collection::vec("[a%/25F.]{1,8}", 1..5)
        ) {
            if let Ok(path) = BlobPath::new(names) {
                prop_assert_eq!(path.to_string().parse::<BlobPath>(), Ok(path));
            }
        }
    }
}
