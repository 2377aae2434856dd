//! Virtual time: a steady clock, and a wall clock that can be set.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use model::{Clock, Timestamp};

/// 2026-11-20T12:00:00Z.
const NOON: i64 = 1_795_176_000_000;

pub(super) const SECOND: i64 = 1_000;
pub(super) const MINUTE: i64 = 60 * SECOND;
pub(super) const HOUR: i64 = 60 * MINUTE;

/// All times are in milliseconds.
#[derive(Default)]
pub(super) struct Time {
    steady: AtomicI64,
    /// How far the wall clock is set ahead.
    set_by: AtomicI64,
}

impl Time {
    /// The steady clock, which cannot be set.
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

/// The clocks of one process. Its steady clock starts with the time of the wall clock.
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
