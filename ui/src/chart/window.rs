//! The period that a chart shows, its ticks, and local times.

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};

const HOUR: i64 = 3_600_000;
/// Distances between ticks that are easy to read.
const STEPS: [i64; 8] = [
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
];
const DAY: i64 = 24 * HOUR;
/// The labels of more ticks would touch.
const MOST_TICKS: i64 = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub from: DateTime<Utc>,
    pub until: DateTime<Utc>,
}

impl Window {
    /// The period that ends at `until`.
    pub fn before(until: DateTime<Utc>, length: TimeDelta) -> Self {
        let from = until.checked_sub_signed(length);
        Self {
            from: from.unwrap_or(DateTime::<Utc>::MIN_UTC),
            until,
        }
    }

    /// In milliseconds, at least 1.
    pub(super) fn length(self) -> i64 {
        let length = self.until.timestamp_millis() - self.from.timestamp_millis();
        length.max(1)
    }

    pub(super) fn contains(self, at: DateTime<Utc>) -> bool {
        self.from <= at && at <= self.until
    }

    /// The distance of a moment from the start, in milliseconds.
    pub(super) fn offset_of(self, at: DateTime<Utc>) -> i64 {
        at.timestamp_millis() - self.from.timestamp_millis()
    }

    /// The distance between two ticks, in milliseconds.
    pub(super) fn step(self) -> i64 {
        let fits = |step: &i64| self.length() / step < MOST_TICKS;
        let whole_days = (self.length() / (DAY * (MOST_TICKS - 1)) + 1) * DAY;
        STEPS.into_iter().find(fits).unwrap_or(whole_days)
    }

    /// The ticks, at whole hours or at midnight in the local time of `offset`.
    pub(super) fn ticks(self, offset: FixedOffset) -> Vec<Tick> {
        let step = self.step();
        let shift = i64::from(offset.local_minus_utc()) * 1_000;
        let local = self.from.timestamp_millis() + shift;
        let before_first = (step - local.rem_euclid(step)) % step;
        (0..=MOST_TICKS)
            .map(|tick| before_first + tick * step)
            .take_while(|&distance| distance <= self.length())
            .filter_map(|distance| {
                let at = self.from.timestamp_millis() + distance;
                let at = DateTime::from_timestamp_millis(at)?;
                let (label, clock) = match step < DAY {
                    true => (formatted(at, offset, "%H:%M"), Some(at)),
                    false => (formatted(at, offset, "%a %-d %b"), None),
                };
                Some(Tick {
                    distance,
                    label,
                    clock,
                })
            })
            .collect()
    }
}

/// A tick of the time axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tick {
    /// From the start of the window, in milliseconds.
    pub(super) distance: i64,
    pub(super) label: String,
    /// The time, if the label is a time of day and not a date. A script then shows it in the time zone of the browser.
    pub(super) clock: Option<DateTime<Utc>>,
}

/// For example `24 Nov 06:00`.
pub(super) fn day_and_time(at: DateTime<Utc>, offset: FixedOffset) -> String {
    formatted(at, offset, "%-d %b %H:%M")
}

/// The offset is added by hand, because the last and first dates of the calendar have no local time.
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

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn labels(window: Window, offset: i32) -> Vec<String> {
        let offset = FixedOffset::east_opt(offset).unwrap();
        let ticks = window.ticks(offset).into_iter();
        ticks.map(|tick| tick.label).collect()
    }

    #[test]
    fn a_day_has_a_tick_at_every_third_hour() {
        let window = Window::before(at("2025-11-24T14:07:52Z"), TimeDelta::hours(24));
        let expected = [
            "15:00", "18:00", "21:00", "00:00", "03:00", "06:00", "09:00", "12:00",
        ];
        assert_eq!(labels(window, 0)[..], expected);
    }

    #[test]
    fn ticks_are_at_whole_local_hours_with_a_half_hour_offset() {
        let window = Window::before(at("2025-11-24T14:00:00Z"), TimeDelta::hours(4));
        let expected = ["16:00", "17:00", "18:00", "19:00"];
        assert_eq!(labels(window, 19_800)[..], expected);
        assert_eq!(
            window.ticks(FixedOffset::east_opt(19_800).unwrap())[0].distance,
            HOUR / 2
        );
    }

    #[test]
    fn a_week_has_a_tick_at_every_midnight() {
        let window = Window::before(at("2025-11-30T23:00:00Z"), TimeDelta::days(7));
        let labels = labels(window, 3_600);
        assert_eq!(labels.len(), 8);
        assert_eq!(labels[0], "Mon 24 Nov");
        assert_eq!(labels[7], "Mon 1 Dec");
    }

    #[test]
    fn no_window_has_more_ticks_than_fit() {
        let until = at("2025-11-24T14:07:52Z");
        for hours in (1..20_000).step_by(7) {
            let window = Window::before(until, TimeDelta::hours(hours));
            let ticks = labels(window, 3_600).len();
            assert!(ticks <= 10, "{hours} hours have {ticks} ticks");
        }
        let all = Window {
            from: DateTime::<Utc>::MIN_UTC,
            until: DateTime::<Utc>::MAX_UTC,
        };
        assert!(labels(all, 3_600).len() <= 10);
        let nothing = Window {
            from: until,
            until: DateTime::<Utc>::MIN_UTC,
        };
        assert!(labels(nothing, 0).is_empty());
    }

    #[test]
    fn times_are_local_to_the_offset() {
        let at = DateTime::from_timestamp(1_764_021_600, 0).unwrap();
        let india = FixedOffset::east_opt(19_800).unwrap();
        assert_eq!(day_and_time(at, india), "25 Nov 03:30");
        assert_eq!(day_and_time(DateTime::<Utc>::MAX_UTC, india), "unknown");
    }
}
