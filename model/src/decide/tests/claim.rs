//! Claims: at most one per job, and the same answer for a repeat.

use chrono::TimeDelta;
use serde_json::json;

use crate::decide::{Claim, EndJob, Evaluate, Loss, Refusal, RemoveRunner, Retire};
use crate::limits::WORKER_SESSION;
use crate::testing::{House, NIGHTLY, key};
use crate::{JobId, JobState, RunnerId, TokenHash};

fn waiting() -> (House, JobId, RunnerId) {
    let mut house = House::new();
    let workflow = house.push("nightly", NIGHTLY);
    let runner = house.runner("first", &[]);
    let job = house.dispatch(workflow, "probe", json!({})).unwrap();
    (house, job, runner)
}

#[test]
fn a_claim_starts_the_job_and_marks_the_head() {
    let (mut house, job, runner) = waiting();
    let token = house.claim(job, runner).unwrap();
    let record = house.world.job(job).unwrap();
    let JobState::Running { run } = &record.state else {
        panic!("{:?}", record.state);
    };
    assert_eq!((run.token, run.claimed), (token, house.order));
    assert_eq!(run.expires_at, house.now + WORKER_SESSION);
    assert_eq!(run.deadline, None);
    let head = house.world.head(&key(record.workflow.id, "probe")).unwrap();
    assert_eq!(
        (head.latest_job, head.latest_claim),
        (job, Some(house.order))
    );
    assert_eq!(house.world.running_on(runner).count(), 1);
    assert_eq!(house.world.waiting_workflows().len(), 0);
}

#[test]
fn the_timeout_of_a_scan_counts_from_the_claim() {
    let (mut house, job, runner) = waiting();
    let workflow = house.world.job(job).unwrap().workflow.id;
    let strict = house
        .dispatch(workflow, "strict", json!({"target": "x"}))
        .unwrap();
    house.pass(TimeDelta::minutes(5));
    house.claim(strict, runner).unwrap();
    let deadline = house
        .world
        .job(strict)
        .unwrap()
        .state
        .run()
        .unwrap()
        .deadline;
    assert_eq!(deadline, Some(house.now + TimeDelta::minutes(30)));
}

#[test]
fn a_repeat_gets_the_same_answer_and_another_worker_none() {
    let (mut house, job, runner) = waiting();
    let token = house.claim(job, runner).unwrap();
    house.pass(TimeDelta::minutes(1));
    let claim = Claim {
        job,
        runner,
        token,
        evaluate: Evaluate::CHEAP,
    };
    let (changes, repeat) = house.changes(claim.clone()).unwrap();
    assert!(changes.is_empty());
    assert_eq!(repeat.job(), house.world.job(job));

    let other = Claim {
        token: TokenHash::of("another"),
        ..claim
    };
    assert_eq!(house.run(other).map(drop), Err(Refusal::NotYourJob { job }));
}

#[test]
fn a_removed_job_cannot_be_claimed() {
    let (mut house, job, runner) = waiting();
    let unknown = JobId::FIRST;
    assert_eq!(
        house.claim(unknown, runner),
        Err(Refusal::JobOver { job: unknown })
    );
    house.run(RemoveRunner { runner }).unwrap();
    assert_eq!(house.claim(job, runner), Err(Refusal::NoSuchRunner));
}

#[test]
fn a_job_whose_scan_is_gone_is_not_claimed_while_it_waits_to_be_cancelled() {
    let (mut house, job, runner) = waiting();
    let workflow = house.world.job(job).unwrap().workflow.id;
    let without = NIGHTLY.replace("probe:", "other:");
    house.push("nightly", &without);
    assert_eq!(house.claim(job, runner), Err(Refusal::JobOver { job }));

    house.push("nightly", NIGHTLY);
    house.run(Retire { workflow }).unwrap();
    assert_eq!(house.claim(job, runner), Err(Refusal::JobOver { job }));

    let end = EndJob::new(job, Loss::Retired);
    assert_eq!(house.run(end).unwrap().state.name(), "cancelled");
}

#[test]
fn a_waiting_job_runs_the_revision_it_was_made_with() {
    let (mut house, job, runner) = waiting();
    let made_with = house.world.job(job).unwrap().revision.clone();
    house.push("nightly", &format!("{NIGHTLY}# changed\n"));
    let token = TokenHash::of("t");
    let claim = Claim {
        job,
        runner,
        token,
        evaluate: Evaluate::CHEAP,
    };
    let claimed = house.run(claim).unwrap();
    assert_eq!(claimed.job().unwrap().revision, made_with);
    assert!(house.world.revision(made_with.id).is_some());
}
