use chrono::{DateTime, Datelike, TimeDelta, Timelike, Utc};
use chrono_tz::Tz;

use super::{Cron, CronProblem};
use crate::random::Random;

fn cron(source: &str) -> Cron {
    Cron::parse(source).unwrap_or_else(|errors| panic!("`{source}`: {errors:?}"))
}

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// The next `expected.len()` times, as `hh:mm` of UTC with the day.
fn check(source: &str, timezone: Tz, after: &str, expected: &[&str]) {
    let cron = cron(source);
    let mut now = at(after);
    for expected in expected {
        now = cron.next_after(now, timezone).unwrap();
        assert_eq!(now, at(expected), "`{source}` in {timezone}");
    }
}

#[test]
fn plain_schedules() {
    check(
        "*/15 * * * *",
        Tz::UTC,
        "2026-01-01T00:00:30Z",
        &["2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"],
    );
    check(
        "30 3 * * *",
        Tz::UTC,
        "2026-01-01T03:30:00Z",
        &["2026-01-02T03:30:00Z"],
    );
    check(
        "0 0 29 2 *",
        Tz::UTC,
        "2096-03-01T00:00:00Z",
        &["2104-02-29T00:00:00Z"],
    );
    check(
        "5/20 1 * * *",
        Tz::UTC,
        "2026-01-01T00:00:00Z",
        &["2026-01-01T01:05:00Z", "2026-01-01T01:25:00Z"],
    );
    check(
        "0 9-17/4 * * 1-5",
        Tz::UTC,
        "2026-11-20T17:00:00Z",
        &["2026-11-23T09:00:00Z", "2026-11-23T13:00:00Z"],
    );
}

#[test]
fn days_combine_by_or_when_both_are_restricted() {
    check(
        "0 0 13 * 5",
        Tz::UTC,
        "2026-11-01T00:00:00Z",
        &["2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z"],
    );
    check(
        "0 0 1 * *",
        Tz::UTC,
        "2026-11-01T00:00:00Z",
        &["2026-12-01T00:00:00Z"],
    );
    check(
        "0 0 * * 7",
        Tz::UTC,
        "2026-11-20T00:00:00Z",
        &["2026-11-22T00:00:00Z"],
    );
    check(
        "0 0 * * 5/1",
        Tz::UTC,
        "2026-11-20T00:00:00Z",
        &["2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"],
    );
}

#[test]
fn a_skipped_local_time_runs_once_at_the_first_valid_instant() {
    let berlin = chrono_tz::Europe::Berlin;
    check(
        "30 2 * * *",
        berlin,
        "2026-03-28T12:00:00Z",
        &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
    );
    check(
        "15,45 2 * * *",
        berlin,
        "2026-03-28T12:00:00Z",
        &["2026-03-29T01:00:00Z", "2026-03-30T00:15:00Z"],
    );
}

#[test]
fn a_repeated_local_time_runs_at_its_first() {
    let berlin = chrono_tz::Europe::Berlin;
    check(
        "30 2 * * *",
        berlin,
        "2026-10-24T12:00:00Z",
        &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
    );
}

#[test]
fn periodic_entries_follow_elapsed_time() {
    let berlin = chrono_tz::Europe::Berlin;
    check(
        "*/30 * * * *",
        berlin,
        "2026-10-25T00:00:00Z",
        &[
            "2026-10-25T00:30:00Z",
            "2026-10-25T01:00:00Z",
            "2026-10-25T01:30:00Z",
            "2026-10-25T02:00:00Z",
        ],
    );
    check(
        "0 * * * *",
        berlin,
        "2026-03-29T00:00:00Z",
        &["2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"],
    );
}

#[test]
fn a_gap_of_a_whole_day_is_crossed() {
    check(
        "0 12 30 12 *",
        chrono_tz::Pacific::Apia,
        "2011-12-01T00:00:00Z",
        &["2011-12-30T10:00:00Z"],
    );
}

#[test]
fn what_is_no_schedule_is_refused() {
    for source in [
        "",
        "* * * *",
        "* * * * * *",
        "@hourly",
        "@reboot",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "*/0 * * * *",
        "*/60 * * * *",
        "5-1 * * * *",
        "a * * * *",
        "* * * JAN *",
        "* * * * MON",
        "* * ? * *",
        "* * L * *",
        "* * 15W * *",
        "* * * * 1#2",
        "1,,2 * * * *",
        ",1 * * * *",
        "1- * * * *",
        "-1 * * * *",
        "*/ * * * *",
        "**/2 * * * *",
        "1-2-3 * * * *",
        "*-5 * * * *",
        "1/2/3 * * * *",
        "+1 * * * *",
        "１ * * * *",
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "999999999999999999999 * * * *",
        "* * * * *\n",
    ] {
        assert!(Cron::parse(source).is_err(), "`{source}`");
    }
}

