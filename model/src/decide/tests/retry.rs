//! Retries: which ends have one, what it keeps, when it may run, and what ends its chain.

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::json;

use crate::decide::{
    Cancel, Claim, ClaimOutcome, Complete, Consider, EndJob, Failure, Fire, FollowClock, KeepEnd,
    LargeInputs, Loss, RemoveRunner, Resume, Retire, Suspend, check_rerun,
};
use crate::job::{StepOutcome, StepStatus};
use crate::ledger::{Cause, LedgerRecord, Outcome};
use crate::limits::RUNNER_SILENCE;
use crate::testing::{House, complete_all, key, step};
use crate::{
    Abilities, Actor, Change, Holder, Inputs, Job, JobId, JobState, Reason, RetryOf, RunnerId,
    Timestamp, Trigger, Turns, WorkflowId, World, next_job, waiting,
};

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
    house: House,
    workflow: WorkflowId,
    runner: RunnerId,
}

impl Scene {
    fn new() -> Self {
        let mut house = House::new();
        house.now = "2026-11-21T10:30:00Z".parse().unwrap();
        let workflow = house.push("retrying", TEXT);
        let runner = house.runner("first", &[]);
        Self {
            house,
            workflow,
            runner,
        }
    }

    fn dispatch(&mut self, scan: &str) -> JobId {
        self.house.dispatch(self.workflow, scan, json!({})).unwrap()
    }

    /// The job that the next slot of a schedule makes.
    fn fire(&mut self, scan: &str) -> Option<JobId> {
        self.house.pass(TimeDelta::hours(1));
        let scan = key(self.workflow, scan);
        self.house.run(Fire { scan }).unwrap()
    }

    fn succeed(&mut self, job: JobId) {
        let token = self.house.claim(job, self.runner).unwrap();
        self.house.run(complete_all(job, token)).unwrap();
    }

    /// Claims a job and fails its step.
    fn fail(&mut self, job: JobId) -> Arc<Job> {
        let token = self.house.claim(job, self.runner).unwrap();
        self.house.run(failed(complete_all(job, token))).unwrap()
    }

    /// The retry of a job that fails.
    fn retry(&mut self, job: JobId) -> JobId {
        let ended = self.fail(job);
        ended.retried_by.unwrap()
    }

    fn lose(&mut self, job: JobId, loss: Loss) -> Arc<Job> {
        self.house.claim(job, self.runner).unwrap();
        self.house.run(EndJob::new(job, loss)).unwrap()
    }

    fn cancel(&mut self, job: JobId) -> Arc<Job> {
        let actor = Actor::Daemon;
        self.house.run(Cancel { job, actor }).unwrap()
    }

    fn job(&self, job: JobId) -> &Job {
        self.house.world.job(job).unwrap()
    }

    fn unfinished(&self, scan: &str) -> Vec<JobId> {
        let scan = key(self.workflow, scan);
        let jobs = self.house.world.jobs_of(&scan);
        jobs.map(|job| job.id).collect()
    }

    /// The job that a runner would be offered now.
    fn offered(&self) -> Option<JobId> {
        let time = self.house.world.time(self.house.steady());
        let next = next_job(
            &self.house.world,
            &Abilities::default(),
            &Turns::default(),
            time,
            |_| false,
        );
        next.map(|(_, job)| job)
    }

