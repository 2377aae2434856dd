//! What a policy takes, as data.

use chrono::TimeDelta;

use super::*;
use crate::StateKind;
use crate::testing::{House, NIGHTLY, key, line};

/// The jobs on each backlog as (number, state, minute of its end, bytes); `*` at the state's end protects one.
type Jobs<'a> = &'a [&'a [(u128, &'a str, i64, u64)]];

fn minute(minute: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + TimeDelta::minutes(minute)
}

fn backlogs(jobs: Jobs<'_>) -> (Stock, Vec<Backlog>) {
    let workflow = House::new().push("nightly", NIGHTLY);
    let mut stock = Stock::default();
    let backlogs = jobs.iter().enumerate().map(|(number, jobs)| {
        let mut backlog = Backlog {
            scan: key(workflow, &format!("s{number}")),
            protected: Vec::new(),
            room: 1,
            queue: VecDeque::new(),
            is_whole: true,
        };
        for (id, state, ended, bytes) in *jobs {
            let line = line(
                *id,
                StateKind::named(state.trim_end_matches('*'))
                    .and_then(StateKind::ended)
                    .unwrap(),
            );
            let mut job = FinishedJob::of(&line, 0);
            (job.finished_at, job.bytes) = (minute(*ended), *bytes);
            if state.ends_with('*') {
                backlog.protected.push(job.id);
            }
            stock.jobs += 1;
            stock.bytes += bytes;
            let end = Position {
                page: 0,
                at: *bytes,
            };
            backlog.queue.push_back(Candidate {
                job,
                end: Some(end),
            });
        }
        backlog
    });
    let backlogs = backlogs.collect();
    (stock, backlogs)
}

/// What goes, what is passed over (`*`), and what does so for a moment (`~`), at minute 100, and how it goes on.
fn check(policy: RetentionPolicy, jobs: Jobs<'_>, expected: &str, outlook: Outlook) {
    let (mut stock, mut backlogs) = backlogs(jobs);
    let choice = choose(&policy, minute(100), &mut stock, &mut backlogs, 100);
    let taken = choice.taken.iter().map(|(_, candidate, fate)| {
        let mark = match fate {
            Fate::Remove => "",
            Fate::PassOver(Stay::NewestSuccess) => "*",
            Fate::PassOver(Stay::JustEnded(_)) => "~",
        };
        format!("{}{mark}", candidate.job.id.uuid().as_u128())
    });
    assert_eq!(taken.collect::<Vec<_>>().join(" "), expected, "{policy:?}");
    assert_eq!(choice.outlook, outlook, "{policy:?}");
}

fn jobs(count: u64) -> RetentionPolicy {
    RetentionPolicy {
        jobs: Some(count),
        ..RetentionPolicy::default()
    }
}

const TWO_SCANS: Jobs<'_> = &[
    &[
        (1, "succeeded", 1, 10),
        (4, "succeeded*", 4, 10),
        (5, "succeeded*", 50, 10),
    ],
    &[
        (2, "failed", 2, 10),
        (3, "succeeded*", 3, 10),
        (6, "failed", 60, 10),
    ],
];

#[test]
fn the_oldest_of_all_scans_go_first_and_protected_ones_stay() {
    let done = Outlook::Done(None);
    check(jobs(6), TWO_SCANS, "", done);
    check(jobs(5), TWO_SCANS, "1", done);
    check(jobs(4), TWO_SCANS, "1 2", done);
    check(jobs(3), TWO_SCANS, "1 2 3* 4* 5* 6", done);
    check(jobs(0), TWO_SCANS, "1 2 3* 4* 5* 6", done);
}

#[test]
fn bytes_and_age_count_beside_the_number() {
    let bytes = RetentionPolicy {
        bytes: Some(45),
        ..RetentionPolicy::default()
    };
    check(bytes, TWO_SCANS, "1 2", Outlook::Done(None));
    let age = RetentionPolicy {
        age: Some(TimeDelta::minutes(97)),
        ..RetentionPolicy::default()
    };
    // Job 4 is the next that time takes, protected or not: that is found out then.
    check(age, TWO_SCANS, "1 2 3*", Outlook::Done(Some(minute(101))));
    let both = RetentionPolicy {
        jobs: Some(3),
        ..age
    };
    check(both, TWO_SCANS, "1 2 3* 4* 5* 6", Outlook::Done(None));
    check(
        RetentionPolicy::default(),
        TWO_SCANS,
        "",
        Outlook::Done(None),
    );
}

#[test]
fn a_job_whose_runner_may_still_talk_waits() {
    let young: Jobs<'_> = &[
        &[
            (1, "succeeded", 98, 1),
            (2, "cancelled", 99, 1),
            (3, "succeeded", 99, 1),
        ],
        &[(4, "failed", 99, 1), (5, "succeeded", 99, 1)],
    ];
    check(jobs(0), young, "1 2~ 3 4~ 5", Outlook::Done(None));
    // It is as good as gone, so nobody goes in its place.
    check(jobs(3), young, "1 2~", Outlook::Done(None));
    let many: Jobs<'_> = &[&[
        (1, "cancelled", 99, 1),
        (2, "cancelled", 99, 1),
        (3, "succeeded", 99, 1),
    ]];
    check(jobs(0), many, "1~", Outlook::Done(Some(minute(101))));
}

#[test]
fn a_job_that_ended_by_a_wrong_clock_is_as_old_as_its_neighbours() {
    let age = RetentionPolicy {
        age: Some(TimeDelta::minutes(50)),
        ..RetentionPolicy::default()
    };
    // A year ahead, and then right again.
    let ahead: Jobs<'_> = &[&[
        (1, "failed", 500_000, 1),
        (2, "failed", 10, 1),
        (3, "failed", 60, 1),
    ]];
    check(age, ahead, "1 2", Outlook::Done(Some(minute(110))));
    check(jobs(0), ahead, "1 2 3", Outlook::Done(None));
    // Nothing has ended since: then it may have ended now.
    let alone: Jobs<'_> = &[&[(1, "failed", 500_000, 1)]];
    check(age, alone, "", Outlook::Done(Some(minute(150))));
    // Made at minute 70, and ended by a clock that was behind.
    let id = (70 * 60_000_u128) << 80;
    let behind: Jobs<'_> = &[&[(id, "failed", 0, 1)]];
    check(age, behind, "", Outlook::Done(Some(minute(120))));
}

#[test]
fn a_backlog_that_is_used_up_is_filled_before_others_go_on() {
    let (mut stock, mut filled) = backlogs(TWO_SCANS);
    filled[0].is_whole = false;
    let choice = choose(&jobs(0), minute(100), &mut stock, &mut filled, 100);
    assert_eq!((choice.taken.len(), choice.outlook), (5, Outlook::More));
    let (mut stock, mut filled) = backlogs(TWO_SCANS);
    let choice = choose(&jobs(0), minute(100), &mut stock, &mut filled, 2);
    assert_eq!((choice.taken.len(), choice.outlook), (2, Outlook::More));
    assert_eq!(stock, Stock { jobs: 4, bytes: 40 });
}
