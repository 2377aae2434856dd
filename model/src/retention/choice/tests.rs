//! The choices of a policy, as data.

use chrono::TimeDelta;

use super::*;
use crate::{EndState, testing};

/// The jobs of each backlog as (number, minute of the end, bytes).
type Jobs<'a> = &'a [&'a [(u128, i64, u64)]];

fn minute(minute: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + TimeDelta::minutes(minute)
}

/// Checks which jobs are removed at minute 100, and when the next job is due.
fn check(policy: RetentionPolicy, jobs: Jobs<'_>, expected: &str, due: Option<i64>) {
    let mut stock = Stock::default();
    let mut backlogs: Vec<Backlog> = Vec::new();
    for jobs in jobs {
        let backlog = jobs.iter().map(|(number, ended, bytes)| {
            let (jobs, bytes) = (1, *bytes);
            stock.add(Stock { jobs, bytes });
            let line = testing::line(*number, EndState::Failed);
            let mut job = FinishedJob::of(&line, 0);
            job.finished_at = minute(*ended);
            Candidate { job, end: None }
        });
        backlogs.push(backlog.collect());
    }
    let mut taken = Vec::new();
    let left = loop {
        match next(&policy, minute(100), stock, &backlogs) {
            Next::Job(number) => {
                let job = backlogs[number].pop_front().unwrap().job;
                let id = job.id.uuid().as_u128();
                let one = jobs.iter().copied().flatten().find(|it| it.0 == id);
                let (jobs, bytes) = (1, one.unwrap().2);
                stock.subtract(Stock { jobs, bytes });
                taken.push(id.to_string());
            }
            Next::Nothing(due) => break due,
        }
    };
    assert_eq!(
        (taken.join(" "), left),
        (expected.to_owned(), due.map(minute)),
        "{policy:?}"
    );
}

fn jobs(count: u64) -> RetentionPolicy {
    RetentionPolicy {
        jobs: Some(count),
        ..RetentionPolicy::default()
    }
}

fn age(minutes: i64) -> RetentionPolicy {
    RetentionPolicy {
        age: Some(TimeDelta::minutes(minutes)),
        ..RetentionPolicy::default()
    }
}

const TWO_SCANS: Jobs<'_> = &[
    &[(1, 1, 10), (4, 4, 10), (5, 50, 10)],
    &[(2, 2, 10), (3, 3, 10), (6, 60, 10)],
];

#[test]
fn the_oldest_jobs_of_all_scans_are_removed_first() {
    check(jobs(6), TWO_SCANS, "", None);
    check(jobs(5), TWO_SCANS, "1", None);
    check(jobs(3), TWO_SCANS, "1 2 3", None);
    check(jobs(0), TWO_SCANS, "1 2 3 4 5 6", None);
    let bytes = RetentionPolicy {
        bytes: Some(45),
        ..RetentionPolicy::default()
    };
    check(bytes, TWO_SCANS, "1 2", None);
    check(age(97), TWO_SCANS, "1 2 3", Some(101));
    let both = RetentionPolicy {
        jobs: Some(2),
        ..age(97)
    };
    check(both, TWO_SCANS, "1 2 3 4", Some(147));
    check(RetentionPolicy::default(), TWO_SCANS, "", None);
}

#[test]
fn a_job_that_ended_while_the_clock_was_wrong_is_as_old_as_its_neighbours() {
    // The clock was a year ahead, and is correct again.
    let ahead: Jobs<'_> = &[&[(1, 500_000, 1), (2, 10, 1), (3, 60, 1)]];
    check(age(50), ahead, "1 2", Some(110));
    check(jobs(0), ahead, "1 2 3", None);
    // No other job has ended since, so the job may have ended just now.
    let alone: Jobs<'_> = &[&[(1, 500_000, 1)]];
    check(age(50), alone, "", Some(150));
    // Created at minute 70, and ended while the clock was behind.
    let id = (70 * 60_000_u128) << 80;
    let behind: Jobs<'_> = &[&[(id, 0, 1)]];
    check(age(50), behind, "", Some(120));
}
