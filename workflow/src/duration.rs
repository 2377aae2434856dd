//! Durations as people write them: `90s`, `30m`, `1h`, `1d`, `2w`, and sums such as `1h30m`.

use chrono::TimeDelta;
use thiserror::Error;

use crate::limits::DURATION;

/// The units, largest first, with their length in seconds.
const UNITS: [(char, i64); 5] = [
    ('w', 7 * 24 * 3_600),
    ('d', 24 * 3_600),
    ('h', 3_600),
    ('m', 60),
    ('s', 1),
];

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DurationError {
    #[error("`{text}` is not a duration")]
    Malformed { text: String },
    #[error("`{text}` does not name its units from large to small")]
    Order { text: String },
    #[error("a duration must be longer than nothing")]
    Zero,
    #[error("`{text}` is longer than {} days", DURATION.num_days())]
    TooLong { text: String },
}

impl DurationError {
    /// What to write instead.
    pub const fn hint(&self) -> &'static str {
        "write a number and a unit (`s`, `m`, `h`, `d`, `w`), such as `90s`, `30m` or `1h30m`"
    }
}

/// Reads a duration.
///
/// # Errors
/// If the text is not a duration, with the reason.
pub fn parse_duration(text: &str) -> Result<TimeDelta, DurationError> {
    let shown = || text.chars().take(40).collect::<String>();
    let malformed = || DurationError::Malformed { text: shown() };
    let too_long = || DurationError::TooLong { text: shown() };
    let mut rest = text;
    let mut units = UNITS.iter();
    let mut total: i64 = 0;
    if rest.is_empty() {
        return Err(malformed());
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, tail) = rest.split_at(digits);
        let unit = tail
            .chars()
            .next()
            .filter(|_| digits > 0)
            .ok_or_else(malformed)?;
        if !UNITS.iter().any(|(name, _)| *name == unit) {
            return Err(malformed());
        }
        let (_, seconds) = units
            .find(|(name, _)| *name == unit)
            .ok_or_else(|| DurationError::Order { text: shown() })?;
        let part = number
            .parse::<i64>()
            .ok()
            .and_then(|number| number.checked_mul(*seconds))
            .ok_or_else(too_long)?;
        total = total.checked_add(part).ok_or_else(too_long)?;
        rest = &tail[unit.len_utf8()..];
    }
    if total == 0 {
        return Err(DurationError::Zero);
    }
    TimeDelta::try_seconds(total)
        .filter(|delta| *delta <= DURATION)
        .ok_or_else(too_long)
}

/// Writes a duration in the form that [`parse_duration`] reads, in the largest possible units.
pub fn format_duration(duration: TimeDelta) -> String {
    let mut seconds = duration.num_seconds().max(0);
    let mut text = String::new();
    for (name, length) in UNITS {
        let count = seconds / length;
        if count > 0 {
            text.push_str(&count.to_string());
            text.push(name);
            seconds %= length;
        }
    }
    if text.is_empty() {
        "0s".to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_sums_are_read() {
        for (text, seconds) in [
            ("90s", 90),
            ("30m", 1_800),
            ("1h", 3_600),
            ("1d", 86_400),
            ("2w", 1_209_600),
            ("1h30m", 5_400),
            ("1w2d3h4m5s", 788_645),
            ("0h5m", 300),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(TimeDelta::seconds(seconds)),
                "{text}"
            );
        }
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        for text in [
            "", "h", "10", "1x", "1h ", " 1h", "-1h", "1.5h", "1H", "1h30", "½h",
        ] {
            assert!(
                matches!(parse_duration(text), Err(DurationError::Malformed { .. })),
                "{text}"
            );
        }
        for text in ["1m1h", "1h1h"] {
            assert!(
                matches!(parse_duration(text), Err(DurationError::Order { .. })),
                "{text}"
            );
        }
        assert_eq!(parse_duration("0s"), Err(DurationError::Zero));
        for text in ["99999999999999999999s", "9223372036854775807w", "4000d"] {
            assert!(
                matches!(parse_duration(text), Err(DurationError::TooLong { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn a_formatted_duration_is_read_back() {
        for seconds in [1, 59, 60, 61, 3_600, 5_400, 86_400, 788_645] {
            let duration = TimeDelta::seconds(seconds);
            assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }
    }
}