#[test]
fn every_problem_is_told_with_its_place() {
    let errors = Cron::parse("99 3 0,5 MAY *").unwrap_err();
    let told: Vec<_> = errors
        .iter()
        .map(|error| (error.range.clone(), error.problem.to_string()))
        .collect();
    assert_eq!(
        told,
        [
            (0..2, "minute 99 is outside 0-59".to_owned()),
            (5..6, "day of month 0 is outside 1-31".to_owned()),
            (
                9..12,
                "`MAY` is no month: only digits, `*`, `,`, `-` and `/` are allowed".to_owned()
            ),
        ]
    );
    assert_eq!(
        Cron::parse("0 0 30 2 *").unwrap_err()[0].problem,
        CronProblem::NeverFires
    );
    assert_eq!(
        Cron::parse("@daily").unwrap_err()[0]
            .problem
            .hint()
            .as_deref(),
        Some("write `0 0 * * *`")
    );
}

#[test]
fn schedules_are_told_in_words() {
    for (source, words) in [
        ("30 3 * * 1,5", "at 03:30, on Monday and Friday"),
        ("*/5 * * * *", "every 5 minutes of every hour"),
        ("* * * * *", "every minute"),
        ("0 */2 * * *", "at minute 0 of every 2 hours"),
        (
            "0 0 1,15 1 *",
            "at 00:00, on day 1 and 15 of the month, in January",
        ),
        (
            "0 0 13 * 5",
            "at 00:00, on day 13 of the month or on Friday",
        ),
    ] {
        assert_eq!(cron(source).describe(), words, "`{source}`");
    }
}

/// Five random fields; some are no schedule.
fn random_schedule(random: &mut Random) -> String {
    let mut field = |min: u64, max: u64| {
        let number = |random: &mut Random| min + random.below(max - min + 1);
        match random.below(7) {
            0 | 1 => "*".to_owned(),
            2 => format!("*/{}", 1 + random.below(max)),
            3 => format!("{}-{}", number(random), max),
            4 => format!("{}/{}", number(random), 1 + random.below(9)),
            5 => format!("{},{}", number(random), number(random)),
            _ => number(random).to_string(),
        }
    };
    format!(
        "{} {} {} {} {}",
        field(0, 59),
        field(0, 23),
        field(1, 31),
        field(1, 12),
        field(0, 7)
    )
}

/// A second opinion in UTC, where wall clock and elapsed time agree: walk the minutes of the next days.
#[test]
fn next_agrees_with_a_walk_over_all_minutes() {
    let mut random = Random::new(7);
    for _ in 0..150 {
        let source = random_schedule(&mut random);
        let Ok(cron) = Cron::parse(&source) else {
            continue;
        };
        let start = at("2026-02-26T21:07:00Z")
            + TimeDelta::minutes(i64::try_from(random.below(400_000)).unwrap());
        let walked = (1..60 * 24 * 40)
            .map(|minute| start + TimeDelta::minutes(minute))
            .find(|time| {
                let day = cron.days.has(time.day());
                let weekday = cron.weekdays.has(time.weekday().num_days_from_sunday());
                let fields: Vec<&str> = source.split(' ').collect();
                let day_matches = match (fields[2], fields[4]) {
                    ("*", "*") => true,
                    ("*", _) => weekday,
                    (_, "*") => day,
                    _ => day || weekday,
                };
                day_matches
                    && cron.months.has(time.month())
                    && cron.hours.has(time.hour())
                    && cron.minutes.has(time.minute())
            });
        if let Some(walked) = walked {
            assert_eq!(
                cron.next_after(start, Tz::UTC),
                Some(walked),
                "`{source}` after {start}"
            );
        }
    }
}

/// A third opinion: the `cron` crate on canonical numeric lists, where day and weekday are not both restricted.
#[test]
fn next_agrees_with_the_cron_crate() {
    let mut random = Random::new(11);
    let mut compared = 0;
    while compared < 150 {
        let source = random_schedule(&mut random);
        let Ok(cron) = Cron::parse(&source) else {
            continue;
        };
        if cron.restricts_days && cron.restricts_weekdays {
            continue;
        }
        let list = |bits: super::Bits, shift: u32| {
            bits.numbers()
                .map(|number| (number + shift).to_string())
                .collect::<Vec<_>>()
                .join(",")
        };
        let days = if cron.restricts_days {
            list(cron.days, 0)
        } else {
            "*".to_owned()
        };
        let weekdays = if cron.restricts_weekdays {
            list(cron.weekdays, 1)
        } else {
            "*".to_owned()
        };
        let canonical = format!(
            "0 {} {} {days} {} {weekdays}",
            list(cron.minutes, 0),
            list(cron.hours, 0),
            list(cron.months, 0),
        );
        let schedule: ::cron::Schedule = canonical.parse().unwrap();
        let start = at("2026-02-26T21:07:00Z")
            + TimeDelta::minutes(i64::try_from(random.below(400_000)).unwrap());
        assert_eq!(
            cron.next_after(start, Tz::UTC),
            schedule.after(&start).next(),
            "`{source}` after {start}"
        );
        compared += 1;
    }
}

#[test]
fn no_input_panics() {
    let mut random = Random::new(3);
    for _ in 0..5_000 {
        let source = random.text("0123456789*,-/ @LW#?JANmon\n\tä９", 24);
        if let Ok(cron) = Cron::parse(&source) {
            assert!(
                cron.next_after(at("2026-01-01T00:00:00Z"), chrono_tz::America::New_York)
                    .is_some(),
                "`{source}`"
            );
            assert!(!cron.describe().is_empty());
        }
    }
}
