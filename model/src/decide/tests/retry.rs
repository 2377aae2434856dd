//! Retries: which ends are retried, and the properties of the retry.

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::json;

use crate::decide::{Cancel, Complete, EndJob, Failure, Fire, LargeInputs, Loss, Suspend};
use crate::job::{StepOutcome, StepStatus};
use crate::ledger::LedgerRecord;
use crate::limits::{RUNNER_SILENCE, WORKER_SESSION};
use crate::testing::{TestWorld, complete_all, key, step};
use crate::{
    Actor, Change, Inputs, Job, JobId, JobState, Reach, Reason, RetryOf, RunnerId, Turns,
    WorkflowId, next_job,
};

mod chain;
mod concurrent;
mod pause;

const TEXT: &str = "
scans:
  source:
    on: {dispatch: {}}
    steps: [{run: x}]
  poke:
    on: {cron: '0 * * * *', dispatch: {inputs: {target: {type: string}}}}
    retry: {attempts: 2, backoff: 30s}
    timeout: 1h
    steps: [{run: x}]
  after:
    on: {expr: 'scans.source.is_available()', dispatch: {}}
    retry: {attempts: 1}
    steps: [{run: x}]
  newest:
    on: {cron: '0 * * * *', dispatch: {}}
    retry: {attempts: 3}
    overlap: replace
    steps: [{run: x}]
";

struct Scene {
    test: TestWorld,
    workflow: WorkflowId,
    runner: RunnerId,
}

impl Scene {
    fn new() -> Self {
        let mut test = TestWorld::new();
        test.now = "2026-11-21T10:30:00Z".parse().unwrap();
        let workflow = test.push("retrying", TEXT);
        let runner = test.runner("first", &[]);
        Self {
            test,
            workflow,
            runner,
        }
    }

    fn dispatch(&mut self, scan: &str) -> JobId {
        self.test.dispatch(self.workflow, scan, json!({})).unwrap()
    }

    /// Creates the job of the next slot of a schedule.
    fn fire(&mut self, scan: &str) -> Option<JobId> {
        self.test.pass(TimeDelta::hours(1));
        let scan = key(self.workflow, scan);
        self.test.run(Fire { scan }).unwrap()
    }

    fn succeed(&mut self, job: JobId) {
        let token = self.test.claim(job, self.runner).unwrap();
        self.test.run(complete_all(job, token)).unwrap();
    }

    /// Claims a job and fails its step.
    fn fail(&mut self, job: JobId) -> Arc<Job> {
        let token = self.test.claim(job, self.runner).unwrap();
        self.test.run(failed(complete_all(job, token))).unwrap()
    }

    /// Fails a job and returns its retry.
    fn retry(&mut self, job: JobId) -> JobId {
        let ended = self.fail(job);
        ended.retried_by.unwrap()
    }

    fn lose(&mut self, job: JobId, loss: Loss) -> Arc<Job> {
        self.test.claim(job, self.runner).unwrap();
        self.test.run(EndJob::new(job, loss)).unwrap()
    }

    fn cancel(&mut self, job: JobId) -> Arc<Job> {
        let actor = Actor::Daemon;
        self.test.run(Cancel { job, actor }).unwrap()
    }

    fn job(&self, job: JobId) -> &Job {
        self.test.world.job(job).unwrap()
    }

    fn unfinished(&self, scan: &str) -> Vec<JobId> {
        let scan = key(self.workflow, scan);
        let jobs = self.test.world.jobs_of(&scan);
        jobs.map(|job| job.id).collect()
    }

    /// The job that a runner would be offered now.
    fn offered(&self) -> Option<JobId> {
        let time = self.test.world.time(self.test.steady());
        let next = next_job(
            &self.test.world,
            &Reach::default(),
            &Turns::default(),
            time,
            |_| false,
        );
        next.map(|(_, job)| job)
    }

    fn ledger(&self, scan: &str) -> Vec<LedgerRecord> {
        let scan = key(self.workflow, scan);
        let records = self.test.decided.iter().filter_map(|change| match change {
            Change::Ledger(entry) if entry.scan == scan => {
                Some(serde_json::from_str(&entry.text).unwrap())
            }
            _ => None,
        });
        records.collect()
    }
}

