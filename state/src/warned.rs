//! Which files were told to have damaged lines, so that each is told once and not at every look.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use store::Key;

use crate::limits::WARNED_FILES;

/// Lines of a file that an answer lacks, because they cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedLines {
    /// The file, below the state folder.
    pub file: String,
    /// How many.
    pub lines: u64,
}

/// The files that were told. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Warned(Arc<Mutex<HashSet<Key>>>);

impl Warned {
    /// Tells of a damaged line at byte `at`, unless something was told of its file before.
    pub(crate) fn warn(&self, key: &Key, at: u64, problem: impl fmt::Display) {
        if self.is_news(key) {
            tracing::warn!(%key, at, %problem, "a file has lines that cannot be read and are left out; `everscand fsck` tells each");
        }
    }

    fn is_news(&self, key: &Key) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= WARNED_FILES {
            told.clear();
        }
        told.insert(key.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_once_and_not_all_files_are_remembered() {
        let warned = Warned::default();
        let key = |n: usize| Key::new(format!("a/{n}")).unwrap();
        assert!(warned.is_news(&key(0)) && !warned.is_news(&key(0)));
        for n in 1..2 * WARNED_FILES {
            assert!(warned.is_news(&key(n)), "{n}");
        }
        let told = warned.0.lock().unwrap();
        assert!(told.len() <= WARNED_FILES);
    }
}
