//! Random suspensions and jobs. Some jobs fail and are retried.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;
use crate::decide::Complete;
use crate::job::{StepOutcome, StepStatus};
use crate::testing::{snapshot, step};
use crate::{Job, Trigger};

/// A random event of a suspended loop.
#[derive(Debug, Clone)]
enum Action {
    Suspend(u8),
    Resume(u8),
    Pass(i64),
    Pull,
    Dispatch,
    Claim,
    Complete,
    Fail,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        2 => (0..3_u8).prop_map(Action::Suspend),
        2 => (0..3_u8).prop_map(Action::Resume),
        4 => (1..90_i64).prop_map(Action::Pass),
        4 => Just(Action::Pull),
        1 => Just(Action::Dispatch),
        3 => Just(Action::Claim),
        3 => Just(Action::Complete),
        2 => Just(Action::Fail),
    ]
}

const PARTS: [Option<&str>; 3] = [None, Some("hosts"), Some("report")];

/// Any unfinished job, claimed or not.
fn some_job(scene: &Scene, is_claimed: bool) -> Option<JobId> {
    let mut jobs = scene.test.world.jobs();
    jobs.find(|job| job.state.run().is_some() == is_claimed)
        .map(|job| job.id)
}

fn complete(scene: &mut Scene, is_good: bool) {
    if let Some(job) = some_job(scene, true) {
        let token = crate::TokenHash::of(&job.to_string());
        let command = complete_all(job, token);
        let bad = || vec![step(0, StepStatus::Failed, Some(StepOutcome::Failed))];
        let steps = if is_good { command.steps } else { bad() };
        scene.test.run(Complete { steps, ..command }).unwrap();
    }
}

/// Checks that each slot and success that made a job has one record, and that retries have no record.
fn check_records(scene: &Scene) {
    let records = ["hosts", "report"].map(|scan| scene.ledger(scan)).concat();
    let made = records.iter().filter_map(|record| match record.outcome {
        Outcome::Made { job } => Some((job, &record.cause)),
        _ => None,
    });
    let slots = made.clone().filter_map(|(_, cause)| match cause {
        Cause::Slots { last, .. } => Some(*last),
        // A resumption repeats a job that the suspension cancelled.
        _ => None,
    });
    let different: BTreeSet<_> = slots.clone().collect();
    assert_eq!(different.len(), slots.count(), "a slot made two jobs");
    let jobs = scene.test.decided.iter().filter_map(|change| match change {
        Change::Job(job) => Some(job),
        _ => None,
    });
    let is_recorded = |job: &&Arc<Job>| job.retry_of.is_none() && job.trigger != Trigger::Dispatch;
    let recorded: BTreeSet<_> = jobs.filter(is_recorded).map(|job| job.id).collect();
    let made: Vec<_> = made.map(|(job, _)| job).collect();
    assert_eq!(made.len(), recorded.len());
    assert_eq!(made.into_iter().collect::<BTreeSet<_>>(), recorded);
}

fn act(scene: &mut Scene, action: &Action) {
    let before = scene.test.decided.len();
    match action {
        Action::Suspend(part) => drop(scene.suspend(PARTS[usize::from(*part)])),
        Action::Resume(part) => drop(scene.resume(PARTS[usize::from(*part)])),
        Action::Pass(minutes) => scene.pass(*minutes),
        Action::Pull => drop(scene.pull()),
        Action::Dispatch => drop(scene.dispatch()),
        Action::Claim => {
            if let Some(job) = some_job(scene, false) {
                let held = {
                    let world = &scene.test.world;
                    let job = world.job(job).unwrap();
                    world.suspension(&job.scan_key()).is_some()
                };
                let claimed = scene.test.claim(job, scene.runner);
                assert_eq!(
                    matches!(claimed, Err(Refusal::JobHeld { .. })),
                    held,
                    "{claimed:?}"
                );
            }
        }
        Action::Complete => complete(scene, true),
        Action::Fail => complete(scene, false),
    }
    let world = &scene.test.world;
    for change in &scene.test.decided[before..] {
        if let Change::Job(job) = change
            && job.state.run().is_none()
            && job.state.end().is_none()
        {
            assert!(
                world.suspension(&job.scan_key()).is_none(),
                "a suspended scan has another job: {job:?}"
            );
        }
    }
}

/// Resumes all scans and runs until no job is left.
fn finish_all(scene: &mut Scene) {
    for part in PARTS {
        scene.resume(part);
    }
    for _ in 0..200 {
        let has_pulled = scene.pull();
        let waiting = some_job(scene, false);
        if let Some(job) = waiting {
            scene.test.claim(job, scene.runner).unwrap();
        }
        let has_run = some_job(scene, true).is_some();
        complete(scene, true);
        if !has_pulled && waiting.is_none() && !has_run {
            return;
        }
    }
    panic!("jobs are still created");
}

#[test]
fn suspensions_lose_no_slot_and_no_success() {
    let config = Config {
        cases: 96,
        failure_persistence: None,
        ..Config::default()
    };
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let actions = prop::collection::vec(action(), 1..80);
    let (caught_up, passed, longest) = (Cell::new(0), Cell::new(0), Cell::new(0));
    TestRunner::new_with_rng(config, seed)
        .run(&actions, |actions| {
            let retrying = LOOP.replace("    steps", "    retry: {attempts: 2}\n    steps");
            let mut scene = Scene::new(&retrying);
            for action in &actions {
                act(&mut scene, action);
            }
            finish_all(&mut scene);
            check_records(&scene);
            let chains = scene.test.decided.iter().filter_map(|change| match change {
                Change::Job(job) => Some(job.attempt()),
                _ => None,
            });
            longest.set(longest.get().max(chains.max().unwrap_or_default()));
            let world = &scene.test.world;
            let hosts = world.head(&key(scene.workflow, "hosts"));
            let report = world.head(&key(scene.workflow, "report"));
            if let Some(hosts) = hosts {
                assert_eq!(hosts.passed_slots, None);
                // The newest slot made a job, or was due while a job was unfinished.
                let newest = at("2026-11-21T10:00:00Z");
                assert!(hosts.cron_cursor.is_none_or(|cursor| cursor >= newest));
                if let Some(success) = hosts.successes.first() {
                    let report = report.expect("the report has run");
                    assert!(
                        report.latest_claim > Some(success.order),
                        "a success is lost"
                    );
                }
            }
            if let Some(report) = report {
                assert_eq!(report.passed_successes, None);
            }
            let records = ["hosts", "report"].map(|scan| scene.ledger(scan)).concat();
            let resumed = |record: &&LedgerRecord| matches!(record.cause, Cause::Resumed { .. });
            let suspended = |record: &&LedgerRecord| {
                matches!(&record.outcome, Outcome::NotMade { reason } if reason.code() == "suspended")
            };
            caught_up.set(caught_up.get() + records.iter().filter(resumed).count());
            passed.set(passed.get() + records.iter().filter(suspended).count());
            let mut twice = World::default();
            for change in &scene.test.decided {
                twice.apply(change);
                twice.apply(change);
            }
            assert_eq!(snapshot(&twice), snapshot(world));
            Ok(())
        })
        .unwrap();
    assert!(
        caught_up.get() > 20 && passed.get() > 20 && longest.get() == 3,
        "{caught_up:?} {passed:?} {longest:?}"
    );
}
