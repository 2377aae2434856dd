//! Runs random commands and compares the world with a naive record of all events. The seed is fixed, so a failure is
//! reproducible.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

use crate::decide::{
    Again, Cancel, Claim, Command, Complete, Dispatch, EndJob, Evaluate, Failure, Loss, Refusal,
    RemoveRunner, ReportSteps, Retire, StoreArtifact, check_rerun,
};
use crate::job::{StepOutcome as Outcome, StepStatus as Status};
use crate::testing::{NIGHTLY, TestWorld, activate, complete, snapshot, source, step, succeeded};
use crate::{
    Actor, Change, EndState, IdempotencyKey, Job, JobId, Order, Reach, RunnerId, ScanHead, ScanKey,
    TailEnd, Timestamp, TokenHash, TokenId, Totals, WorkflowId, World,
};

/// A random action. Numbers select from a small set of ids, so that commands often conflict.
#[derive(Debug, Clone)]
enum Action {
    Push { workflow: u8, version: u8 },
    Retire { workflow: u8 },
    Dispatch { workflow: u8, key: Option<u8> },
    Rerun { job: u8 },
    Register { name: u8 },
    RemoveRunner { runner: u8 },
    Claim { job: u8, runner: u8, stranger: bool },
    Report { job: u8, steps: u8 },
    Store { job: u8, content: u8 },
    Complete { job: u8, good: bool },
    Cancel { job: u8 },
    End { job: u8, loss: u8 },
    Pass { seconds: i64 },
}

fn action() -> impl Strategy<Value = Action> {
    let few = 0..2_u8;
    let job = 0..4_u8;
    prop_oneof![
        4 => (few.clone(), few.clone()).prop_map(|(workflow, version)| Action::Push { workflow, version }),
        1 => few.clone().prop_map(|workflow| Action::Retire { workflow }),
        8 => (few.clone(), prop::option::of(few.clone()))
            .prop_map(|(workflow, key)| Action::Dispatch { workflow, key }),
        2 => job.clone().prop_map(|job| Action::Rerun { job }),
        3 => few.clone().prop_map(|name| Action::Register { name }),
        1 => few.clone().prop_map(|runner| Action::RemoveRunner { runner }),
        12 => (job.clone(), few.clone(), prop::bool::weighted(0.1))
            .prop_map(|(job, runner, stranger)| Action::Claim { job, runner, stranger }),
        2 => (job.clone(), few.clone()).prop_map(|(job, steps)| Action::Report { job, steps }),
        2 => (job.clone(), few.clone()).prop_map(|(job, content)| Action::Store { job, content }),
        12 => (job.clone(), prop::bool::weighted(0.65)).prop_map(|(job, good)| Action::Complete { job, good }),
        1 => job.clone().prop_map(|job| Action::Cancel { job }),
        2 => (job, 0..4_u8).prop_map(|(job, loss)| Action::End { job, loss }),
        1 => (-90_000..90_000_i64).prop_map(|seconds| Action::Pass { seconds }),
    ]
}

/// A workflow whose failed jobs are retried once in one version, and twice in the other.
fn text(version: u8) -> String {
    let retry = format!("  probe:\n    retry: {{attempts: {}}}\n", version + 1);
    NIGHTLY.replace("  probe:\n", &retry)
}

/// The expected state of a scan, computed by the test.
#[derive(Default)]
struct Past {
    totals: Totals,
    successes: Vec<(JobId, Order)>,
    claim: Option<Order>,
    history: TailEnd,
}

/// The world and a record of all events.
struct Story {
    test: TestWorld,
    jobs: BTreeMap<JobId, Job>,
    past: BTreeMap<ScanKey, Past>,
}

impl Story {
    fn new() -> Self {
        let mut test = TestWorld::new();
        test.push("0", &text(0));
        test.runner("0", &[]);
        Self {
            test,
            jobs: BTreeMap::new(),
            past: BTreeMap::new(),
        }
    }

    /// One of the newest jobs, finished or not.
    fn job(&self, choice: u8) -> JobId {
        let newest = self.jobs.keys().rev().nth(usize::from(choice));
        newest.copied().unwrap_or(JobId::FIRST)
    }

