//! Named points in the code where a test can kill the process, as `kill -9` would. They exist only with the feature
//! `failpoints`, which no release has. The environment variable `EVERSCAND_FAILPOINT` arms one point:
//! `journal-written:3` kills the process when it reaches that point for the third time. The feature also lets a test
//! set the wall clock of the daemon.

use std::ffi::OsString;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The points in normal work, in the order of a change: commit, tree, checkpoint and next start; then objects and
/// growing files.
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

/// The points in maintenance: backup, restore, the first start after it, and repairs.
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

static ARMED: LazyLock<Option<Armed>> = LazyLock::new(|| {
    let armed = std::env::var("EVERSCAND_FAILPOINT").ok()?;
    Some(Armed::parse(&armed).unwrap_or_else(|| panic!("`{armed}` is no failpoint")))
});

static UNSYNCED: LazyLock<bool> =
    LazyLock::new(|| std::env::var_os("EVERSCAND_UNSYNCED_JOURNAL").is_some());

static CLOCK_OFFSET: LazyLock<Option<OsString>> =
    LazyLock::new(|| std::env::var_os("EVERSCAND_CLOCK_OFFSET"));

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

/// Does nothing unless the point is armed.
#[inline]
pub fn reach(point: &'static str) {
    if !cfg!(feature = "failpoints") {
        return;
    }
    assert!(
        is_listed(point),
        "`{point}` is missing in the lists of failpoints"
    );
    let Some(armed) = ARMED.as_ref().filter(|armed| armed.point == point) else {
        return;
    };
    if armed.left.fetch_sub(1, Ordering::SeqCst) == 1 {
        let myself = rustix::process::getpid();
        // If this fails, the abort below ends the process with another signal.
        let _ = rustix::process::kill_process(myself, rustix::process::Signal::KILL);
        std::process::abort();
    }
}

/// Seconds to add to the wall clock, read from the file that `EVERSCAND_CLOCK_OFFSET` names.
#[inline]
pub fn clock_offset() -> i64 {
    if !cfg!(feature = "failpoints") {
        return 0;
    }
    let Some(file) = CLOCK_OFFSET.as_ref() else {
        return 0;
    };
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.trim().parse().unwrap_or_default()
}

/// True unless `EVERSCAND_UNSYNCED_JOURNAL` is set. Without syncs a test of power cuts must fail, which shows that it
/// works.
#[inline]
pub(crate) fn is_journal_synced() -> bool {
    !cfg!(feature = "failpoints") || !*UNSYNCED
}