    fn ledger(&self, scan: &str) -> Vec<LedgerRecord> {
        let scan = key(self.workflow, scan);
        let records = self.house.decided.iter().filter_map(|change| match change {
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
fn a_failed_job_gets_a_job_after_its_pause_in_the_commit_that_ends_it() {
    let mut scene = Scene::new();
    let given = json!({"target": "a"});
    let first = scene.house.dispatch(scene.workflow, "poke", given).unwrap();
    let token = scene.house.claim(first, scene.runner).unwrap();
    let command = failed(complete_all(first, token));
    let (changes, ended) = scene.house.changes(command).unwrap();
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
    let due = scene.house.now + TimeDelta::seconds(30);
    assert_eq!(retry.not_before, Some(due));
    assert_eq!(retry.state, JobState::Scheduled);
    assert_eq!(retry.reason, Reason::Retry { of: first });
    assert_eq!(retry.actor, Actor::Daemon);
    assert_eq!(
        (retry.trigger, &retry.inputs),
        (ended.trigger, &ended.inputs)
    );
    let head = scene.house.world.head(&retry.scan_key()).unwrap();
    assert_eq!(head.latest_job, retry.id);
}

#[test]
fn the_chain_ends_with_its_last_attempt_or_a_success() {
    let mut scene = Scene::new();
    let first = scene.dispatch("poke");
    let second = scene.retry(first);
    let now = scene.house.now;
    let third = scene.retry(second);
    let retry = scene.job(third).retry_of.unwrap();
    assert_eq!((retry.attempt, retry.attempts), (3, 3));
    let due = now + TimeDelta::minutes(1);
    assert_eq!(scene.job(third).not_before, Some(due), "doubled");
    assert_eq!(scene.fail(third).retried_by, None);
    assert!(scene.unfinished("poke").is_empty());

    let first = scene.dispatch("poke");
    let second = scene.retry(first);
    scene.succeed(second);
    assert!(scene.unfinished("poke").is_empty());
    let source = scene.dispatch("source");
    assert_eq!(scene.fail(source).retried_by, None, "it has no `retry`");
}

#[test]
fn no_runner_is_offered_a_retry_before_its_time() {
    let mut scene = Scene::new();
    let first = scene.dispatch("poke");
    let retry = scene.retry(first);
    let due = scene.job(retry).not_before.unwrap();
    let world = |scene: &Scene| World::clone(&scene.house.world);
    assert_eq!(scene.offered(), None);
    assert_eq!(world(&scene).next_delayed(scene.house.now), Some(due));
    let why = scene
        .job(retry)
        .waits_for_its_time(scene.house.now)
        .unwrap();
    assert_eq!(
        why.to_string(),
        "retry at 2026-11-21T10:30:30Z (attempt 2 of 3)"
    );

    scene.house.pass(TimeDelta::milliseconds(29_999));
    assert_eq!(scene.offered(), None);
    scene.house.pass(TimeDelta::milliseconds(1));
    assert_eq!(scene.offered(), Some(retry));
    assert_eq!(world(&scene).next_delayed(scene.house.now), None);
    assert_eq!(scene.job(retry).waits_for_its_time(scene.house.now), None);
    let why = waiting(
        &scene.house.world,
        scene.job(retry),
        scene.house.now,
        |_| true,
        |_| None,
    );
    assert!(matches!(why, Some(Reason::NotFetched { .. })), "{why:?}");
    let younger = scene.dispatch("source");
    let (world, job) = (&scene.house.world, scene.job(younger));
    let why = waiting(world, job, scene.house.now, |_| true, |_| None).unwrap();
    assert_eq!(
        why.to_string(),
        "no runner with room for it has asked for work yet; 1 older job of `poke` waits for the same runners"
    );
    scene.fail(younger);

    // A new revision files it anew, under the same time.
    let text = TEXT.replace("overlap", "runs_on: [gpu]\n    overlap");
    scene.house.push("retrying", &text);
    assert_eq!(scene.offered(), Some(retry));
    let stored = serde_json::to_string(scene.job(retry)).unwrap();
    assert_eq!(
        serde_json::from_str::<Job>(&stored).unwrap(),
        *scene.job(retry)
    );
    scene.succeed(retry);
    assert_eq!(scene.offered(), None);
}

#[test]
fn failures_and_losses_are_retried_and_other_ends_are_not() {
    let mut scene = Scene::new();
    for failure in [
        Failure::Artifact("x".to_owned()),
        Failure::Env("x".to_owned()),
        Failure::Setup("x".to_owned()),
        Failure::RunnerStopped("x".to_owned()),
    ] {
        let job = scene.dispatch("poke");
        let token = scene.house.claim(job, scene.runner).unwrap();
        let command = Complete {
            failure: Some(failure),
            ..complete_all(job, token)
        };
        let ended = scene.house.run(command).unwrap();
        let retry = ended.retried_by.unwrap();
        assert_eq!(scene.cancel(retry).retried_by, None);
    }
    let job = scene.dispatch("poke");
    let retry = scene.lose(job, Loss::RunnerLost).retried_by.unwrap();
    scene.cancel(retry);
    let job = scene.dispatch("poke");
    scene.house.claim(job, scene.runner).unwrap();
    let runner = scene.runner;
    scene.house.run(RemoveRunner { runner }).unwrap();
    let lost = scene.house.run(EndJob::new(job, Loss::RunnerLost)).unwrap();
    let retry = lost.retried_by.unwrap();
    let due = scene.house.now + RUNNER_SILENCE;
    assert_eq!(
        scene.job(retry).not_before,
        Some(due),
        "it may still execute"
    );
    scene.cancel(retry);
    scene.runner = scene.house.runner("another", &[]);
    for loss in [Loss::Restored, Loss::TimedOut, Loss::SessionExpired] {
        let job = scene.dispatch("poke");
        assert_eq!(scene.lose(job, loss).retried_by, None, "{loss:?}");
    }
    let job = scene.dispatch("poke");
    scene.house.claim(job, scene.runner).unwrap();
    assert_eq!(scene.cancel(job).retried_by, None);
    assert!(scene.unfinished("poke").is_empty());
}

#[test]
fn a_job_is_not_run_again_beside_a_retry_of_its_chain() {
    let mut scene = Scene::new();
    let id = scene.dispatch("poke");
    let first = scene.fail(id);
    let retry = first.retried_by.unwrap();
    let refused = check_rerun(&scene.house.world, &first, scene.job(retry)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "job {id} is retried as {retry}, which is not finished; wait for it, or cancel it first"
        )
    );
    let over = scene.cancel(retry);
    assert_eq!(check_rerun(&scene.house.world, &first, &over), Ok(()));
}

#[test]
fn a_failure_after_the_deadline_is_a_timeout_and_is_not_retried() {
    let mut scene = Scene::new();
    let job = scene.dispatch("poke");
    let token = scene.house.claim(job, scene.runner).unwrap();
    scene.house.pass(TimeDelta::hours(1));
    let stopped = Failure::RunnerStopped("the scan's timeout has passed".to_owned());
    let command = Complete {
        failure: Some(stopped),
        ..complete_all(job, token)
    };
    assert_eq!(scene.house.run(command).unwrap().retried_by, None);
}

#[test]
fn a_scan_that_is_gone_or_suspended_gets_no_retry() {
    let mut scene = Scene::new();
    let jobs: Vec<_> = (0..3).map(|_| scene.dispatch("poke")).collect();
    scene
        .house
        .run(suspend(scene.workflow))
        .unwrap_or_else(|refusal| panic!("{refusal}"));
    assert!(scene.house.claim(jobs[0], scene.runner).is_err(), "held");
    let resume = Resume {
        workflow: scene.workflow,
        scan: None,
        reason: None,
        actor: Actor::Daemon,
    };
    scene.house.run(resume).unwrap();

    let token = scene.house.claim(jobs[0], scene.runner).unwrap();
    let other = scene.house.claim(jobs[1], scene.runner).unwrap();
    scene.house.run(suspend(scene.workflow)).unwrap();
    let ended = scene.house.run(failed(complete_all(jobs[0], token)));
    assert_eq!(ended.unwrap().retried_by, None, "suspended");
    scene
        .house
        .run(Retire {
            workflow: scene.workflow,
        })
        .unwrap();
    let ended = scene.house.run(failed(complete_all(jobs[1], other)));
    assert_eq!(ended.unwrap().retried_by, None, "retired");
}

#[test]
fn a_suspension_ends_a_pending_retry_whatever_made_its_chain() {
    for is_dispatched in [true, false] {
        let mut scene = Scene::new();
        let first = if is_dispatched {
            scene.dispatch("poke")
        } else {
            scene.fire("poke").unwrap()
        };
        let retry = scene.retry(first);
        scene.house.run(suspend(scene.workflow)).unwrap();
        assert_eq!(scene.house.world.withdrawn().collect::<Vec<_>>(), [retry]);
        scene.house.pass(TimeDelta::minutes(1));
        assert_eq!(scene.offered(), None);
        let ended = scene
            .house
            .run(EndJob::new(retry, Loss::Suspended))
            .unwrap();
        assert_eq!(ended.state.name(), "cancelled");
        assert_eq!(ended.reason().code(), "suspended");
        assert_eq!(ended.retried_by, None);
        // The slot had its job, so the resumption has nothing to catch up with.
        let head = scene.house.world.head(&ended.scan_key()).unwrap();
        assert_eq!((head.passed_slots, head.passed_successes), (None, None));
    }
}

#[test]
fn a_newer_slot_replaces_a_retry_and_ends_its_chain_unless_it_was_dispatched() {
    for is_running in [false, true] {
        let mut scene = Scene::new();
        let first = scene.fire("newest").unwrap();
        let retry = scene.retry(first);
        if is_running {
            scene.house.claim(retry, scene.runner).unwrap();
        }
        let newer = scene.fire("newest").unwrap();
        assert_eq!(scene.unfinished("newest"), [newer]);
        let ended = scene.house.decided.iter().find_map(|change| match change {
            Change::Job(job) if job.id == retry && job.state.is_terminal() => Some(job),
            _ => None,
        });
        let ended = ended.unwrap();
        assert_eq!(*ended.reason(), Reason::Replaced { by: newer });
        assert_eq!(ended.retried_by, None);
    }
    let mut scene = Scene::new();
    let first = scene.dispatch("newest");
    let retry = scene.retry(first);
    assert_eq!(scene.fire("newest"), None);
    assert_eq!(scene.unfinished("newest"), [retry]);
}

#[test]
fn a_pending_retry_counts_as_active_and_each_slot_has_one_record() {
    let mut scene = Scene::new();
    let first = scene.fire("poke").unwrap();
    let retry = scene.retry(first);
    assert_eq!(scene.fire("poke"), None, "skipped");
    scene.succeed(retry);
    let next = scene.fire("poke").unwrap();
    let records = scene.ledger("poke");
    let outcomes: Vec<_> = records.iter().map(|record| &record.outcome).collect();
    let reason = Reason::Overlap { job: retry };
    let expected = [
        &Outcome::Made { job: first },
        &Outcome::NotMade { reason },
        &Outcome::Made { job: next },
    ];
    assert_eq!(outcomes, expected);
    for record in records {
        assert!(matches!(record.cause, Cause::Slots { count: 1, .. }));
    }
}

#[test]
fn a_retry_is_not_checked_against_its_expression_again_and_its_success_is_an_execution() {
    let mut scene = Scene::new();
    let source = scene.dispatch("source");
    scene.succeed(source);
    let [first] = scene.unfinished("after")[..] else {
        panic!("the success starts it")
    };
    let retry = scene.retry(first);
    assert_eq!(scene.job(retry).trigger, Trigger::Expr);
    // The scan has executed since the success, so its expression is false now.
    scene.house.pass(TimeDelta::seconds(10));
    let claim = Claim {
        job: retry,
        runner: scene.runner,
        token: crate::TokenHash::of(&retry.to_string()),
    };
    let outcome = scene.house.run(claim).unwrap();
    assert!(matches!(outcome, ClaimOutcome::Claimed(_)));
    let claimed = scene
        .house
        .world
        .head(&key(scene.workflow, "after"))
        .unwrap();
    assert_eq!(claimed.latest_claim, Some(scene.house.order));

    // A success that comes meanwhile is looked at when the chain has ended.
    let source = scene.dispatch("source");
    scene.succeed(source);
    assert_eq!(scene.unfinished("after"), [retry]);
    let token = crate::TokenHash::of(&retry.to_string());
    let ended = scene.house.run(failed(complete_all(retry, token))).unwrap();
    assert_eq!(ended.retried_by, None, "the last attempt");
    let next = scene.unfinished("after");
    assert_eq!(next.len(), 1, "in the commit of that end");
    assert_eq!(scene.job(next[0]).retry_of, None);
}

#[test]
fn the_end_of_a_job_starts_no_other_job_beside_its_retry() {
    let mut scene = Scene::new();
    let source = scene.dispatch("source");
    scene.succeed(source);
    let [first] = scene.unfinished("after")[..] else {
        panic!("the success starts it")
    };
    let token = scene.house.claim(first, scene.runner).unwrap();
    let source = scene.dispatch("source");
    scene.succeed(source);
    let ended = scene.house.run(failed(complete_all(first, token))).unwrap();
    let retry = ended.retried_by.unwrap();
    assert_eq!(scene.unfinished("after"), [retry]);
    let scan = key(scene.workflow, "after");
    assert_eq!(scene.house.run(Consider { scan }).unwrap(), None);
}

#[test]
fn a_dispatched_retry_keeps_its_revision_and_others_take_the_newest() {
    let mut scene = Scene::new();
    let scheduled = scene.fire("poke").unwrap();
    let dispatched = scene.dispatch("poke");
    let tokens = [scheduled, dispatched].map(|job| scene.house.claim(job, scene.runner).unwrap());
    let old = scene.job(dispatched).revision.clone();
    let without = TEXT.replace("    retry: {attempts: 2, backoff: 30s}\n", "");
    scene.house.push("retrying", &without);
    let retries = [(scheduled, tokens[0]), (dispatched, tokens[1])].map(|(job, token)| {
        let ended = scene.house.run(failed(complete_all(job, token))).unwrap();
        ended.retried_by.unwrap()
    });
    assert!(scene.house.world.revision(old.id).is_some());
    scene.house.pass(TimeDelta::seconds(30));
    for (retry, number, goes_on) in [(retries[0], 2, false), (retries[1], 1, true)] {
        let ended = scene.fail(retry);
        assert_eq!(ended.revision.number, number);
        assert_eq!(ended.retried_by.is_some(), goes_on, "as its revision says");
    }
}

#[test]
fn large_inputs_need_a_copy() {
    for (large_inputs, is_retried) in [(LargeInputs::Copied, true), (LargeInputs::NotCopied, false)]
    {
        let mut scene = Scene::new();
        let mut command = scene
            .house
            .dispatch_of(scene.workflow, "poke", json!({}))
            .unwrap();
        command.inputs = Inputs::Object {
            sha256: "0".repeat(64),
            bytes: 70_000,
        };
        let job = scene.house.run(command).unwrap();
        let token = scene.house.claim(job, scene.runner).unwrap();
        let command = Complete {
            large_inputs,
            ..failed(complete_all(job, token))
        };
        let ended = scene.house.run(command).unwrap();
        assert_eq!(ended.retried_by.is_some(), is_retried);
    }
}

#[test]
fn a_jump_of_the_clock_changes_no_pause() {
    let mut scene = Scene::new();
    let first = scene.dispatch("poke");
    let retry = scene.retry(first);
    let left = |scene: &Scene| {
        let time = scene.house.world.time(scene.house.steady());
        scene.job(retry).not_before.unwrap() - time
    };
    assert_eq!(left(&scene), TimeDelta::seconds(30));
    for by in [TimeDelta::hours(2), TimeDelta::days(-400)] {
        scene.house.jump(by);
        assert_eq!(left(&scene), TimeDelta::seconds(30));
        scene.house.run(FollowClock).unwrap();
        assert_eq!(left(&scene), TimeDelta::seconds(30));
        let at = scene.job(retry).not_before.unwrap();
        assert_eq!(at - scene.house.now, TimeDelta::seconds(30), "by the clock");
        assert_eq!(scene.house.world.next_delayed(Timestamp::MIN_UTC), Some(at));
    }
    let holder = Holder::Job(retry);
    assert!(scene.house.world.holders().contains(&holder));
    let (changes, ()) = scene.house.changes(KeepEnd { holder }).unwrap();
    assert!(matches!(&changes[..], [Change::Job(job)] if job.id == retry));
    assert_eq!(scene.offered(), None);
    scene.house.pass(TimeDelta::seconds(30));
    assert_eq!(scene.offered(), Some(retry));
}

#[test]
fn a_loaded_time_does_not_move_but_the_ends_of_its_run_do() {
    let mut scene = Scene::new();
    let first = scene.dispatch("poke");
    let retry = scene.retry(first);
    scene.house.world.finish_loading();
    let before = scene.job(retry).retry_of;
    scene.house.jump(TimeDelta::hours(2));
    scene.house.run(FollowClock).unwrap();
    assert_eq!(scene.job(retry).retry_of, before);
    assert_eq!(scene.offered(), Some(retry));
    scene.house.claim(retry, scene.runner).unwrap();
    let holders = scene.house.world.holders();
    assert!(holders.contains(&Holder::Job(retry)));
}

#[test]
fn a_record_of_before_opens_as_it_was() {
    let mut scene = Scene::new();
    let first = scene.dispatch("poke");
    let json = serde_json::to_value(scene.job(first)).unwrap();
    for key in ["retry_of", "retried_by"] {
        assert!(json.get(key).is_none(), "{key} is left out");
    }
    let job: Job = serde_json::from_value(json).unwrap();
    assert_eq!((job.attempt(), job.retried_by), (1, None));
}
