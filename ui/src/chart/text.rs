//! Times and durations in the words of charts.

use chrono::{DateTime, FixedOffset, Utc};

/// The two largest units, for example `1 min 44 s`.
pub(super) fn duration(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let (large, small) = match seconds {
        0..60 => return format!("{seconds} s"),
        60..3_600 => (format!("{minutes} min"), (seconds % 60, "s")),
        3_600..86_400 => (format!("{hours} h"), (minutes % 60, "min")),
        _ => (format!("{days} d"), (hours % 24, "h")),
    };
    match small {
        (0, _) => large,
        (number, unit) => format!("{large} {number} {unit}"),
    }
}

/// A length of time that may be short, for example `120 ms`, `1.7 s` or `1 min 44 s`.
pub(super) fn length(millis: i64) -> String {
    let millis = millis.max(0);
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..10_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        _ => duration(millis / 1_000),
    }
}

/// For example `24 Nov 06:00`.
pub(super) fn day_and_time(at: DateTime<Utc>, offset: FixedOffset) -> String {
    formatted(at, offset, "%-d %b %H:%M")
}

/// For example `06:00`.
pub(super) fn time(at: DateTime<Utc>, offset: FixedOffset) -> String {
    formatted(at, offset, "%H:%M")
}

/// For example `Mon 24 Nov`.
pub(super) fn day(at: DateTime<Utc>, offset: FixedOffset) -> String {
    formatted(at, offset, "%a %-d %b")
}

/// The offset is added by hand, because a date at the end of the calendar has no local time.
fn formatted(at: DateTime<Utc>, offset: FixedOffset, format: &str) -> String {
    let local = at.timestamp() + i64::from(offset.local_minus_utc());
    match DateTime::from_timestamp(local, 0) {
        Some(local) => local.format(format).to_string(),
        None => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        let texts = [
            (-5, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (104, "1 min 44 s"),
            (10_080, "2 h 48 min"),
            (273_600, "3 d 4 h"),
            (i64::MAX, "106751991167300 d 15 h"),
        ];
        for (seconds, expected) in texts {
            assert_eq!(duration(seconds), expected);
        }
    }

    #[test]
    fn times_are_local_to_the_offset() {
        let at = DateTime::from_timestamp(1_764_021_600, 0).unwrap();
        let india = FixedOffset::east_opt(19_800).unwrap();
        assert_eq!(day_and_time(at, india), "25 Nov 03:30");
        assert_eq!(time(DateTime::<Utc>::MAX_UTC, india), "unknown");
    }
}