    fn runner(&self, choice: u8) -> RunnerId {
        let world = &self.test.world;
        let count = world.runners().count().max(1);
        let nth = world.runners().nth(usize::from(choice) % count);
        nth.map_or(RunnerId::from_uuid(uuid::Uuid::nil()), |runner| runner.id)
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Push { workflow, version } => {
                self.settled(activate(&workflow.to_string(), &text(version)));
            }
            Action::Retire { workflow } => {
                let workflow = WorkflowId::derive(&source(), &workflow.to_string());
                self.settled(Retire { workflow });
            }
            Action::Dispatch { workflow, key } => self.dispatch(workflow, key),
            Action::Rerun { job } => self.rerun(job),
            Action::Register { name } => {
                let name = name.to_string();
                if self.test.world.runners().all(|runner| runner.name != name) {
                    self.test.runner(&name, &[]);
                }
            }
            Action::RemoveRunner { runner } => {
                let runner = self.runner(runner);
                self.once(RemoveRunner {
                    runner,
                    by: crate::Rights::admin(),
                });
            }
            Action::Claim {
                job,
                runner,
                stranger,
            } => {
                let (job, runner) = (self.job(job), self.runner(runner));
                let token = TokenHash::of(&format!("{job}{stranger}"));
                let command = Claim {
                    job,
                    runner,
                    token,
                    job_token: None,
                    evaluate: Evaluate::CHEAP,
                };
                if self.step(command.clone()).is_ok() {
                    let (changes, repeat) = self.test.changes(command).unwrap();
                    assert!(changes.is_empty(), "a repeated claim changes nothing");
                    assert_eq!(repeat.job(), self.test.world.job(job));
                }
            }
            Action::Report { job, steps } => {
                let (job, token) = self.worker(job);
                let steps = succeeded(u32::from(steps));
                self.settled(ReportSteps { job, token, steps });
            }
            Action::Store { job, content } => {
                let (job, token) = self.worker(job);
                self.settled(StoreArtifact {
                    job,
                    token,
                    name: ["hosts", "ports"][usize::from(content % 2)].to_owned(),
                    size: 1,
                    sha256: content.to_string(),
                    content_digest: content.to_string(),
                });
            }
            Action::Complete { job, good } => {
                let (job, token) = self.worker(job);
                let bad = step(0, Status::Failed, Some(Outcome::Failed));
                self.once(Complete {
                    steps: if good { succeeded(2) } else { vec![bad] },
                    failure: (!good).then(|| Failure::Artifact("none".to_owned())),
                    ..complete(job, token)
                });
            }
            Action::Cancel { job } => {
                let (job, actor) = (self.job(job), Actor::Daemon);
                self.once(Cancel { job, actor });
            }
            Action::End { job, loss } => {
                let losses = [
                    Loss::RunnerLost,
                    Loss::TimedOut,
                    Loss::SessionExpired,
                    Loss::Retired,
                ];
                let (job, loss) = (self.job(job), losses[usize::from(loss)]);
                // All outcomes are valid here; `step` checks the changes.
                self.step(EndJob::new(job, loss)).ok();
            }
            Action::Pass { seconds } => self.test.pass(TimeDelta::seconds(seconds)),
        }
    }

    fn dispatch(&mut self, workflow: u8, key: Option<u8>) {
        let workflow = WorkflowId::derive(&source(), &workflow.to_string());
        let token = TokenId::from_uuid(uuid::Uuid::nil());
        let idempotency = key.map(|key| {
            let request = workflow.to_string();
            IdempotencyKey::new(
                token.uuid(),
                "/dispatch",
                &key.to_string(),
                request.as_bytes(),
            )
        });
        let Ok(checked) = self.test.dispatch_of(workflow, "probe", json!({})) else {
            return;
        };
        let command = Dispatch {
            idempotency,
            ..checked
        };
        if key.is_some() {
            self.settled(command);
        } else if let Ok(job) = self.step(command) {
            assert_eq!(self.jobs.keys().next_back(), Some(&job), "ids increase");
        }
    }

    /// Reruns one of the newest jobs with its original revision.
    fn rerun(&mut self, choice: u8) {
        let Some(job) = self.jobs.get(&self.job(choice)).cloned() else {
            return;
        };
        let mut last = &job;
        while let Some(retry) = last.retried_by {
            last = &self.jobs[&retry];
        }
        let may = check_rerun(&self.test.world, &job, last);
        assert!(may.is_err() || last.state.is_terminal());
        let revision = self.test.decided.iter().find_map(|change| match change {
            Change::Revision(revision, _) if revision.record.reference.id == job.revision.id => {
                Some(revision.clone())
            }
            _ => None,
        });
        let command = Dispatch {
            workflow: job.workflow.id,
            scan: job.scan.clone(),
            revision: job.revision.id,
            inputs: job.inputs.clone(),
            actor: Actor::Daemon,
            idempotency: None,
            again: Some(Again {
                callback: None,
                job: job.id,
                revision,
                source: None,
            }),
        };
        if may.is_ok()
            && let Ok(again) = self.step(command)
        {
            let again = &self.jobs[&again];
            assert_eq!(again.rerun_of, Some(job.id));
            assert_eq!(again.revision, job.revision);
        }
    }

    /// The worker token of a job; the job may be unclaimed.
    fn worker(&self, choice: u8) -> (JobId, TokenHash) {
        let job = self.job(choice);
        (job, TokenHash::of(&format!("{job}false")))
    }

    /// Runs a command whose repeat must change nothing and give the same answer.
    fn settled<C: Command + Clone>(&mut self, command: C)
    where
        C::Answer: PartialEq + Debug,
    {
        if let Ok(answer) = self.step(command.clone()) {
            let (changes, repeat) = self.test.changes(command).unwrap();
            assert!(changes.is_empty(), "a repeat changes nothing");
            assert_eq!(repeat, answer);
        }
    }

    /// Runs a command whose repeat must be refused.
    fn once<C: Command + Clone>(&mut self, command: C) {
        if self.step(command.clone()).is_ok() {
            assert!(self.test.run(command).is_err(), "a repeat is refused");
        }
    }

    /// Decides, applies, and compares the world with the record of events.
    fn step<C: Command>(&mut self, command: C) -> Result<C::Answer, Refusal> {
        let before = snapshot(&self.test.world);
        let decided = self.test.changes(command);
        match decided {
            Ok((changes, answer)) => {
                for change in &changes {
                    self.note(change);
                }
                self.compare();
                Ok(answer)
            }
            Err(refusal) => {
                assert_eq!(before, snapshot(&self.test.world), "{refusal}");
                Err(refusal)
            }
        }
    }

    fn note(&mut self, change: &Change) {
        match change {
            Change::Job(job) => self.note_job(job),
            Change::History(entry) => {
                let past = self.past.entry(entry.scan.clone()).or_default();
                assert_eq!(
                    (entry.page, entry.at),
                    (past.history.page, past.history.bytes)
                );
                past.history.bytes += entry.text.len() as u64;
            }
            _ => {}
        }
    }

    fn note_job(&mut self, job: &Job) {
        let order = self.test.order;
        let before = self.jobs.insert(job.id, job.clone());
        let past = self.past.entry(job.scan_key());
        let past = past.or_default();
        if let Some(before) = &before {
            assert!(
                !before.state.is_terminal(),
                "a terminal state does not change"
            );
            if let Some(run) = before.state.run() {
                let after = job.state.run().unwrap();
                assert_eq!((run.token, run.claimed), (after.token, after.claimed));
            }
        }
        let claimed = before.is_some_and(|before| before.state.run().is_none());
        if claimed && job.state.run().is_some() {
            assert!(past.claim < Some(order));
            past.claim = Some(order);
        }
        if job.state.is_terminal() {
            let count = match job.state.kind().ended().unwrap() {
                EndState::Succeeded => &mut past.totals.succeeded,
                EndState::Failed => &mut past.totals.failed,
                EndState::Cancelled => &mut past.totals.cancelled,
                EndState::Skipped => &mut past.totals.skipped,
            };
            *count += 1;
            past.totals.bytes += job.bytes();
        }
        if job.state.name() == "succeeded" {
            past.successes.insert(0, (job.id, order));
        }
    }

    /// Checks that a chain of retries has at most one unfinished job and is finite.
    fn check_chains(&self) {
        for job in self.jobs.values() {
            assert!(job.attempt() <= 3);
            let Some(retry) = job.retry_of else {
                continue;
            };
            let retried = &self.jobs[&retry.job];
            assert_eq!(retried.retried_by, Some(job.id));
            let end = retried.state.end().unwrap();
            assert!(end.reason.is_retried(), "{}", end.reason);
            assert_eq!(job.created_at, end.at, "in the same commit");
            assert_eq!(job.attempt(), retried.attempt() + 1);
            assert!(job.attempt() <= retry.attempts);
            assert_eq!(
                (job.trigger, &job.inputs),
                (retried.trigger, &retried.inputs)
            );
            assert_eq!((job.rerun_of, job.scan_key()), (None, retried.scan_key()));
        }
        let retries = self.jobs.values().filter_map(|job| job.retry_of);
        let retried: Vec<JobId> = retries.map(|retry| retry.job).collect();
        let different: BTreeSet<_> = retried.iter().collect();
        assert_eq!(different.len(), retried.len(), "a job is retried twice");
    }

    fn compare(&self) {
        self.check_chains();
        let world = &self.test.world;
        let unfinished = self.jobs.values().filter(|job| !job.state.is_terminal());
        assert!(world.jobs().map(|job| &**job).eq(unfinished.clone()));
        let waiting: BTreeSet<JobId> = unfinished
            .clone()
            .filter(|job| job.state.run().is_none())
            .map(|job| job.id)
            .collect();
        let reach = Reach::labelled(&["gpu", "linux"]);
        let offerable = world.offerable(&reach).flat_map(|(_, jobs)| jobs.clone());
        let retries = world.due_delayed(&reach, Timestamp::MAX_UTC);
        let retries = retries.map(|(_, job)| job);
        let filed: Vec<JobId> = offerable.chain(retries).chain(world.orphans()).collect();
        assert_eq!(filed.len(), waiting.len(), "a job is listed twice");
        assert_eq!(filed.into_iter().collect::<BTreeSet<_>>(), waiting);
        for job in unfinished.clone().filter(|job| waiting.contains(&job.id)) {
            assert_eq!(world.is_orphan(job), world.orphans().any(|id| id == job.id));
            let of_scan = waiting.iter().filter(|id| {
                let other = world.job(**id).unwrap();
                other.scan_key() == job.scan_key()
            });
            assert_eq!(world.scheduled_of(&job.scan_key()), of_scan.count());
        }
        for job in unfinished {
            assert!(
                world.revision(job.revision.id).is_some(),
                "{} can run",
                job.id
            );
            if let Some(run) = job.state.run() {
                assert!(world.running_on(run.runner.id).any(|it| it.id == job.id));
            }
        }
        for (scan, past) in &self.past {
            let unused = ScanHead::new(scan.workflow, scan.scan.clone());
            let head = world.head(scan).map_or(&unused, |head| head);
            assert_eq!(head.totals, past.totals);
            assert_eq!(head.latest_claim, past.claim);
            assert_eq!(head.history, past.history);
            let newest = past.successes.iter().take(2).copied();
            let known = head.successes.iter().map(|it| (it.job, it.order));
            assert!(known.eq(newest), "the two newest successes, newest first");
            assert!(world.latest_order() >= past.claim.unwrap_or_default());
        }
        assert!(world.latest_order() <= self.test.order);
    }

    /// Applying the same changes again, or each of them twice, must result in the same world.
    fn replay(&self) {
        let mut once = World::default();
        let mut twice = World::default();
        for change in &self.test.decided {
            once.apply(change);
            twice.apply(change);
            twice.apply(change);
        }
        let expected = snapshot(&self.test.world);
        assert_eq!(snapshot(&once), expected);
        assert_eq!(snapshot(&twice), expected);
    }
}

