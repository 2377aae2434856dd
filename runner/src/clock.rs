//! The only place that reads the wall clock, for the times of log records and steps. Measurements use tokio's monotonic clock,
//! which begins with the process; [`since_boot`] also covers earlier processes.

#![expect(
    clippy::disallowed_methods,
    reason = "the runner's one home of the wall clock"
)]

use std::time::Duration;

use chrono::{DateTime, Utc};
use rustix::time::{ClockId, clock_gettime};

pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}

/// The time since the machine's start. It never decreases from one process to the next, even if the wall clock is set.
pub(crate) fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    // The time is never negative.
    Duration::try_from(time).unwrap_or_default()
}
