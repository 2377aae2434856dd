//! Expressions that use failures.

use super::*;
use crate::decide::{Complete, EndJob, Loss, Resume, Suspend};
use crate::job::{StepOutcome, StepStatus};
use crate::testing::step;

const TEXT: &str = "
scans:
  backup:
    on: {dispatch: {}}
    steps: [{run: x}]
  patient:
    on: {dispatch: {}}
    retry: {attempts: 2}
    steps: [{run: x}]
  newest:
    on: {cron: '0 * * * *'}
    overlap: replace
    retry: {attempts: 2}
    steps: [{run: x}]
  alarm:
    on: {expr: 'scans.backup.has_failed() || scans.patient.has_failed() || scans.newest.has_failed()', dispatch: {}}
    steps: [{run: x}]
  bystander:
    on: {expr: \"scans.backup.exists(job, job.state == 'failed')\"}
    steps: [{run: x}]
";

impl Scene {
    fn backup(&mut self) -> JobId {
        self.dispatch("backup")
    }

    fn fail(&mut self, job: JobId) {
        let token = self.test.claim(job, self.runner).unwrap();
        let steps = vec![step(0, StepStatus::Failed, Some(StepOutcome::Failed))];
        let failed = Complete {
            steps,
            ..complete_all(job, token)
        };
        self.test.run(failed).unwrap();
    }

    fn cancel(&mut self, job: JobId) {
        let actor = Actor::Daemon;
        self.test.run(Cancel { job, actor }).unwrap();
    }

    /// The causes for which the expression of a scan was evaluated, and whether a job was created.
    fn checks(&self, scan: &str) -> Vec<(Cause, bool)> {
        let made = |outcome| matches!(outcome, Outcome::Made { .. });
        let records = self.ledger(scan).into_iter();
        records
            .map(|record| (record.cause, made(record.outcome)))
            .collect()
    }
}

fn failure(scan: &str, job: JobId) -> Cause {
    let scan = scan.to_owned();
    Cause::Failure { scan, job }
}

fn success(scan: &str, job: JobId) -> Cause {
    let scan = scan.to_owned();
    Cause::Success { scan, job }
}

#[test]
fn a_failure_starts_scans_that_use_failures_and_a_later_success_does_not() {
    let mut scene = Scene::new(TEXT);
    let failed = scene.backup();
    scene.fail(failed);
    assert_eq!(scene.checks("alarm"), [(failure("backup", failed), true)]);
    let read = scene.ledger("alarm").remove(0).evaluation.unwrap();
    assert!(read.scans["backup"].failed && !read.scans["patient"].failed);
    assert!(
        scene.checks("bystander").is_empty(),
        "only expressions that use failures are evaluated"
    );
    let [alarm] = scene.jobs("alarm").try_into().unwrap();
    scene.succeed(alarm);
    let well = scene.backup();
    scene.succeed(well);
    assert_eq!(
        scene.checks("alarm").last(),
        Some(&(success("backup", well), false))
    );
    assert_eq!(scene.checks("bystander"), [(success("backup", well), true)]);
    let again = scene.backup();
    scene.fail(again);
    assert_eq!(
        scene.checks("alarm").last(),
        Some(&(failure("backup", again), true))
    );
}

#[test]
fn a_chain_of_retries_counts_as_one_failure_after_the_last_attempt() {
    let mut scene = Scene::new(TEXT);
    scene.dispatch("patient");
    for _ in 0..2 {
        let [attempt] = scene.jobs("patient").try_into().unwrap();
        scene.fail(attempt);
        assert!(scene.checks("alarm").is_empty());
        scene.pass(60);
    }
    let [last] = scene.jobs("patient").try_into().unwrap();
    scene.fail(last);
    assert_eq!(scene.checks("alarm"), [(failure("patient", last), true)]);
}

#[test]
fn a_lost_job_counts_as_failed_and_a_cancelled_job_does_not() {
    let mut scene = Scene::new(TEXT);
    let cancelled = scene.backup();
    scene.cancel(cancelled);
    assert!(scene.checks("alarm").is_empty());
    let lost = scene.backup();
    scene.test.claim(lost, scene.runner).unwrap();
    scene.test.run(EndJob::new(lost, Loss::RunnerLost)).unwrap();
    assert_eq!(scene.checks("alarm"), [(failure("backup", lost), true)]);
}

#[test]
fn a_success_after_the_failure_and_before_the_claim_skips_the_job() {
    let mut scene = Scene::new(TEXT);
    let failed = scene.backup();
    scene.fail(failed);
    let [waiting] = scene.jobs("alarm").try_into().unwrap();
    let well = scene.backup();
    scene.succeed(well);
    let claim = crate::decide::Claim {
        job: waiting,
        runner: scene.runner,
        token: crate::TokenHash::of("t"),
        job_token: None,
        evaluate: Evaluate::CHEAP,
    };
    let outcome = scene.test.run(claim).unwrap();
    assert_eq!(outcome.job().unwrap().state.name(), "skipped");
    assert!(scene.test.world.unseen().is_empty());
}

#[test]
fn a_failure_while_the_scan_is_busy_is_evaluated_when_its_job_ends() {
    let mut scene = Scene::new(TEXT);
    let first = scene.backup();
    scene.fail(first);
    let [alarm] = scene.jobs("alarm").try_into().unwrap();
    let token = scene.test.claim(alarm, scene.runner).unwrap();
    let second = scene.backup();
    scene.fail(second);
    assert_eq!(scene.jobs("alarm"), [alarm]);
    scene.test.run(complete_all(alarm, token)).unwrap();
    assert_eq!(
        scene.checks("alarm").last(),
        Some(&(failure("backup", second), true))
    );
}

#[test]
fn a_failure_is_considered_after_a_full_disk() {
    let mut scene = Scene::new(TEXT);
    let failed = scene.backup();
    scene.test.may_make_jobs = false;
    scene.fail(failed);
    assert!(scene.checks("alarm").is_empty());
    scene.test.may_make_jobs = true;
    let unseen = scene.test.world.unseen();
    assert_eq!(unseen, [key(scene.workflow, "alarm")]);
    assert!(scene.consider("alarm").is_some());
    assert_eq!(scene.checks("alarm"), [(failure("backup", failed), true)]);
    assert!(scene.test.world.unseen().is_empty());
}

#[test]
fn a_failure_while_the_scan_is_suspended_is_evaluated_again_at_the_resumption() {
    let mut scene = Scene::new(TEXT);
    let (workflow, scan) = (scene.workflow, Some("alarm".to_owned()));
    let suspend = Suspend {
        workflow,
        scan: scan.clone(),
        reason: "too loud".to_owned(),
        actor: Actor::Daemon,
    };
    scene.test.run(suspend).unwrap();
    let failed = scene.backup();
    scene.fail(failed);
    assert_eq!(scene.checks("alarm"), [(failure("backup", failed), false)]);
    let resume = Resume {
        workflow,
        scan,
        reason: None,
        actor: Actor::Daemon,
    };
    scene.test.run(resume).unwrap();
    assert!(scene.consider("alarm").is_some());
}

/// After a restart, the order of a failure must be known, so that it is not used twice.
#[test]
fn the_order_of_a_failure_is_known_after_a_restart() {
    let mut scene = Scene::new(TEXT);
    let failed = scene.backup();
    scene.fail(failed);
    let head = scene.test.world.head(&key(scene.workflow, "backup"));
    let mut world = crate::World::default();
    world.apply(&Change::Head(head.unwrap().clone()));
    assert_eq!(world.latest_order(), scene.test.order);
}

#[test]
fn a_failure_counts_when_its_retry_is_cancelled() {
    let mut scene = Scene::new(TEXT);
    let failed = scene.dispatch("patient");
    scene.fail(failed);
    assert_eq!(scene.checks("alarm"), []);
    let [retry] = scene.jobs("patient").try_into().unwrap();
    scene.cancel(retry);
    assert_eq!(scene.checks("alarm"), [(failure("patient", failed), true)]);
}

/// Otherwise the failure of a scan whose causes are more frequent than its retries would never be noticed.
#[test]
fn a_failure_counts_when_its_retry_is_replaced() {
    let mut scene = Scene::new(TEXT);
    scene.pass(60);
    let failed = scene.fire("newest").unwrap();
    scene.fail(failed);
    assert!(scene.checks("alarm").is_empty());
    scene.pass(60);
    scene.fire("newest").unwrap();
    scene.consider("alarm").unwrap();
    assert_eq!(scene.checks("alarm"), [(failure("newest", failed), true)]);
}

#[test]
fn cancelling_a_retry_after_a_success_is_not_a_failure() {
    let mut scene = Scene::new(TEXT);
    let failed = scene.dispatch("patient");
    scene.fail(failed);
    let [retry] = scene.jobs("patient").try_into().unwrap();
    let other = scene.dispatch("patient");
    scene.succeed(other);
    scene.cancel(retry);
    let made = scene.checks("alarm").into_iter().filter(|(_, made)| *made);
    assert_eq!(made.count(), 0);
}