#[test]
fn the_promises_hold_for_random_actions() {
    let config = Config {
        cases: 64,
        failure_persistence: None,
        ..Config::default()
    };
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let actions = prop::collection::vec(action(), 1..120);
    let busiest = Cell::new(0);
    let ends = RefCell::new(BTreeSet::new());
    let longest = Cell::new(0);
    TestRunner::new_with_rng(config, seed)
        .run(&actions, |actions| {
            let mut story = Story::new();
            for action in actions {
                story.act(action);
            }
            story.replay();
            let successes = story.past.values().map(|past| past.successes.len());
            busiest.set(successes.max().unwrap_or_default().max(busiest.get()));
            let attempts = story.jobs.values().map(Job::attempt).max();
            longest.set(longest.get().max(attempts.unwrap_or_default()));
            let over = story.jobs.values().filter_map(|job| job.state.end());
            ends.borrow_mut().extend(over.map(|end| end.reason.code()));
            Ok(())
        })
        .unwrap();

    // Check that the random actions cover all cases.
    assert!(
        busiest.get() > 3,
        "successes of one scan: {}",
        busiest.get()
    );
    assert_eq!(longest.get(), 3, "jobs of one chain");
    let seen = ends.into_inner();
    let expected = [
        "cancelled_by_user",
        "retired",
        "runner_lost",
        "session_expired",
        "step_failed",
        "steps_succeeded",
        "timed_out",
    ];
    assert!(seen.iter().eq(&expected), "{seen:?}");
}
