//! A second implementation that shares no code with the first. It reads the fields itself, walks over every real minute and
//! checks the wall clock.

use chrono::{DateTime, Datelike, NaiveDateTime, TimeDelta, Timelike, Utc};
use chrono_tz::Tz;

use super::schedules::{self, Time, ZONES};
use super::{Cron, at};
use crate::random::Random;

/// Clock changes that are tested in each zone.
const CHANGES: usize = 4;

/// Schedules tried around each change.
const SCHEDULES: usize = 24;

/// The length of a window before and after the change.
const BEFORE: TimeDelta = TimeDelta::hours(15);
const AFTER: TimeDelta = TimeDelta::hours(34);

/// A minute of a window.
struct Minute {
    instant: DateTime<Utc>,
    /// The time on the wall clock.
    shown: NaiveDateTime,
    /// Whether the clock shows this time for the first time.
    is_first: bool,
    /// The times that the clock skipped just before.
    skipped: Vec<NaiveDateTime>,
}

/// The minutes of a period in a zone.
fn window(start: DateTime<Utc>, end: DateTime<Utc>, zone: Tz) -> Vec<Minute> {
    let minute = TimeDelta::minutes(1);
    // A clock that is set back repeats up to a day.
    let mut instant = start - TimeDelta::hours(25);
    let mut newest: Option<NaiveDateTime> = None;
    let mut last: Option<NaiveDateTime> = None;
    let mut minutes = Vec::new();
    while instant <= end {
        let shown = instant.with_timezone(&zone).naive_local();
        let skipped =
            std::iter::successors(last.map(|last| last + minute), |time| Some(*time + minute));
        minutes.push(Minute {
            instant,
            shown,
            is_first: newest.is_none_or(|newest| shown > newest),
            skipped: skipped.take_while(|time| *time < shown).collect(),
        });
        newest = newest.max(Some(shown));
        last = Some(shown);
        instant += minute;
    }
    minutes.retain(|minute| minute.instant >= start);
    minutes
}

/// The numbers of a field.
fn numbers(field: &str, min: u32, max: u32) -> Vec<u32> {
    let mut numbers = Vec::new();
    for part in field.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (first.parse().unwrap(), last.parse().unwrap()),
            None if range == "*" => (min, max),
            None if part.contains('/') => (range.parse().unwrap(), max),
            None => (range.parse().unwrap(), range.parse().unwrap()),
        };
        let mut number = first;
        while number <= last {
            numbers.push(number);
            number += step.parse::<u32>().unwrap();
        }
    }
    numbers
}

/// The schedule as sets of numbers.
struct Fields {
    minutes: Vec<u32>,
    hours: Vec<u32>,
    days: Option<Vec<u32>>,
    months: Vec<u32>,
    weekdays: Option<Vec<u32>>,
    follows_the_wall_clock: bool,
}

impl Fields {
    fn read(source: &str) -> Self {
        let fields: Vec<&str> = source.split(' ').collect();
        let restricted =
            |at: usize, min, max| (fields[at] != "*").then(|| numbers(fields[at], min, max));
        Self {
            minutes: numbers(fields[0], 0, 59),
            hours: numbers(fields[1], 0, 23),
            days: restricted(2, 1, 31),
            months: numbers(fields[3], 1, 12),
            weekdays: restricted(4, 0, 7),
            follows_the_wall_clock: !format!("{} {}", fields[0], fields[1]).contains(['*', '/']),
        }
    }

    fn match_clock(&self, time: NaiveDateTime) -> bool {
        if !self.minutes.contains(&time.minute()) || !self.hours.contains(&time.hour()) {
            return false;
        }
        let day = |days: &Vec<u32>| days.contains(&time.day());
        let sunday_is = |number: u32| if number == 0 { 7 } else { number };
        let weekday = |days: &Vec<u32>| {
            let today = time.weekday().num_days_from_sunday();
            days.contains(&today) || days.contains(&sunday_is(today))
        };
        let is_day = match (&self.days, &self.weekdays) {
            (None, None) => true,
            (Some(days), None) => day(days),
            (None, Some(days)) => weekday(days),
            (Some(days), Some(weekdays)) => day(days) || weekday(weekdays),
        };
        is_day && self.months.contains(&time.month())
    }

