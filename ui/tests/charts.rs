//! Charts and graphs as they are drawn, compared with the files in `charts/`.
//!
//! `UPDATE_PAGES=1` rewrites those files; read the difference before you commit it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};
use maud::Markup;
use ui::chart::{
    Bar, Cause, Clock, Lane, Window, causes, lanes, mini_bars, outcomes, progress, slots,
    usual_seconds,
};
use ui::graph::{Edge, Node, draw, has_neighbours, neighbours};
use uuid::Uuid;
use wire::{How, JobState, LedgerCause, LedgerOutcome, LedgerRecord, Trigger};

use JobState::{Cancelled, Failed, Running, Scheduled, Skipped, Succeeded};

/// Compares the drawing with its file, one element a line so that differences can be read.
#[track_caller]
fn check(name: &str, markup: &Markup) {
    let markup = markup.0.as_str();
    for forbidden in ["style=", "<script", "javascript:"] {
        assert!(!markup.contains(forbidden), "{name} has {forbidden}");
    }
    let start = markup.find("<svg").expect("a drawing");
    let end = markup.rfind("</svg>").expect("a drawing") + "</svg>".len();
    let namespace = "<svg xmlns=\"http://www.w3.org/2000/svg\"";
    let found = markup[start..end].replacen("<svg", namespace, 1);
    let found = found.replace("><", ">\n<") + "\n";
    let file = format!("{}/tests/charts/{name}.svg", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_PAGES").is_some() {
        write(Path::new(&file), &found);
        return;
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(found, expected, "{name} (UPDATE_PAGES=1 takes it over)");
}

#[expect(clippy::disallowed_methods, reason = "a file of the tests")]
fn write(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
}

fn at(time: &str) -> DateTime<Utc> {
    format!("2025-11-{time}:00Z").parse().unwrap()
}

/// Monday, 15:07 where the reader is.
fn clock() -> Clock {
    Clock {
        now: at("24T14:07"),
        offset: FixedOffset::east_opt(3_600).unwrap(),
    }
}

fn bar(job: u128, state: JobState, start: &str, seconds: i64) -> Bar {
    let start = at(start);
    Bar {
        job: Uuid::from_u128(job),
        state,
        start,
        end: start + TimeDelta::seconds(seconds),
        has_run: !matches!(state, Scheduled | Skipped),
    }
}

/// Jobs of every state, a minute apart.
fn history(count: u32) -> Vec<Bar> {
    (0..count)
        .map(|index| {
            let state = match index % 13 {
                5 => Failed,
                8 => Cancelled,
                11 => Skipped,
                _ => Succeeded,
            };
            let start = at("24T06:00") + TimeDelta::minutes(i64::from(index));
            let seconds = 40 + i64::from(index * index % 61);
            Bar {
                end: start + TimeDelta::seconds(seconds),
                start,
                ..bar(u128::from(index), state, "24T06:00", 0)
            }
        })
        .collect()
}

#[test]
fn outcomes_of_many_jobs() {
    let mut bars = history(230);
    bars.push(bar(900, Failed, "24T11:00", 7_200));
    bars.push(bar(901, Running, "24T14:06", 67));
    bars.push(bar(902, Scheduled, "24T14:07", 0));
    let markup = outcomes(&bars, clock());
    let text = markup.clone().into_string();
    assert_eq!(text.matches("<a ").count(), 200);
    assert!(text.contains("failed, 2 h, 24 Nov 12:00"), "{text}");
    check("outcomes", &markup);
}

#[test]
fn outcomes_of_no_job_and_of_one() {
    check("outcomes-none", &outcomes(&[], clock()));
    let one = [bar(1, Succeeded, "24T06:00", 54)];
    check("outcomes-one", &outcomes(&one, clock()));
}

#[test]
fn small_bars() {
    check("mini-bars", &mini_bars(&history(14)));
    assert_eq!(usual_seconds(&history(14)), Some(60));
    assert_eq!(usual_seconds(&[]), None);
    let mut short = history(14);
    for bar in &mut short {
        bar.end = bar.start + TimeDelta::milliseconds(999);
    }
    assert_eq!(
        usual_seconds(&short),
        None,
        "less than a second is not known"
    );
}

/// The jobs of a day, and what made them.
fn day() -> (Vec<Lane>, Vec<Cause>) {
    let lane = |name: &str, bars: Vec<Bar>| Lane {
        name: name.to_owned(),
        href: format!("/workflows/w/scans/{name}"),
        bars,
        empty_slots: Vec::new(),
    };
    let mut lanes = vec![
        lane(
            "certs",
            vec![
                bar(1, Succeeded, "23T15:10", 1_200),
                bar(2, Succeeded, "23T21:10", 1_200),
                bar(3, Succeeded, "24T03:10", 1_200),
                bar(4, Succeeded, "24T09:10", 1_200),
            ],
        ),
        lane("dictionary", vec![bar(5, Succeeded, "24T11:30", 1_800)]),
        lane(
            "hosts",
            vec![
                bar(10, Succeeded, "23T21:34", 2_880),
                bar(11, Succeeded, "24T02:06", 2_000),
                bar(12, Succeeded, "24T03:36", 2_880),
                bar(13, Succeeded, "24T12:06", 3_200),
            ],
        ),
        lane(
            "probe",
            vec![
                bar(20, Succeeded, "23T22:25", 7_560),
                bar(21, Failed, "24T04:27", 6_120),
                bar(22, Running, "24T13:03", 3_900),
            ],
        ),
        lane("screenshots", vec![bar(30, Succeeded, "24T00:34", 3_240)]),
        lane(
            "report-of-what-is-new-since-yesterday",
            vec![
                bar(40, Failed, "23T19:55", 1_080),
                bar(41, Cancelled, "24T07:57", 1_440),
                bar(42, Scheduled, "24T13:50", 1_020),
            ],
        ),
        lane("expand", vec![bar(50, Succeeded, "24T00:34", 5_040)]),
    ];
    lanes[5].empty_slots = vec![at("24T04:55"), at("20T04:55")];
    let pairs = [
        (2, 10),
        (10, 20),
        (20, 30),
        (20, 50),
        (50, 11),
        (3, 12),
        (12, 21),
        (5, 13),
        (13, 22),
        (99, 22),
    ];
    let cause = |&(cause, effect): &(u128, u128)| Cause {
        cause: Uuid::from_u128(cause),
        effect: Uuid::from_u128(effect),
    };
    (lanes, pairs.iter().map(cause).collect())
}

#[test]
fn lanes_of_a_day() {
    let (shown, causes) = day();
    let window = Window::before(clock().now, TimeDelta::hours(24));
    check("lanes-day", &lanes(&shown, &causes, window, clock()));
}

#[test]
fn lanes_of_a_week_that_is_not_over() {
    let (shown, causes) = day();
    let window = Window {
        from: at("16T23:00"),
        until: at("25T23:00"),
    };
    check("lanes-week", &lanes(&shown, &causes, window, clock()));
    check("lanes-none", &lanes(&[], &[], window, clock()));
}

#[test]
fn older_jobs_of_a_busy_lane_are_counted() {
    let busy = Lane {
        name: "poll".to_owned(),
        href: "/workflows/w/scans/poll".to_owned(),
        bars: history(900),
        empty_slots: Vec::new(),
    };
    let window = Window::before(at("24T21:00"), TimeDelta::hours(24));
    let markup = lanes(&[busy], &[], window, clock());
    let text = markup.clone().into_string();
    assert_eq!(text.matches("class=\"j ").count(), 500);
    assert!(text.contains("900 jobs in 1 lane, 69 failed"), "{text}");
    check("lanes-busy", &markup);
}

#[test]
fn moments_at_the_ends_of_the_calendar_are_drawn() {
    let mut odd = bar(1, Failed, "24T06:00", 0);
    odd.start = DateTime::<Utc>::MAX_UTC;
    odd.end = DateTime::<Utc>::MIN_UTC;
    let mut long = odd;
    (long.start, long.end) = (odd.end, odd.start);
    let lane = Lane {
        bars: vec![odd, long],
        empty_slots: vec![odd.start, odd.end],
        ..Lane::default()
    };
    for window in [
        Window::before(DateTime::<Utc>::MIN_UTC, TimeDelta::MAX),
        Window::before(DateTime::<Utc>::MAX_UTC, TimeDelta::MAX),
    ] {
        let _ = lanes(std::slice::from_ref(&lane), &[], window, clock());
    }
    let _ = (outcomes(&[odd, long], clock()), mini_bars(&[odd, long]));
}

#[test]
fn causes_come_from_the_ledger() {
    let (cause, effect) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let record = |cause, outcome| LedgerRecord {
        at: clock().now,
        cause,
        evaluation: None,
        outcome,
    };
    let success = LedgerCause::Success {
        scan: "hosts".to_owned(),
        job: cause,
    };
    let records = [
        record(success.clone(), LedgerOutcome::Made { job: effect }),
        record(
            success,
            LedgerOutcome::NotMade {
                code: "false".to_owned(),
                message: "the expression is false".to_owned(),
            },
        ),
        record(
            LedgerCause::Claim { job: cause },
            LedgerOutcome::Made { job: effect },
        ),
    ];
    assert_eq!(causes(&records), [Cause { cause, effect }]);
}

#[test]
fn progress_of_a_running_job() {
    let since = at("24T14:03").timestamp_millis();
    check("progress", &progress(since, 52, Some(104)));
    check("progress-over", &progress(since, 252, Some(104)));
    check("progress-unknown", &progress(since, 252, None));
    let _ = progress(i64::MIN, i64::MAX, Some(i64::MAX));
    let _ = progress(i64::MIN, i64::MIN, Some(i64::MIN));
}

#[test]
fn slots_of_a_runner() {
    check("slots", &slots(2, 3));
    check("slots-none", &slots(0, 0));
    check("slots-many", &slots(30, 120));
    let _ = slots(usize::MAX, usize::MAX);
}

fn workflow() -> (Vec<Node>, Vec<Edge>) {
    let node = |name: &str, line: &str, state, trigger, bars| Node {
        name: name.to_owned(),
        href: format!("/workflows/w/scans/{name}"),
        lines: vec![line.to_owned()],
        state,
        is_suspended: name == "certs",
        trigger,
        history: history(bars),
    };
    let nodes = vec![
        node(
            "certs",
            "in 2 h 48 min",
            Some(Succeeded),
            Some(Trigger::Cron),
            9,
        ),
        node(
            "dictionary",
            "by hand",
            Some(Succeeded),
            Some(Trigger::Dispatch),
            12,
        ),
        node(
            "hosts",
            "6 min ago",
            Some(Succeeded),
            Some(Trigger::Expr),
            9,
        ),
        node(
            "probe",
            "4 min, step 3 of 4",
            Some(Running),
            Some(Trigger::Expr),
            9,
        ),
        node(
            "screenshots",
            "waits for probe",
            Some(Succeeded),
            Some(Trigger::Expr),
            9,
        ),
        node(
            "report",
            "06:00 tomorrow",
            Some(Failed),
            Some(Trigger::Cron),
            9,
        ),
        node(
            "expand",
            "yesterday 18:10, a line that is too long",
            Some(Succeeded),
            Some(Trigger::Expr),
            9,
        ),
        node(
            "a-name-that-is-longer-than-the-widest-node-can-be",
            "alone",
            Some(Skipped),
            None,
            3,
        ),
        node("never", "never ran", None, Some(Trigger::Dispatch), 0),
    ];
    let edge = |&(from, to, how): &(&str, &str, How)| Edge {
        from: from.to_owned(),
        to: to.to_owned(),
        how,
        asks: (how == How::Starts).then(|| "has_diff".to_owned()),
    };
    let edges = [
        ("certs", "hosts", How::Starts),
        ("dictionary", "hosts", How::Starts),
        ("expand", "hosts", How::Starts),
        ("hosts", "probe", How::Starts),
        ("probe", "screenshots", How::Starts),
        ("probe", "report", How::Reads),
        ("hosts", "report", How::Reads),
        ("dictionary", "expand", How::Reads),
        ("probe", "expand", How::Starts),
        ("probe", "probe", How::Reads),
        ("never", "never", How::Reads),
    ];
    (nodes, edges.iter().map(edge).collect())
}

#[test]
fn the_graph_of_a_workflow() {
    let (nodes, edges) = workflow();
    check("graph", &draw(&nodes, &edges));
}

#[test]
fn the_neighbours_of_a_scan() {
    let (nodes, edges) = workflow();
    let (nodes, edges) = neighbours("hosts", nodes, edges);
    let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let expected = ["certs", "dictionary", "hosts", "probe", "report", "expand"];
    assert_eq!(names, expected);
    check("graph-neighbours", &draw(&nodes, &edges));
    let alone = Edge {
        from: "hosts".to_owned(),
        ..edges[0].clone()
    };
    let alone = Edge {
        to: "hosts".to_owned(),
        ..alone
    };
    assert!(has_neighbours("hosts", &edges));
    assert!(!has_neighbours("expand", &edges[..1]));
    assert!(!has_neighbours("hosts", &[alone]));
}
