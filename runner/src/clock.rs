//! The one place that reads the wall clock, for the times of log records and steps. Everything that measures time uses
//! tokio's monotonic clock, which cannot tell what was before the process; [`since_boot`] can.

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

/// The time since the machine's start. A process that follows another one on the machine reads more than that one did,
/// whatever happens to the wall clock.
pub(crate) fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    // It never is before the start.
    Duration::try_from(time).unwrap_or_default()
}