    fn is_due(&self, minute: &Minute) -> bool {
        if self.follows_the_wall_clock {
            let is_shown = minute.is_first && self.match_clock(minute.shown);
            is_shown || minute.skipped.iter().any(|time| self.match_clock(*time))
        } else {
            self.match_clock(minute.shown)
        }
    }
}

/// All times of a schedule in the window, by the tested code.
fn times(cron: &Cron, start: DateTime<Utc>, end: DateTime<Utc>, zone: Tz) -> Vec<DateTime<Utc>> {
    let next = |time: DateTime<Utc>| cron.next_after(time, zone).filter(|next| *next <= end);
    std::iter::successors(next(start), |time| next(*time)).collect()
}

#[track_caller]
fn compare(source: &str, start: DateTime<Utc>, minutes: &[Minute], zone: Tz) {
    let Ok(cron) = Cron::parse(source) else {
        return;
    };
    let fields = Fields::read(source);
    let due: Vec<DateTime<Utc>> = minutes
        .iter()
        .filter(|minute| minute.instant > start && fields.is_due(minute))
        .map(|minute| minute.instant)
        .collect();
    let end = minutes.last().unwrap().instant;
    assert_eq!(
        times(&cron, start, end, zone),
        due,
        "`{source}` in {zone} after {start}"
    );
}

#[test]
fn a_walk_over_all_minutes_around_changes_of_the_clocks_agrees() {
    let mut random = Random::new(61);
    let mut compared = 0;
    for zone in ZONES {
        let mut changes = schedules::changes(zone);
        if zone == chrono_tz::Pacific::Apia {
            assert!(
                changes.contains(&at("2011-12-30T10:00:00Z")),
                "the skipped day"
            );
        }
        while changes.len() > CHANGES {
            let left_out = random.below(changes.len() as u64);
            changes.remove(usize::try_from(left_out).unwrap());
        }
        if zone == chrono_tz::Pacific::Apia {
            changes.push(at("2011-12-30T10:00:00Z"));
        }
        changes.push(at("2024-02-28T12:00:00Z"));
        for change in changes {
            let minutes = window(change - BEFORE, change + AFTER, zone);
            for _ in 0..SCHEDULES {
                let within = TimeDelta::seconds(i64::try_from(random.below(60 * 60 * 16)).unwrap());
                let source = schedules::schedule(&mut random, Time::Any);
                compare(&source, change - BEFORE + within, &minutes, zone);
                compared += 1;
            }
        }
    }
    assert!(compared > 1_500, "{compared}");
}

#[test]
fn the_walk_follows_the_rules() {
    let berlin = chrono_tz::Europe::Berlin;
    for (source, day, expected) in [
        // The clock jumps from 02:00 to 03:00.
        ("30 2 * * *", "2026-03-29", vec!["01:00"]),
        (
            "*/30 1-3 * * *",
            "2026-03-29",
            vec!["00:00", "00:30", "01:00", "01:30"],
        ),
        // The clock shows 02:00 to 03:00 twice.
        ("30 2 * * *", "2026-10-25", vec!["00:30"]),
        (
            "0 */2 * * *",
            "2026-10-25",
            vec!["00:00", "01:00", "03:00", "05:00"],
        ),
    ] {
        let start = at(&format!("{day}T00:00:00Z")) - TimeDelta::minutes(1);
        let minutes = window(start, start + TimeDelta::hours(6), berlin);
        let fields = Fields::read(source);
        let due: Vec<String> = minutes
            .iter()
            .filter(|minute| fields.is_due(minute))
            .map(|minute| minute.instant.format("%H:%M").to_string())
            .collect();
        assert_eq!(due, expected, "`{source}` on {day}");
    }
}
