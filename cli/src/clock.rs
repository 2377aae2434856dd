//! The wall clock, and the notation of times and durations for people. No other file reads the clock: the daemon's answers
//! contain their own times.

#![expect(
    clippy::disallowed_methods,
    reason = "the only place that reads the wall clock"
)]

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}

pub(crate) fn moment(text: &str) -> Result<DateTime<Utc>, String> {
    text.parse()
        .map_err(|_| "write a date, a time and a zone, as in 2026-11-21T10:00:00Z".to_owned())
}

/// Reads a time with its zone, or a duration before now.
pub(crate) fn moment_or_age(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(moment) = moment(text) {
        return Ok(moment);
    }
    let begin = workflow::parse_duration(text)
        .ok()
        .and_then(|age| now().checked_sub_signed(age));
    begin.ok_or_else(|| {
        "write a date, a time and a zone, as in 2026-11-21T10:00:00Z, or how long ago, as in 10m".to_owned()
    })
}

/// Reads a duration in the form of workflow files. The error is a sentence for the user.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration =
        workflow::parse_duration(text).map_err(|error| format!("{error}; {}", error.hint()))?;
    duration.to_std().map_err(|error| error.to_string())
}

/// Writes a duration in the same form, in whole seconds.
pub(crate) fn format_duration(duration: Duration) -> String {
    workflow::format_duration(TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_read_and_written_alike() {
        let read = parse_duration("1h30m").unwrap();
        assert_eq!(read, Duration::from_secs(5_400));
        assert_eq!(format_duration(read), "1h30m");
        assert!(parse_duration("soon").unwrap_err().contains("30m"));
    }

    #[test]
    fn a_time_may_be_given_as_a_duration_ago() {
        let moment = moment_or_age("2026-11-21T10:00:00+02:00").unwrap();
        assert_eq!(moment.to_rfc3339(), "2026-11-21T08:00:00+00:00");
        let (before, hour) = (now(), TimeDelta::hours(1));
        let found = moment_or_age("1h").unwrap();
        assert!((before - hour..=now() - hour).contains(&found));
        for text in ["2026-11-21", "soon", "-1h", ""] {
            assert!(moment_or_age(text).unwrap_err().contains("10m"), "{text}");
        }
    }

    #[test]
    fn a_time_needs_a_zone() {
        assert!(moment("2026-11-21T10:00:00Z").is_ok());
        assert!(moment("2026-11-21T10:00:00+02:00").is_ok());
        for text in ["2026-11-21", "2026-11-21T10:00", "10m", ""] {
            assert!(moment(text).unwrap_err().contains("2026-11-21T10:00:00Z"));
        }
    }
}
