//! Files whose damaged lines were logged, so that each is logged once and not at every read.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use store::Key;

use crate::limits::WARNED_FILES;

/// Lines of a file that are missing in an answer, because they cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedLines {
    /// The file, below the state folder.
    pub file: String,
    /// How many.
    pub lines: u64,
}

/// The files that were logged, and those that had lost their end at the start. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Warned {
    logged: Arc<Mutex<HashSet<Key>>>,
    cut: Arc<Mutex<HashSet<Key>>>,
}

impl Warned {
    pub(crate) fn note_cut(&self, key: &Key) {
        let mut cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        cut.insert(key.clone());
    }

    pub(crate) fn is_cut(&self, key: &Key) -> bool {
        let cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        cut.contains(key)
    }

    /// Logs a damaged line at byte `at`, unless its file was logged before.
    pub(crate) fn warn(&self, key: &Key, at: u64, problem: impl fmt::Display) {
        if self.is_news(key) {
            tracing::warn!(%key, at, %problem, "a file has lines that cannot be read and are left out; `everscand fsck` tells each");
        }
    }

    fn is_news(&self, key: &Key) -> bool {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() >= WARNED_FILES {
            logged.clear();
        }
        logged.insert(key.clone())
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
        let logged = warned.logged.lock().unwrap();
        assert!(logged.len() <= WARNED_FILES);
    }
}
