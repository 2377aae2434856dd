//! Durations on the command line, written as in workflow files.

use std::time::Duration;

use chrono::TimeDelta;

/// Reads a duration.
///
/// # Errors
/// A sentence for the person who wrote it.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let duration =
        workflow::parse_duration(text).map_err(|error| format!("{error}; {}", error.hint()))?;
    duration.to_std().map_err(|error| error.to_string())
}

/// Writes a duration in the same form, in whole seconds.
pub(crate) fn show(duration: Duration) -> String {
    workflow::format_duration(TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_read_and_written_alike() {
        let duration = parse("1h30m").unwrap();
        assert_eq!(duration, Duration::from_secs(5_400));
        assert_eq!(show(duration), "1h30m");
        assert!(parse("soon").unwrap_err().contains("30m"));
    }
}
