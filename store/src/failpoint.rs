//! Named places at which a test can end the process, as `kill -9` would. They exist only with the feature `failpoints`,
//! which no release is built with. The environment variable `EVERSCAND_FAILPOINT` arms one: `journal-written:3` ends
//! the process when it gets there for the third time. With the same feature alone a test can set the daemon's wall clock.

#[cfg(feature = "failpoints")]
pub(crate) use armed::is_journal_synced;
#[cfg(feature = "failpoints")]
pub use armed::{clock_offset, reach};

/// The places in normal work, in the order of a change: its commit, the tree, the checkpoint, and the next start; then
/// what is written beside the journal.
pub const POINTS: &[&str] = &[
    "commit-begun",
    "journal-written",
    "journal-synced",
    "commit-visible",
    "commit-published",
    "segment-taken",
    "segment-headed",
    "segment-named",
    "segment-begun",
    "folder-made",
    "file-written",
    "file-replaced",
    "file-removed",
    "object-adopted",
    "ledger-appended",
    "batch-applied",
    "checkpoint-begun",
    "index-written",
    "tree-synced",
    "checkpoint-written",
    "index-removed",
    "segment-recycled",
    "segments-retired",
    "spare-filled",
    "spare-made",
    "store-locked",
    "store-made",
    "tmp-swept",
    "journal-redone",
    "store-recovered",
    "store-marked-open",
    "store-opened",
    "object-begun",
    "object-synced",
    "object-staged",
    "log-appended",
    "log-synced",
];

/// The places in maintenance: a backup, a restore, the first opening after it, and repairs.
pub const MAINTENANCE_POINTS: &[&str] = &[
    "hold-taken",
    "files-copied",
    "logs-copied",
    "hold-removed",
    "copy-synced",
    "manifest-written",
    "copy-finished",
    "hold-ended",
    "copy-settled",
    "manifest-removed",
    "file-kept",
    "file-set-aside",
    "loss-removed",
];

/// Passes a place of the lists.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub const fn reach(_point: &'static str) {}

/// How many seconds the wall clock is put forward, which nobody can do.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub const fn clock_offset() -> i64 {
    0
}

/// Whether a commit waits for the disk, which nothing can change.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub(crate) const fn is_journal_synced() -> bool {
    true
}

#[cfg(feature = "failpoints")]
mod armed {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{MAINTENANCE_POINTS, POINTS};

    static ARMED: LazyLock<Option<Armed>> = LazyLock::new(|| {
        let armed = std::env::var("EVERSCAND_FAILPOINT").ok()?;
        Some(Armed::parse(&armed).unwrap_or_else(|| panic!("`{armed}` is no failpoint")))
    });

    static UNSYNCED: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os("EVERSCAND_UNSYNCED_JOURNAL").is_some());

    struct Armed {
        point: String,
        left: AtomicU64,
    }

    impl Armed {
        fn parse(text: &str) -> Option<Self> {
            let (point, nth) = text.split_once(':')?;
            let left = nth.parse().ok().filter(|nth| *nth > 0)?;
            is_listed(point).then(|| Self {
                point: point.to_owned(),
                left: AtomicU64::new(left),
            })
        }
    }

    fn is_listed(point: &str) -> bool {
        POINTS.contains(&point) || MAINTENANCE_POINTS.contains(&point)
    }

    /// Passes a place of the lists, or ends the process there.
    pub fn reach(point: &'static str) {
        assert!(
            is_listed(point),
            "`{point}` is missing in the lists of failpoints"
        );
        let Some(armed) = ARMED.as_ref().filter(|armed| armed.point == point) else {
            return;
        };
        if armed.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            let myself = rustix::process::getpid();
            // Nothing is left to do if this fails; the abort shows as another signal.
            let _ = rustix::process::kill_process(myself, rustix::process::Signal::KILL);
            std::process::abort();
        }
    }

    /// How many seconds the wall clock is put forward, as the file says that `EVERSCAND_CLOCK_OFFSET` names.
    pub fn clock_offset() -> i64 {
        static FILE: LazyLock<Option<std::ffi::OsString>> =
            LazyLock::new(|| std::env::var_os("EVERSCAND_CLOCK_OFFSET"));
        let Some(file) = FILE.as_ref() else {
            return 0;
        };
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.trim().parse().unwrap_or_default()
    }

    /// Whether a commit waits for the disk. With `EVERSCAND_UNSYNCED_JOURNAL` it does not, so that a test of power cuts
    /// can show that it would notice.
    pub(crate) fn is_journal_synced() -> bool {
        !*UNSYNCED
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn only_a_place_of_the_lists_can_be_armed() {
            assert!(Armed::parse("hold-taken:1").is_some());
            let armed = Armed::parse("journal-written:3").unwrap();
            assert_eq!(armed.point, "journal-written");
            assert_eq!(armed.left.into_inner(), 3);
            for text in ["", "journal-written", "journal-written:0", "elsewhere:1"] {
                assert!(Armed::parse(text).is_none(), "{text}");
            }
        }
    }
}
