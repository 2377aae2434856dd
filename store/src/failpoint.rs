//! Named places at which a test can end the process, as `kill -9` would. They work only with the feature `failpoints`,
//! which no release is built with. The environment variable `EVERSCAND_FAILPOINT` arms one: `journal-written:3` ends
//! the process when it gets there for the third time. With the same feature alone a test can set the daemon's wall clock.

use std::ffi::OsString;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// Passes a place of the lists, or ends the process there.
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
        // Nothing is left to do if this fails; the abort shows as another signal.
        let _ = rustix::process::kill_process(myself, rustix::process::Signal::KILL);
        std::process::abort();
    }
}

/// How many seconds the wall clock is put forward, as the file says that `EVERSCAND_CLOCK_OFFSET` names.
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

/// Whether a commit waits for the disk. With `EVERSCAND_UNSYNCED_JOURNAL` it does not, so that a test of power cuts can
/// show that it would notice.
#[inline]
pub(crate) fn is_journal_synced() -> bool {
    !cfg!(feature = "failpoints") || !*UNSYNCED
}
