//! Times and durations. Times are in UTC; a script shows them in the time zone of the browser, with UTC in the title.

use chrono::{DateTime, NaiveDate, SecondsFormat, TimeDelta, Utc};
use maud::{Markup, html};

/// For the `datetime` attribute.
fn machine(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn in_utc(at: DateTime<Utc>) -> String {
    // This is several times faster than a format string.
    let text = at.to_rfc3339_opts(SecondsFormat::Secs, true);
    text.replace('T', " ").replace('Z', " UTC")
}

pub fn at(at: DateTime<Utc>) -> Markup {
    html! { time datetime=(machine(at)) title=(in_utc(at)) data-time="at" { (in_utc(at)) } }
}

pub fn date(day: NaiveDate) -> Markup {
    html! { time datetime=(day) { (day) } }
}

/// The time since a moment.
pub fn ago(at: DateTime<Utc>, now: DateTime<Utc>) -> Markup {
    html! { time datetime=(machine(at)) title=(in_utc(at)) data-time="ago" { (ago_text(at, now)) } }
}

/// Like [`ago`], as plain text for drawings, which no script updates.
pub fn ago_text(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    match now.signed_duration_since(at) {
        past if past < TimeDelta::seconds(1) => "now".to_owned(),
        past => format!("{} ago", coarse(past)),
    }
}

/// The time until a moment.
pub fn in_future(at: DateTime<Utc>, now: DateTime<Utc>) -> Markup {
    let text = match at.signed_duration_since(now) {
        left if left < TimeDelta::seconds(1) => "now".to_owned(),
        left => format!("in {}", coarse(left)),
    };
    html! { time datetime=(machine(at)) title=(in_utc(at)) data-time="until" { (text) } }
}

/// The time since a moment. A script updates it.
pub fn running_for(since: DateTime<Utc>, now: DateTime<Utc>) -> Markup {
    html! {
        time datetime=(machine(since)) title={ "since " (in_utc(since)) } data-time="since" {
            (duration(now.signed_duration_since(since)))
        }
    }
}

pub fn between(from: DateTime<Utc>, to: DateTime<Utc>) -> String {
    duration(to.signed_duration_since(from))
}

/// A duration in its two largest units; below ten seconds with tenths.
pub fn duration(length: TimeDelta) -> String {
    let millis = length.num_milliseconds().max(0);
    if millis < 1_000 {
        return format!("{millis} ms");
    }
    let seconds = millis / 1_000;
    match seconds {
        0..10 => format!("{seconds}.{} s", millis % 1_000 / 100),
        10..60 => format!("{seconds} s"),
        60..3_600 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

pub fn seconds(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    match TimeDelta::try_seconds(seconds) {
        Some(length) if seconds < 10 => format!("{} s", length.num_seconds()),
        Some(length) => duration(length),
        None => "forever".to_owned(),
    }
}

/// A usual run time, which is known to the second.
pub fn usual(length: TimeDelta) -> String {
    match u64::try_from(length.num_seconds()) {
        Ok(0) | Err(_) => "less than 1 s".to_owned(),
        Ok(whole) => seconds(whole),
    }
}

fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large} {large_unit}")
    } else {
        format!("{large} {large_unit} {small} {small_unit}")
    }
}

/// A duration in its largest unit.
fn coarse(length: TimeDelta) -> String {
    match length.num_seconds().max(0) {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_their_two_largest_units() {
        for (millis, text) in [
            (-5, "0 ms"),
            (4, "4 ms"),
            (3_100, "3.1 s"),
            (48_000, "48 s"),
            (60_000, "1 min"),
            (252_000, "4 min 12 s"),
            (7_560_000, "2 h 6 min"),
            (180_000_000, "2 d 2 h"),
        ] {
            assert_eq!(duration(TimeDelta::milliseconds(millis)), text);
        }
        assert_eq!(usual(TimeDelta::milliseconds(400)), "less than 1 s");
        assert_eq!(usual(TimeDelta::seconds(104)), "1 min 44 s");
        assert_eq!(seconds(5), "5 s");
        assert_eq!(seconds(u64::MAX), "forever");
    }

    #[test]
    fn a_time_has_utc_in_its_title() {
        let now = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
        assert_eq!(
            ago(now - TimeDelta::hours(2), now).into_string(),
            "<time datetime=\"2026-09-21T12:13:20.000Z\" title=\"2026-09-21 12:13:20 UTC\" data-time=\"ago\">2 h ago</time>"
        );
        assert!(
            in_future(now + TimeDelta::days(3), now)
                .into_string()
                .contains("in 3 days")
        );
        assert!(
            ago(now + TimeDelta::days(3), now)
                .into_string()
                .contains(">now<")
        );
    }
}