fn failed(complete: Complete) -> Complete {
    Complete {
        steps: vec![step(0, StepStatus::Failed, Some(StepOutcome::Failed))],
        ..complete
    }
}

fn suspend(workflow: WorkflowId) -> Suspend {
    Suspend {
        workflow,
        scan: None,
        reason: "repairs".to_owned(),
        actor: Actor::Daemon,
    }
}

#[test]
fn the_commit_that_ends_a_failed_job_creates_its_retry() {
    let mut scene = Scene::new();
    let given = json!({"target": "a"});
    let first = scene.test.dispatch(scene.workflow, "poke", given).unwrap();
    let token = scene.test.claim(first, scene.runner).unwrap();
    let command = failed(complete_all(first, token));
    let (changes, ended) = scene.test.changes(command).unwrap();
    let made: Vec<&Job> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Job(job) if job.id != first => Some(&**job),
            _ => None,
        })
        .collect();
    let [retry] = made[..] else {
        panic!("{made:?}")
    };
    assert_eq!(ended.retried_by, Some(retry.id));
    let lines = changes.iter().filter_map(|change| match change {
        Change::History(entry) => Some(entry.line.retried_by),
        _ => None,
    });
    assert_eq!(lines.collect::<Vec<_>>(), [Some(retry.id)]);
    assert!(retry.id > first);
    let expected = RetryOf {
        job: first,
        attempt: 2,
        attempts: 3,
    };
    assert_eq!(retry.retry_of, Some(expected));
    let due = scene.test.now + TimeDelta::seconds(30);
    assert_eq!(retry.not_before, Some(due));
    assert_eq!(retry.state, JobState::Scheduled);
    assert_eq!(retry.reason, Reason::Retry { of: first });
    assert_eq!(retry.actor, Actor::Daemon);
    assert_eq!(
        (retry.trigger, &retry.inputs),
        (ended.trigger, &ended.inputs)
    );
    let head = scene.test.world.head(&retry.scan_key()).unwrap();
    assert_eq!(head.latest_job, retry.id);
}

#[test]
fn only_failures_and_losses_are_retried() {
    let mut scene = Scene::new();
    for failure in [
        Failure::Artifact("x".to_owned()),
        Failure::Env("x".to_owned()),
        Failure::Setup("x".to_owned()),
        Failure::RunnerStopped("x".to_owned()),
        Failure::TimedOut,
    ] {
        let job = scene.dispatch("poke");
        let token = scene.test.claim(job, scene.runner).unwrap();
        let command = Complete {
            failure: Some(failure),
            ..complete_all(job, token)
        };
        let ended = scene.test.run(command).unwrap();
        let retry = ended.retried_by.unwrap();
        assert_eq!(scene.cancel(retry).retried_by, None);
    }
    for loss in [Loss::RunnerLost, Loss::TimedOut] {
        let job = scene.dispatch("poke");
        let retry = scene.lose(job, loss).retried_by.unwrap();
        scene.cancel(retry);
    }
    for loss in [Loss::Restored, Loss::SessionExpired] {
        let job = scene.dispatch("poke");
        assert_eq!(scene.lose(job, loss).retried_by, None, "{loss:?}");
    }
    let job = scene.dispatch("poke");
    scene.test.claim(job, scene.runner).unwrap();
    assert_eq!(scene.cancel(job).retried_by, None);
    assert!(scene.unfinished("poke").is_empty());
}

/// Runs a job of the scan that its runner stops this long after the claim.
fn stopped_after(scene: &mut Scene, scan: &str, after: TimeDelta) -> Arc<Job> {
    let job = scene.dispatch(scan);
    let token = scene.test.claim(job, scene.runner).unwrap();
    scene.test.pass(after);
    let command = Complete {
        failure: Some(Failure::RunnerStopped("an end has come".to_owned())),
        ..complete_all(job, token)
    };
    scene.test.run(command).unwrap()
}

