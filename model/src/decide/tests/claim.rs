//! Claims: at most one per job, and the same answer for a repeat.

use chrono::TimeDelta;
use serde_json::json;

use crate::decide::{Claim, EndJob, Evaluate, Loss, Refusal, RemoveRunner, Retire};
use crate::limits::WORKER_SESSION;
use crate::testing::{NIGHTLY, TestWorld, key};
use crate::{JobId, JobState, RunnerId, TokenHash};

fn waiting() -> (TestWorld, JobId, RunnerId) {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    let runner = test.runner("first", &[]);
    let job = test.dispatch(workflow, "probe", json!({})).unwrap();
    (test, job, runner)
}

#[test]
fn a_claim_starts_the_job_and_marks_the_head() {
    let (mut test, job, runner) = waiting();
    let token = test.claim(job, runner).unwrap();
    let record = test.world.job(job).unwrap();
    let JobState::Running { run } = &record.state else {
        panic!("{:?}", record.state);
    };
    assert_eq!((run.token, run.claimed), (token, test.order));
    assert_eq!(run.expires_at, test.now + WORKER_SESSION);
    assert_eq!(run.deadline, None);
    let head = test.world.head(&key(record.workflow.id, "probe")).unwrap();
    assert_eq!(
        (head.latest_job, head.latest_claim),
        (job, Some(test.order))
    );
    assert_eq!(test.world.running_on(runner).count(), 1);
    assert_eq!(test.world.waiting_workflows().len(), 0);
}

#[test]
fn the_timeout_of_a_scan_counts_from_the_claim() {
    let (mut test, job, runner) = waiting();
    let workflow = test.world.job(job).unwrap().workflow.id;
    let strict = test
        .dispatch(workflow, "strict", json!({"target": "x"}))
        .unwrap();
    test.pass(TimeDelta::minutes(5));
    test.claim(strict, runner).unwrap();
    let deadline = test
        .world
        .job(strict)
        .unwrap()
        .state
        .run()
        .unwrap()
        .deadline;
    assert_eq!(deadline, Some(test.now + TimeDelta::minutes(30)));
}

#[test]
fn a_repeated_claim_gets_the_same_answer_and_another_worker_is_refused() {
    let (mut test, job, runner) = waiting();
    let token = test.claim(job, runner).unwrap();
    test.pass(TimeDelta::minutes(1));
    let claim = Claim {
        job,
        runner,
        token,
        job_token: None,
        evaluate: Evaluate::CHEAP,
    };
    let (changes, repeat) = test.changes(claim.clone()).unwrap();
    assert!(changes.is_empty());
    assert_eq!(repeat.job(), test.world.job(job));

    let other = Claim {
        token: TokenHash::of("another"),
        ..claim
    };
    assert_eq!(test.run(other).map(drop), Err(Refusal::NotYourJob { job }));
}

#[test]
fn a_removed_job_cannot_be_claimed() {
    let (mut test, job, runner) = waiting();
    let unknown = JobId::FIRST;
    assert_eq!(
        test.claim(unknown, runner),
        Err(Refusal::JobOver { job: unknown })
    );
    test.run(RemoveRunner {
        runner,
        by: crate::Rights::admin(),
    })
    .unwrap();
    assert_eq!(test.claim(job, runner), Err(Refusal::NoSuchRunner));
}

#[test]
fn a_waiting_job_of_a_removed_scan_cannot_be_claimed() {
    let (mut test, job, runner) = waiting();
    let workflow = test.world.job(job).unwrap().workflow.id;
    let without = NIGHTLY.replace("probe:", "other:");
    test.push("nightly", &without);
    assert_eq!(test.claim(job, runner), Err(Refusal::JobOver { job }));

    test.push("nightly", NIGHTLY);
    test.run(Retire { workflow }).unwrap();
    assert_eq!(test.claim(job, runner), Err(Refusal::JobOver { job }));

    let end = EndJob::new(job, Loss::Retired);
    assert_eq!(test.run(end).unwrap().state.name(), "cancelled");
}

#[test]
fn a_waiting_job_runs_the_revision_of_its_creation() {
    let (mut test, job, runner) = waiting();
    let made_with = test.world.job(job).unwrap().revision.clone();
    test.push("nightly", &format!("{NIGHTLY}# changed\n"));
    let token = TokenHash::of("t");
    let claim = Claim {
        job,
        runner,
        token,
        job_token: None,
        evaluate: Evaluate::CHEAP,
    };
    let claimed = test.run(claim).unwrap();
    assert_eq!(claimed.job().unwrap().revision, made_with);
    assert!(test.world.revision(made_with.id).is_some());
}
