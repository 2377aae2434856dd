//! Dispatches: inputs, refusals, repeats.

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::json;

use crate::decide::{Cancel, Dispatch, DropSource, Refusal, Retire, check_dispatch};
use crate::limits::{
    IDEMPOTENCY, IDEMPOTENCY_SWEEP, SCHEDULED_JOBS_PER_SCAN, UNFINISHED_JOBS,
    UNFINISHED_JOBS_PER_PROJECT, UNFINISHED_JOBS_PER_SHARE,
};
use crate::moment::SeededEntropy;
use crate::testing::{NIGHTLY, TestWorld, key, source};
use crate::{
    Actor, Change, IdempotencyKey, Inputs, Job, JobId, JobState, ProjectId, TokenId, Trigger,
    UserId, WorkflowId,
};

fn with_key(test: &TestWorld, workflow: WorkflowId, key: &str, body: &str) -> Dispatch {
    let token = TokenId::from_uuid(uuid::Uuid::nil());
    Dispatch {
        idempotency: Some(IdempotencyKey::new(
            token.uuid(),
            "/dispatch",
            key,
            body.as_bytes(),
        )),
        ..test.dispatch_of(workflow, "probe", json!({})).unwrap()
    }
}

#[test]
fn a_waiting_job_has_its_inputs_with_defaults() {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    let id = test
        .dispatch(workflow, "probe", json!({"target": "x"}))
        .unwrap();
    let job = test.world.job(id).unwrap();
    assert_eq!(
        (job.trigger, &job.state),
        (Trigger::Dispatch, &JobState::Scheduled)
    );
    let Inputs::Inline(inputs) = &job.inputs else {
        panic!("small inputs are stored in the record");
    };
    assert_eq!(json!(inputs), json!({"target": "x", "deep": false}));
    assert_eq!(id.moment(), test.now);
    assert!(test.world.head(&key(workflow, "probe")).is_none());
}

#[test]
fn all_invalid_inputs_are_reported() {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    let refusal = test.dispatch(workflow, "strict", json!({"tarket": 1}));
    let Err(Refusal::InvalidInputs { scan, errors }) = refusal else {
        panic!("{refusal:?}");
    };
    let names: Vec<&str> = errors.iter().map(|error| error.input.as_str()).collect();
    assert_eq!((scan.as_str(), names), ("strict", vec!["target", "tarket"]));
}

#[test]
fn a_dispatch_of_an_unknown_or_removed_scan_is_refused() {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    let other = WorkflowId::from_uuid(uuid::Uuid::nil());
    let given = Default::default();
    let check = |test: &TestWorld, workflow, scan| {
        check_dispatch(&test.world, workflow, scan, &given).map(|checked| checked.scan)
    };
    assert!(matches!(
        check(&test, other, "probe"),
        Err(Refusal::NoSuchWorkflow { .. })
    ));
    assert_eq!(
        check(&test, workflow, "prob"),
        Err(Refusal::NoSuchScan {
            workflow: "nightly".to_owned(),
            scan: "prob".to_owned(),
            known: vec!["probe".to_owned(), "strict".to_owned()],
        })
    );
    let late = test.dispatch_of(workflow, "probe", json!({})).unwrap();
    test.run(Retire { workflow }).unwrap();
    let retired = Refusal::Retired {
        workflow: "nightly".to_owned(),
    };
    assert_eq!(check(&test, workflow, "probe"), Err(retired.clone()));
    assert_eq!(test.run(late), Err(retired));

    test.run(DropSource { name: source() }).unwrap();
    assert_eq!(
        check(&test, workflow, "probe"),
        Err(Refusal::SourceDropped {
            workflow: "nightly".to_owned(),
            source_name: "recon".to_owned(),
        })
    );
}

#[test]
fn inputs_checked_against_an_older_revision_are_refused() {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    let late = test.dispatch_of(workflow, "probe", json!({})).unwrap();
    test.push("nightly", &format!("{NIGHTLY}# changed\n"));
    assert!(matches!(
        test.run(late),
        Err(Refusal::RevisionChanged { .. })
    ));
}

#[test]
fn a_repeat_gets_the_job_of_the_first_request_despite_later_changes() {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    let first = with_key(&test, workflow, "k", "{}");
    let job = test.run(first.clone()).unwrap();
    let (changes, repeat) = test.changes(first.clone()).unwrap();
    assert_eq!((changes.len(), repeat), (0, job));

    test.run(Retire { workflow }).unwrap();
    test.pass(IDEMPOTENCY - TimeDelta::seconds(1));
    assert_eq!(test.run(first), Ok(job));
}

#[test]
fn a_key_cannot_be_used_for_another_request() {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    let first = with_key(&test, workflow, "k", "{}");
    test.run(first).unwrap();
    let other = with_key(&test, workflow, "k", "{\"deep\":true}");
    assert_eq!(test.run(other), Err(Refusal::IdempotencyMismatch));
}