#[test]
fn a_job_stopped_at_the_deadline_by_an_older_runner_has_timed_out() {
    let mut scene = Scene::new();
    let ended = stopped_after(&mut scene, "poke", TimeDelta::hours(1));
    assert_eq!(*ended.reason(), Reason::TimedOut);
    let retry = scene.job(ended.retried_by.unwrap()).clone();
    let pause = retry.not_before.unwrap() - scene.test.now;
    assert_eq!(pause, TimeDelta::seconds(30), "the pause of the scan");
}

#[test]
fn a_failure_after_the_end_of_the_session_is_not_retried() {
    let mut scene = Scene::new();
    let before = WORKER_SESSION - TimeDelta::seconds(1);
    let ended = stopped_after(&mut scene, "newest", before);
    scene.cancel(ended.retried_by.unwrap());
    let ended = stopped_after(&mut scene, "newest", WORKER_SESSION);
    assert_eq!(ended.reason().code(), "runner_stopped");
    assert_eq!(ended.retried_by, None);
}

#[test]
fn a_retry_waits_until_a_runner_that_missed_the_timeout_has_stopped() {
    let mut scene = Scene::new();
    // The session expires at the same time, which must not matter.
    let text = TEXT.replace("timeout: 1h", "timeout: 4h");
    scene.test.push("retrying", &text);
    let job = scene.dispatch("poke");
    scene.test.claim(job, scene.runner).unwrap();
    scene.test.pass(WORKER_SESSION);
    let ended = scene.test.run(EndJob::new(job, Loss::TimedOut)).unwrap();
    assert_eq!(ended.state.name(), "failed");
    let retry = scene.job(ended.retried_by.unwrap());
    let pause = retry.not_before.unwrap() - scene.test.now;
    assert_eq!(pause, RUNNER_SILENCE);
}

#[test]
fn a_dispatched_retry_keeps_its_revision_and_others_use_the_newest() {
    let mut scene = Scene::new();
    let scheduled = scene.fire("poke").unwrap();
    let dispatched = scene.dispatch("poke");
    let tokens = [scheduled, dispatched].map(|job| scene.test.claim(job, scene.runner).unwrap());
    let old = scene.job(dispatched).revision.clone();
    let without = TEXT.replace("    retry: {attempts: 2, backoff: 30s}\n", "");
    scene.test.push("retrying", &without);
    let retries = [(scheduled, tokens[0]), (dispatched, tokens[1])].map(|(job, token)| {
        let ended = scene.test.run(failed(complete_all(job, token))).unwrap();
        ended.retried_by.unwrap()
    });
    assert!(scene.test.world.revision(old.id).is_some());
    scene.test.pass(TimeDelta::seconds(30));
    for (retry, number, is_retried_again) in [(retries[0], 2, false), (retries[1], 1, true)] {
        let ended = scene.fail(retry);
        assert_eq!(ended.revision.number, number);
        assert_eq!(
            ended.retried_by.is_some(),
            is_retried_again,
            "the revision decides about another retry"
        );
    }
}

#[test]
fn large_inputs_need_a_copy() {
    for (large_inputs, is_retried) in [(LargeInputs::Copied, true), (LargeInputs::NotCopied, false)]
    {
        let mut scene = Scene::new();
        let mut command = scene
            .test
            .dispatch_of(scene.workflow, "poke", json!({}))
            .unwrap();
        command.inputs = Inputs::Object {
            sha256: "0".repeat(64),
            bytes: 70_000,
        };
        let job = scene.test.run(command).unwrap();
        let token = scene.test.claim(job, scene.runner).unwrap();
        let command = Complete {
            large_inputs,
            ..failed(complete_all(job, token))
        };
        let ended = scene.test.run(command).unwrap();
        assert_eq!(ended.retried_by.is_some(), is_retried);
    }
}

#[test]
fn a_record_of_an_older_version_opens_unchanged() {
    let mut scene = Scene::new();
    let first = scene.dispatch("poke");
    let json = serde_json::to_value(scene.job(first)).unwrap();
    for key in ["retry_of", "retried_by"] {
        assert!(json.get(key).is_none(), "{key} is left out");
    }
    let job: Job = serde_json::from_value(json).unwrap();
    assert_eq!((job.attempt(), job.retried_by), (1, None));
}
