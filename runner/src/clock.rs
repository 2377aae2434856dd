//! The one place that reads the wall clock. It dates log records and steps, and turns the daemon's deadlines into
//! spans; everything that measures time uses tokio's monotonic clock.

#![expect(
    clippy::disallowed_methods,
    reason = "the runner's one home of the wall clock"
)]

use std::time::Duration;

use chrono::{DateTime, Utc};

/// Now, as people and the daemon write it.
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}

/// How long it is until `moment`; zero when it has passed.
pub(crate) fn until(moment: DateTime<Utc>) -> Duration {
    (moment - now()).to_std().unwrap_or(Duration::ZERO)
}
