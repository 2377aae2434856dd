//! Tests which texts are schedules, and when special schedules are due. The submodules compare with other implementations and
//! test the descriptions.

mod lists;
mod oracle;
mod peer;
mod schedules;
mod words;

use chrono::{DateTime, Utc};
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
fn schedules_are_compared_by_when_they_are_due() {
    for (one, other, is_same) in [
        ("0 * * * *", "0 */1 * * *", true),
        ("0 0-23 * * *", "0 * * * *", false), // Only one of them follows elapsed time.
        ("1,2,3 * * * *", "1-3 * * * *", true),
        ("0 3 * * 0", "0 3 * * 7", true),
        ("0 3 */1 * *", "0 3 * * *", true),
        ("0 3 1-31 * 5", "0 3 * * *", true),
        ("0 3 * * 5", "0 3 */1 * 5", false),
        ("0 3 13 * 5", "0 3 13 * *", false),
        ("0 3 13 * 5", "0 3 13 * 5,6", false),
        ("0 3 * 1-12 *", "0 3 * * *", true),
        ("0 3 * * *", "0 4 * * *", false),
    ] {
        assert_eq!(
            cron(one).means_the_same(&cron(other)),
            is_same,
            "`{one}` and `{other}`"
        );
    }
}

#[test]
fn an_empty_entry_is_shown_at_its_comma() {
    for (source, commas) in [
        ("0 0 1 1 ,1", &[8][..]),
        ("0 0 1 1 1,,2", &[10]),
        ("0 0 1 1 1,", &[9]),
        ("0 0 1 1 ,", &[8]),
        ("0 0 1 1 ,,", &[8, 9]),
    ] {
        let errors = Cron::parse(source).unwrap_err();
        let shown = errors.iter().map(|error| {
            assert_eq!(&source[error.range.clone()], ",", "{source}");
            error.range.start
        });
        assert_eq!(shown.collect::<Vec<_>>(), commas, "{source}");
    }
}

#[test]
fn a_text_that_is_not_a_schedule_is_refused() {
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
fn every_problem_is_reported_with_its_place() {
    let errors = Cron::parse("99 3 0,5 MAY *").unwrap_err();
    let reported: Vec<_> = errors
        .iter()
        .map(|error| (error.range.clone(), error.problem.to_string()))
        .collect();
    assert_eq!(
        reported,
        [
            (0..2, "minute 99 is outside 0-59".to_owned()),
            (5..6, "day of month 0 is outside 1-31".to_owned()),
            (
                9..12,
                "`MAY` is not a valid month: only digits, `*`, `,`, `-` and `/` are allowed"
                    .to_owned()
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
fn the_syntax_of_other_programs_is_refused_with_a_hint() {
    let misplaced = "write `*`, `5`, `1-5`, or one of them with a step as in `*/2`";
    let only = "only digits, `*`, `,`, `-` and `/` are allowed";
    let count =
        "a schedule has five fields (minute, hour, day of month, month, day of week), found";
    for (source, reported, hint) in [
        (
            "5/5/5 * * * *",
            format!("`5/5/5` is not a valid minute: {misplaced}"),
            None,
        ),
        (
            "*-5 * * * *",
            format!("`*-5` is not a valid minute: {misplaced}"),
            None,
        ),
        (
            "* 1- * * *",
            format!("`1-` is not a valid hour: {misplaced}"),
            None,
        ),
        (
            "1,,2 * * * *",
            "the list of the minute has an empty entry".to_owned(),
            Some("remove the comma, or write the missing entry"),
        ),
        (
            "* * 1, * *",
            "the list of the day of month has an empty entry".to_owned(),
            Some("remove the comma, or write the missing entry"),
        ),
        (
            "0 0 ? * *",
            format!("`?` is not a valid day of month: {only}"),
            Some("write `*`"),
        ),
        (
            "0 0 L * *",
            format!("`L` is not a valid day of month: {only}"),
            Some(
                "there is no way to write the last day of a month; the first day of the next is `1`",
            ),
        ),
        (
            "0 0 * * 5L",
            format!("`5L` is not a valid day of week: {only}"),
            Some(
                "there is no way to write the last such day of a month; let a script check the date",
            ),
        ),
        (
            "0 0 15W * *",
            format!("`15W` is not a valid day of month: {only}"),
            Some(
                "there is no way to write the nearest working day; `1-5` as day of week is Monday to Friday",
            ),
        ),
        (
            "0 0 * * 1#2",
            format!("`1#2` is not a valid day of week: {only}"),
            Some(
                "there is no way to write the nth such day of a month; let a script check the date",
            ),
        ),
        (
            "0 0 * JUL *",
            format!("`JUL` is not a valid month: {only}"),
            Some("write months and days of the week as numbers; 0 and 7 are Sunday"),
        ),
        (
            "0 0 0 * * *",
            format!("{count} 6"),
            Some("a schedule has no field for seconds or years; remove it"),
        ),
        (
            "0 0 0 * * * 2026",
            format!("{count} 7"),
            Some("a schedule has no fields for seconds and years; remove them"),
        ),
        (
            "@reboot",
            "`@reboot` is not supported".to_owned(),
            Some("nothing starts with the daemon; write a schedule, or dispatch the scan"),
        ),
    ] {
        let errors = Cron::parse(source).unwrap_err();
        let [error] = errors.as_slice() else {
            panic!("`{source}`: {errors:?}")
        };
        assert_eq!(error.problem.to_string(), reported, "`{source}`");
        assert_eq!(error.problem.hint().as_deref(), hint, "`{source}`");
    }
}

#[test]
fn no_time_is_after_the_last_year_that_can_be_written() {
    for source in ["0 12 * * *", "0 */12 * * *"] {
        let next = |after: &str, zone| cron(source).next_after(at(after), zone);
        let noon = Some(at("9999-12-31T12:00:00Z"));
        assert_eq!(next("9999-12-31T00:00:00Z", Tz::UTC), noon, "{source}");
        assert_eq!(next("9999-12-31T12:00:00Z", Tz::UTC), None, "{source}");
        assert_eq!(
            next("9999-12-31T23:30:00Z", chrono_tz::Asia::Tokyo),
            None,
            "{source}: in this zone it is already the next year"
        );
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
