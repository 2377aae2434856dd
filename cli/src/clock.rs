//! The one place that reads the wall clock: the daemon's answers bring their own times.

#![expect(
    clippy::disallowed_methods,
    reason = "the command's one home of the wall clock"
)]

use chrono::{DateTime, Utc};

/// Now, for a command that works without a daemon.
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}

/// Reads a moment with its zone: without one, nobody could say whose clock is meant.
pub(crate) fn moment(text: &str) -> Result<DateTime<Utc>, String> {
    text.parse()
        .map_err(|_| "write a date, a time and a zone, as in 2026-11-21T10:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_a_zone() {
        assert!(moment("2026-11-21T10:00:00Z").is_ok());
        assert!(moment("2026-11-21T10:00:00+02:00").is_ok());
        for text in ["2026-11-21", "2026-11-21T10:00", "10m", ""] {
            assert!(moment(text).unwrap_err().contains("2026-11-21T10:00:00Z"));
        }
    }
}
