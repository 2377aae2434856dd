//! Files whose damaged lines were logged, so that each file is logged once instead of at every read.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use model::ScanKey;
use store::Key;

use crate::limits::WARNED_FILES;

/// Lines of a file that a response omits because they cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedLines {
    /// The path relative to the state folder.
    pub file: String,
    pub lines: u64,
}

/// The files that were logged, and the files that were found truncated at the start. Clones share this data.
#[derive(Clone, Default)]
pub(crate) struct Warned {
    logged: Arc<Mutex<HashSet<Key>>>,
    cut: Arc<Mutex<HashSet<Key>>>,
    /// Scans with damaged lines in their history.
    histories: Arc<Mutex<HashSet<ScanKey>>>,
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

    pub(crate) fn note_history(&self, scan: ScanKey) {
        let mut histories = self
            .histories
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if histories.len() < WARNED_FILES {
            histories.insert(scan);
        }
    }

    pub(crate) fn histories(&self) -> Vec<ScanKey> {
        let histories = self
            .histories
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        histories.iter().cloned().collect()
    }

    /// Logs a damaged line at byte `at`, unless its file was already logged.
    pub(crate) fn warn(&self, key: &Key, at: u64, problem: impl fmt::Display) {
        if self.insert_new(key) {
            tracing::warn!(%key, at, %problem, "a file has lines that cannot be read and are skipped; `everscand fsck` lists them");
        }
    }

    fn insert_new(&self, key: &Key) -> bool {
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
    fn a_file_is_reported_once_and_the_number_of_kept_files_is_limited() {
        let warned = Warned::default();
        let key = |n: usize| Key::new(format!("a/{n}")).unwrap();
        assert!(warned.insert_new(&key(0)) && !warned.insert_new(&key(0)));
        for n in 1..2 * WARNED_FILES {
            assert!(warned.insert_new(&key(n)), "{n}");
        }
        let logged = warned.logged.lock().unwrap();
        assert!(logged.len() <= WARNED_FILES);
    }
}
