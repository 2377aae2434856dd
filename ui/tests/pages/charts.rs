//! Charts and graphs. The test of golden files compares them with their files.

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

/// The names of all drawings, and the drawings.
pub(crate) fn drawings() -> Vec<(&'static str, Markup)> {
    let (shown, causes) = day();
    let last_day = Window::before(clock().now, TimeDelta::hours(24));
    let unfinished_week = Window {
        from: at("16T23:00"),
        until: at("25T23:00"),
    };
    let since = at("24T14:03").timestamp_millis();
    let (nodes, edges) = workflow();
    let (near, between) = neighbours("hosts", nodes.clone(), edges.clone());
    vec![
        ("graph", draw(&nodes, &edges)),
        ("graph-neighbours", draw(&near, &between)),
        ("lanes-day", lanes(&shown, &causes, last_day, clock())),
        (
            "lanes-week",
            lanes(&shown, &causes, unfinished_week, clock()),
        ),
        ("lanes-none", lanes(&[], &[], unfinished_week, clock())),
        ("mini-bars", mini_bars(&history(14))),
        ("outcomes", outcomes(&many_jobs(40), clock())),
        ("outcomes-none", outcomes(&[], clock())),
        (
            "outcomes-one",
            outcomes(&[bar(1, Succeeded, "24T06:00", 54)], clock()),
        ),
        ("progress", progress(since, 52, Some(104))),
        ("progress-over", progress(since, 252, Some(104))),
        ("progress-unknown", progress(since, 252, None)),
        ("slots", slots(2, 3)),
        ("slots-none", slots(0, 0)),
        ("slots-many", slots(30, 120)),
    ]
}

#[test]
fn no_drawing_has_styles_or_scripts() {
    for (name, drawing) in drawings() {
        for forbidden in ["style=", "<script", "javascript:"] {
            assert!(!drawing.0.contains(forbidden), "{name} has {forbidden}");
        }
    }
}

fn at(time: &str) -> DateTime<Utc> {
    format!("2025-11-{time}:00Z").parse().unwrap()
}

/// Monday, 15:07 in the offset of the reader.
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

fn many_jobs(count: u32) -> Vec<Bar> {
    let mut bars = history(count);
    bars.push(bar(900, Failed, "24T11:00", 7_200));
    bars.push(bar(901, Running, "24T14:06", 67));
    bars.push(bar(902, Scheduled, "24T14:07", 0));
    bars
}

#[test]
fn outcomes_show_the_newest_200_jobs() {
    let text = outcomes(&many_jobs(230), clock()).into_string();
    assert_eq!(text.matches("<a ").count(), 200);
    assert!(text.contains("failed, 2 h, 24 Nov 12:00"), "{text}");
}

#[test]
fn the_usual_time_is_the_median_of_the_successes() {
    assert_eq!(usual_seconds(&history(14)), Some(60));
    assert_eq!(usual_seconds(&[]), None);
    let mut short = history(14);
    for bar in &mut short {
        bar.end = bar.start + TimeDelta::milliseconds(999);
    }
    assert_eq!(usual_seconds(&short), None, "less than a second");
}

/// The jobs of a day, and their causes.
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
fn older_jobs_of_a_busy_lane_are_counted() {
    let busy = Lane {
        name: "poll".to_owned(),
        href: "/workflows/w/scans/poll".to_owned(),
        bars: history(900),
        empty_slots: Vec::new(),
    };
    let window = Window::before(at("24T21:00"), TimeDelta::hours(24));
    let text = lanes(&[busy], &[], window, clock()).into_string();
    assert_eq!(text.matches("class=\"j ").count(), 500);
    assert!(text.contains("900 jobs in 1 lane, 69 failed"), "{text}");
    // 400 older jobs are in boxes, each with the number of its jobs.
    let boxes = text.split("<g class=\"count\">").skip(1);
    let counted = boxes.map(|one| one.split(" older job").next().unwrap());
    let counted = counted.map(|one| one.rsplit(' ').next().unwrap().parse::<u32>().unwrap());
    assert_eq!(counted.sum::<u32>(), 400, "{text}");
}

#[test]
fn extreme_times_are_drawn() {
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
fn extreme_progress_and_slots_are_drawn() {
    for (since, elapsed, usual) in [
        (i64::MIN, i64::MAX, Some(i64::MAX)),
        (i64::MIN, i64::MIN, Some(i64::MIN)),
    ] {
        assert!(!progress(since, elapsed, usual).0.is_empty());
    }
    assert!(!slots(usize::MAX, usize::MAX).0.is_empty());
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
fn the_neighbours_of_a_scan() {
    let (nodes, edges) = workflow();
    let (nodes, edges) = neighbours("hosts", nodes, edges);
    let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let expected = ["certs", "dictionary", "hosts", "probe", "report", "expand"];
    assert_eq!(names, expected);
    let to_itself = Edge {
        from: "hosts".to_owned(),
        to: "hosts".to_owned(),
        ..edges[0].clone()
    };
    assert!(has_neighbours("hosts", &edges));
    assert!(!has_neighbours("expand", &edges[..1]));
    assert!(!has_neighbours("hosts", &[to_itself]));
}
