//! Names of files below the state root. A `Key` is a path that is safe to join to the root and that the engine does
//! not use itself. Callers define what keys mean.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use crate::limits::{KEY_BYTES, SEGMENT_BYTES};

/// First path segments reserved for the engine.
pub(crate) const RESERVED: [&str; 7] = [
    "BACKUP",
    "FORMAT",
    "LOCK",
    "journal",
    "tmp",
    "quarantine",
    "index",
];

/// Keys with this prefix are files of users, even if their names look like records.
const USER_FILES: &str = "blobs/";

/// A relative path of one file: segments of `A-Za-z0-9._%~-`, separated by `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

/// A folder, with a slash at its end; empty for the root.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Prefix(Arc<str>);

/// Why a text is not a valid key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no key: {problem}")]
pub struct KeyError {
    text: String,
    problem: String,
}

impl Key {
    pub fn new(text: impl AsRef<str>) -> Result<Self, KeyError> {
        let text = text.as_ref();
        check(text)?;
        Ok(Self(Arc::from(text)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// The last segment.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    pub fn folder(&self) -> Prefix {
        let end = self.0.rfind('/').map_or(0, |slash| slash + 1);
        Prefix(Arc::from(&self.0[..end]))
    }

    /// True for JSON records, the only files that can be live. A file of a user is never a record, because a user
    /// controls its content.
    pub fn is_record(&self) -> bool {
        self.name().ends_with(".json") && !self.0.starts_with(USER_FILES)
    }

    /// The folders that contain this key, nearest first, as keys.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = Key> + '_ {
        self.0
            .rmatch_indices('/')
            .map(|(at, _)| Key(Arc::from(&self.0[..at])))
    }
}

impl Prefix {
    /// Every key of the store.
    pub fn root() -> Self {
        Self(Arc::from(""))
    }

    /// `text` has no slash at its end.
    pub fn folder(text: impl AsRef<str>) -> Result<Self, KeyError> {
        Key::new(text).map(|key| Self::of(&key))
    }

    pub fn contains(&self, key: &Key) -> bool {
        key.0.starts_with(&*self.0)
    }

    pub fn as_str(&self) -> &str {
        self.0.strip_suffix('/').unwrap_or("")
    }

    /// The folder with the path `key`.
    pub(crate) fn of(key: &Key) -> Self {
        Self(Arc::from(format!("{key}/")))
    }

    /// The key of the entry `name` in this folder. `None` if it is not valid.
    pub fn join(&self, name: &str) -> Option<Key> {
        Key::new(format!("{}{name}", self.0)).ok()
    }

    /// The entry of this folder that is `key` or contains it.
    pub(crate) fn child<'a>(&self, key: &'a Key) -> Option<&'a str> {
        key.as_str().strip_prefix(&*self.0)?.split('/').next()
    }

    /// The prefix of all keys in this folder. In the order of keys they follow it directly.
    pub(crate) fn start(&self) -> &str {
        &self.0
    }
}

fn check(text: &str) -> Result<(), KeyError> {
    let problem = if text.len() > KEY_BYTES {
        Some(format!("it has more than {KEY_BYTES} bytes"))
    } else if let Some(first) = RESERVED
        .iter()
        .find(|name| text.split('/').next() == Some(name))
    {
        Some(format!("the store uses `{first}` itself"))
    } else {
        text.split('/').find_map(segment_problem)
    };
    match problem {
        None => Ok(()),
        Some(problem) => Err(KeyError {
            text: text.chars().take(KEY_BYTES).collect(),
            problem,
        }),
    }
}

fn segment_problem(segment: &str) -> Option<String> {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '%' | '~' | '-');
    if segment.is_empty() {
        return Some("it has an empty segment".to_owned());
    }
    if matches!(segment, "." | "..") {
        return Some(format!("`{segment}` names another folder"));
    }
    if segment.len() > SEGMENT_BYTES {
        return Some(format!("a segment has more than {SEGMENT_BYTES} bytes"));
    }
    let character = segment.chars().find(|c| !is_safe(*c))?;
    Some(format!(
        "percent-encode {character:?}, which is not one of A-Z a-z 0-9 . _ % ~ -"
    ))
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.0)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prefix({}/)", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_keys_of_the_layout_are_accepted() {
        for text in [
            "a",
            "jobs/2026-11-20/19/ab/0192-x/job.json",
            "a%2Fb/c~1",
            ".hidden/..x",
            &"n".repeat(200),
        ] {
            assert_eq!(Key::new(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn files_of_users_are_not_records() {
        let is_record = |text: &str| Key::new(text).unwrap().is_record();
        assert!(is_record("tokens/a.json") && is_record("blob-records/p/a~.json"));
        assert!(!is_record("blobs/p/a.json") && !is_record("a.txt"));
    }

    #[test]
    fn keys_that_leave_the_tree_or_collide_are_refused() {
        let long_segment = "n".repeat(201);
        let long_key = ["n".repeat(200).as_str(); 16].join("/");
        for text in [
            "",
            "/a",
            "a/",
            "a//b",
            ".",
            "a/..",
            "../a",
            "a b",
            "a\\b",
            "a\0b",
            "ä",
            "a+new",
            "journal/x",
            "tmp",
            "index/live-1",
            "LOCK",
            "FORMAT",
            "quarantine/x",
            &long_segment,
            &long_key,
        ] {
            assert!(Key::new(text).is_err(), "{text:?} was accepted");
        }
        assert!(
            Key::new("jobs/journal/LOCK").is_ok(),
            "reserved names are reserved at the root only"
        );
    }

    #[test]
    fn a_prefix_contains_only_keys_of_its_folder() {
        let prefix = Prefix::folder("jobs/1").unwrap();
        assert!(prefix.contains(&Key::new("jobs/1/job.json").unwrap()));
        assert!(!prefix.contains(&Key::new("jobs/11/job.json").unwrap()));
        assert!(!prefix.contains(&Key::new("jobs/1").unwrap()));
        assert!(Prefix::root().contains(&Key::new("jobs").unwrap()));
        assert_eq!(
            Key::new("a/b/c").unwrap().folder(),
            Prefix::folder("a/b").unwrap()
        );
        assert_eq!(Key::new("a").unwrap().folder(), Prefix::root());
        let ancestors: Vec<_> = Key::new("a/b/c")
            .unwrap()
            .ancestors()
            .map(|key| key.to_string())
            .collect();
        assert_eq!(ancestors, ["a/b", "a"]);
    }
}
