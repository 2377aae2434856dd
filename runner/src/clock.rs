//! The one place that reads the wall clock, for the times of log records and steps, and to turn the daemon's deadlines
//! into durations. Everything that measures time uses tokio's monotonic clock.

#![expect(
    clippy::disallowed_methods,
    reason = "the runner's one home of the wall clock"
)]

use std::time::Duration;

use chrono::{DateTime, Utc};

/// The wall clock's time.
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}

/// The duration until `moment`; zero if it has passed.
pub(crate) fn until(moment: DateTime<Utc>) -> Duration {
    (moment - now()).to_std().unwrap_or(Duration::ZERO)
}
