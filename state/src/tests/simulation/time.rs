//! Virtual time. One clock cannot be set; the wall clock can.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use model::{Clock, Timestamp};

/// 2026-11-20T12:00:00Z.
const NOON: i64 = 1_795_176_000_000;

pub(super) const SECOND: i64 = 1_000;
pub(super) const MINUTE: i64 = 60 * SECOND;
pub(super) const HOUR: i64 = 60 * MINUTE;

/// In milliseconds.
#[derive(Default)]
pub(super) struct Time {
    steady: AtomicI64,
    /// How far somebody has set the wall clock ahead.
    set_by: AtomicI64,
}

impl Time {
    /// Nobody can set it.
    pub(super) fn steady(&self) -> i64 {
        self.steady.load(SeqCst)
    }

    pub(super) fn wall(&self) -> Timestamp {
        at(self.steady() + self.set_by())
    }

    pub(super) fn set_by(&self) -> i64 {
        self.set_by.load(SeqCst)
    }

    pub(super) fn pass(&self, millis: i64) {
        self.steady.fetch_add(millis, SeqCst);
    }

    pub(super) fn set(&self, set_by: i64) {
        self.set_by.store(set_by, SeqCst);
    }
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_timestamp_millis(NOON + millis).unwrap()
}

/// The clocks of one process: its steady clock begins with the wall clock of its start.
pub(super) struct ProcessClock {
    time: Arc<Time>,
    set_by: i64,
}

impl ProcessClock {
    pub(super) fn new(time: &Arc<Time>) -> Arc<Self> {
        Arc::new(Self {
            time: time.clone(),
            set_by: time.set_by(),
        })
    }
}

impl Clock for ProcessClock {
    fn now(&self) -> Timestamp {
        self.time.wall()
    }

    fn steady(&self) -> Timestamp {
        at(self.time.steady() + self.set_by)
    }
}