#[test]
fn a_key_expires_after_a_day_and_can_be_used_again() {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    let command = with_key(&test, workflow, "k", "{}");
    let first = test.run(command.clone()).unwrap();
    test.pass(IDEMPOTENCY);
    let second = test.run(command.clone()).unwrap();
    assert_ne!(first, second);

    // A third request removes expired keys, but must not remove the second use of the key.
    test.pass(TimeDelta::hours(1));
    let third = with_key(&test, workflow, "other", "{}");
    test.run(third).unwrap();
    assert_eq!(test.run(command), Ok(second));
}

#[test]
fn expired_requests_do_not_pile_up() {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    for number in 0..10 {
        let command = with_key(&test, workflow, &format!("old {number}"), "{}");
        test.run(command).unwrap();
    }
    test.pass(IDEMPOTENCY);
    let left = |test: &TestWorld| test.world.idempotency_over(test.now).count();
    for round in 1..=5 {
        let command = with_key(&test, workflow, &format!("new {round}"), "{}");
        test.run(command).unwrap();
        assert_eq!(left(&test), 10 - round * IDEMPOTENCY_SWEEP);
    }
}

#[test]
fn ids_increase_even_if_the_clock_moves_back() {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    let mut latest = JobId::FIRST;
    for _ in 0..50 {
        let job = test.dispatch(workflow, "probe", json!({})).unwrap();
        assert!(job > latest);
        latest = job;
        test.pass(TimeDelta::seconds(-7));
    }
}

#[test]
fn the_number_of_jobs_is_bounded_per_scan_token_project_and_in_total() {
    let mut test = TestWorld::new();
    let workflow = test.push("nightly", NIGHTLY);
    let first = test.dispatch(workflow, "probe", json!({})).unwrap();
    let record = Job::clone(test.world.job(first).unwrap());
    // The limits count all jobs of the world, so the test adds jobs directly.
    let fill = |test: &mut TestWorld, like: &Job, until: usize| {
        while test.world.unfinished_jobs() < until {
            let id = JobId::next(test.world.latest_job(), test.now, &mut test.entropy);
            let job = Job { id, ..like.clone() };
            test.world.apply(&Change::Job(Arc::new(job)));
        }
    };
    fill(&mut test, &record, SCHEDULED_JOBS_PER_SCAN - 1);
    let last = test.dispatch(workflow, "probe", json!({})).unwrap();
    let refusal = test.dispatch(workflow, "probe", json!({}));
    let Err(Refusal::TooManyJobs { jobs, .. }) = refusal else {
        panic!("{refusal:?}");
    };
    assert_eq!(jobs, SCHEDULED_JOBS_PER_SCAN);
    test.dispatch(workflow, "strict", json!({"target": "x"}))
        .unwrap();
    let actor = Actor::Daemon;
    test.run(Cancel { job: last, actor }).unwrap();
    test.dispatch(workflow, "probe", json!({})).unwrap();

    let mut elsewhere = record.clone();
    elsewhere.workflow.id = WorkflowId::from_uuid(uuid::Uuid::nil());
    let token = |number| Actor::Token {
        id: TokenId::random(&mut SeededEntropy::new(7)),
        name: "t".to_owned(),
        user: UserId::from_uuid(uuid::Uuid::from_u128(number)),
    };
    let dispatch = |test: &mut TestWorld, number| {
        let command = test.dispatch_of(workflow, "strict", json!({"target": "x"}));
        let actor = token(number);
        match test.run(Dispatch { actor, ..command? }) {
            Err(Refusal::TooManyJobs { jobs, state, .. }) => Ok(Some((jobs, state))),
            dispatched => dispatched.map(|_| None),
        }
    };
    let unfinished = test.world.unfinished_jobs();
    elsewhere.actor = token(1);
    fill(
        &mut test,
        &elsewhere,
        unfinished + UNFINISHED_JOBS_PER_SHARE,
    );
    let of_token = "dispatched by this user and unfinished";
    assert_eq!(
        dispatch(&mut test, 1),
        Ok(Some((UNFINISHED_JOBS_PER_SHARE, of_token)))
    );
    assert_eq!(dispatch(&mut test, 2), Ok(None));

    elsewhere.actor = Actor::Daemon;
    fill(&mut test, &elsewhere, UNFINISHED_JOBS_PER_PROJECT);
    let of_project = "unfinished in this project";
    assert_eq!(
        dispatch(&mut test, 2),
        Ok(Some((UNFINISHED_JOBS_PER_PROJECT, of_project)))
    );

    // Move some of these jobs to another project. They no longer count for this project.
    elsewhere.project = ProjectId::from_uuid(uuid::Uuid::nil());
    let some: Vec<JobId> = test.world.jobs().take(9).map(|job| job.id).collect();
    for id in some {
        let job = Job {
            id,
            ..elsewhere.clone()
        };
        test.world.apply(&Change::Job(Arc::new(job)));
    }
    assert_eq!(dispatch(&mut test, 2), Ok(None));
    fill(&mut test, &elsewhere, UNFINISHED_JOBS);
    let of_all = "unfinished in all scans together";
    assert_eq!(dispatch(&mut test, 2), Ok(Some((UNFINISHED_JOBS, of_all))));
}
