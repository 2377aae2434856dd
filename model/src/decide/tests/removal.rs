//! Removing finished jobs and artifacts.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::decide::{Cancel, Complete, DeleteJob, Prune, Refusal, RemoveArtifacts, StoreArtifact};
use crate::job::{StepOutcome as Outcome, StepStatus as Status};
use crate::limits::WORKER_LAST_WORDS;
use crate::retention::{
    Backlog, Candidate, FinishedJob, Next, Position, Retention, RetentionPolicy, Stock, next,
};
use crate::testing::{TestWorld, complete, key, snapshot, step};
use crate::{Actor, Change, EndState, Job, JobId, Reason, ScanKey, Totals, WorkflowId, World};

/// A world and a record of the files on disk.
struct Archive {
    test: TestWorld,
    jobs: BTreeMap<JobId, Arc<Job>>,
    lines: Vec<(FinishedJob, Position)>,
    pages: BTreeSet<u64>,
}

impl Archive {
    fn new() -> Self {
        Self {
            test: TestWorld::new(),
            jobs: BTreeMap::new(),
            lines: Vec::new(),
            pages: BTreeSet::new(),
        }
    }

    fn scan(&self) -> ScanKey {
        key(
            WorkflowId::derive(&crate::testing::source(), "nightly"),
            "probe",
        )
    }

    fn run<C: crate::decide::Command>(&mut self, command: C) -> Result<C::Answer, Refusal> {
        let (changes, answer) = self.test.changes(command)?;
        for change in &changes {
            match change {
                Change::Job(job) if job.state.is_terminal() => {
                    self.jobs.insert(job.id, job.clone());
                }
                Change::JobRemoved(job) => {
                    assert!(
                        self.jobs.remove(&job.id).is_some(),
                        "a job is removed twice"
                    );
                }
                Change::History(entry) => {
                    self.pages.insert(entry.page);
                    let at = entry.at + entry.text.len() as u64;
                    let (page, job) = (entry.page, FinishedJob::of(&entry.line, entry.page));
                    self.lines.push((job, Position { page, at }));
                }
                Change::HistoryPageRemoved(_, page) => {
                    assert!(self.pages.remove(page), "page {page} is removed twice");
                    self.lines.retain(|(job, _)| job.page != *page);
                }
                _ => {}
            }
        }
        Ok(answer)
    }

    /// Runs a job that ends in this state, with an artifact of this size.
    fn end(&mut self, state: EndState, size: u64) -> JobId {
        let (job, token) = self.test.running();
        if size > 0 {
            let artifact = StoreArtifact {
                job,
                token,
                name: "ports".to_owned(),
                size,
                sha256: "0".to_owned(),
                content_digest: "0".to_owned(),
            };
            self.run(artifact).unwrap();
        }
        let bad = step(0, Status::Failed, Some(Outcome::Failed));
        match state {
            EndState::Succeeded => drop(self.run(complete(job, token)).unwrap()),
            EndState::Failed => drop(
                self.run(Complete {
                    steps: vec![bad],
                    ..complete(job, token)
                })
                .unwrap(),
            ),
            _ => drop(
                self.run(Cancel {
                    job,
                    actor: Actor::Daemon,
                })
                .unwrap(),
            ),
        }
        job
    }

    fn retention(&self) -> Retention {
        let retention = self.test.world.retention_or_new(&self.scan());
        Retention::clone(&retention)
    }

    fn protected(&self) -> Vec<JobId> {
        let head = self.test.world.head(&self.scan()).into_iter();
        let successes = head.flat_map(|head| &head.successes);
        successes.map(|success| success.job).collect()
    }

    fn backlog(&self) -> Backlog {
        let retention = self.retention();
        let ahead = self.lines.iter().filter(|(_, end)| *end > retention.from);
        let ahead = ahead.map(|(job, end)| Candidate {
            job: job.clone(),
            end: Some(*end),
        });
        let passed = retention.passed_over.into_iter();
        let passed = passed.map(|job| Candidate { job, end: None });
        passed.chain(ahead).collect()
    }

    fn kept(&self) -> Stock {
        Stock {
            jobs: self.jobs.len() as u64,
            bytes: self.jobs.values().map(|job| job.bytes()).sum(),
        }
    }

    /// Runs one complete pass, in commits of a few jobs each. Returns how many jobs were removed.
    fn prune(&mut self, policy: RetentionPolicy) -> u64 {
        let (before, mut stock) = (self.kept().jobs, self.kept());
        let mut backlogs = [self.backlog()];
        let (mut prune, mut waits) = (self.nothing(), false);
        while let Next::Job(_) = next(&policy, self.test.now, stock, &backlogs) {
            let Candidate { job, end } = backlogs[0].pop_front().unwrap();
            let record = self.jobs.get(&job.id).cloned();
            if let Some(record) = record.filter(|_| !self.protected().contains(&job.id)) {
                let (jobs, bytes) = (1, record.bytes());
                stock.subtract(Stock { jobs, bytes });
                if record.may_log_until(self.test.now).is_some() {
                    waits |= end.is_some();
                    continue;
                }
                prune.remove.push((job, record));
            } else if self.jobs.contains_key(&job.id) {
                prune.stay.extend((end.is_some() && !waits).then_some(job));
            } else {
                prune.gone.push(job.id);
            }
            prune.from = end.filter(|_| !waits).unwrap_or(prune.from);
            if prune.remove.len() == 3 {
                let from = prune.from;
                self.run(std::mem::replace(&mut prune, self.nothing()))
                    .unwrap();
                prune.from = from;
            }
        }
        self.run(prune).unwrap();
        before - self.kept().jobs
    }

    fn nothing(&self) -> Prune {
        Prune {
            scan: self.scan(),
            from: self.retention().from,
            remove: Vec::new(),
            stay: Vec::new(),
            gone: Vec::new(),
        }
    }

    fn check(&self) {
        let world = &self.test.world;
        let Some(head) = world.head(&self.scan()) else {
            return;
        };
        for success in &head.successes {
            assert!(
                self.jobs.contains_key(&success.job),
                "newest successes stay"
            );
        }
        let mut naive = Totals::default();
        for job in self.jobs.values() {
            naive.count(job.state.kind().ended().unwrap(), job.bytes());
        }
        assert_eq!(world.retained(head), naive);
        let retention = self.retention();
        for job in self.jobs.keys() {
            let (line, end) = self.lines.iter().find(|(line, _)| line.id == *job).unwrap();
            let (page, at) = (end.page, end.at - 1);
            let is_found = retention.may_hold(line.id, Position { page, at });
            assert!(is_found, "a stored job may be found");
        }
    }
}

fn jobs(count: u64) -> RetentionPolicy {
    RetentionPolicy {
        jobs: Some(count),
        ..RetentionPolicy::default()
    }
}

#[test]
fn counters_and_digests_are_kept_after_removing_the_jobs() {
    let mut archive = Archive::new();
    let first = archive.end(EndState::Succeeded, 0);
    for _ in 0..4 {
        archive.end(EndState::Cancelled, 20);
    }
    archive.end(EndState::Succeeded, 10);
    assert_eq!(
        archive.prune(jobs(3)),
        0,
        "their workers may still append to the logs"
    );
    archive.test.pass(WORKER_LAST_WORDS);
    assert_eq!(archive.prune(jobs(3)), 3);
    archive.check();
    let head = archive.test.world.head(&archive.scan()).unwrap();
    assert_eq!((head.totals.cancelled, head.totals.succeeded), (4, 2));
    let retention = archive.retention();
    assert_eq!(retention.removed.cancelled, 3);
    assert_eq!(retention.passed_over[0].id, first);
    assert_eq!(archive.prune(jobs(3)), 0, "removed twice");
}

#[test]
fn a_person_can_delete_any_finished_job_whose_log_is_complete() {
    let mut archive = Archive::new();
    let newest = archive.end(EndState::Succeeded, 5);
    let actor = Actor::Daemon;
    let delete = |job: &Arc<Job>| DeleteJob {
        job: job.clone(),
        actor: actor.clone(),
    };
    let job = archive.jobs[&newest].clone();
    archive.run(delete(&job)).unwrap();
    let head = archive.test.world.head(&archive.scan()).unwrap().clone();
    assert_eq!(archive.test.world.retained(&head), Totals::default());
    assert_eq!(head.successes[0].digests["ports"], "0");
    assert_eq!(archive.retention().deletions[0].job, newest);

    let cancelled = archive.end(EndState::Cancelled, 0);
    let job = archive.jobs[&cancelled].clone();
    let refused = archive.run(delete(&job)).unwrap_err();
    assert!(matches!(refused, Refusal::JobNotSilent { .. }), "{refused}");
    archive.test.pass(WORKER_LAST_WORDS);
    archive.run(delete(&job)).unwrap();

    let (running, _) = archive.test.running();
    let running = archive.test.world.job(running).unwrap().clone();
    let refused = archive.run(delete(&running)).unwrap_err();
    assert!(matches!(refused, Refusal::JobNotOver { .. }), "{refused}");

    // The pass finds the lines of removed jobs, and must not count these jobs twice.
    archive.end(EndState::Failed, 0);
    archive.test.pass(WORKER_LAST_WORDS);
    archive.prune(jobs(0));
    assert_eq!(archive.test.world.retained(&head), Totals::default());
}

/// A pass finds that the job must stay, and a person deletes the job before the pass commits.
#[test]
fn a_job_that_had_to_stay_and_was_deleted_is_counted_once() {
    let mut archive = Archive::new();
    let id = archive.end(EndState::Succeeded, 0);
    archive.prune(jobs(0));
    let passed = archive.retention();
    assert_eq!(passed.passed_over[0].id, id);
    let job = archive.jobs[&id].clone();
    let actor = Actor::Daemon;
    archive.run(DeleteJob { job, actor }).unwrap();
    let gone = Prune {
        gone: vec![id],
        ..archive.nothing()
    };
    archive.run(gone).unwrap();
    let retention = archive.retention();
    assert_eq!(
        (retention.removed.succeeded, retention.passed_over),
        (1, vec![])
    );
}

#[test]
fn a_removed_artifact_keeps_its_entry_in_the_record() {
    let mut archive = Archive::new();
    let id = archive.end(EndState::Succeeded, 10);
    let before = archive.jobs[&id].clone();
    let expiry = before.expiry().unwrap();
    let remove = RemoveArtifacts {
        job: before,
        names: vec!["ports".to_owned(), "unknown".to_owned()],
        reason: Reason::Expired,
        actor: Actor::Daemon,
    };
    let (changes, job) = archive.test.changes(remove).unwrap();
    let artifact = &job.state.run().unwrap().artifacts[0];
    assert_eq!(artifact.removed.as_ref().unwrap().reason, Reason::Expired);
    assert_eq!((artifact.size, artifact.content_digest.as_str()), (10, "0"));
    let files = changes.iter().filter(|change| matches!(change, Change::ArtifactRemoved(of, name) if *of == id && name == "ports"));
    assert_eq!(files.count(), 1);
    assert!(
        changes
            .iter()
            .any(|change| matches!(change, Change::ExpiryRemoved(gone) if *gone == expiry))
    );
    assert_eq!(job.bytes(), 300);
    archive.jobs.insert(id, job.clone());
    archive.check();
    let again = RemoveArtifacts {
        job,
        names: vec!["ports".to_owned()],
        reason: Reason::DeletedByUser,
        actor: Actor::Daemon,
    };
    let (changes, job) = archive.test.changes(again).unwrap();
    assert!(changes.is_empty(), "the first reason stays");
    archive
        .run(DeleteJob {
            job,
            actor: Actor::Daemon,
        })
        .unwrap();
    let head = archive.test.world.head(&archive.scan()).unwrap();
    assert_eq!(archive.test.world.retained(head), Totals::default());
}

#[derive(Debug, Clone)]
enum Action {
    End { state: u8, size: u64 },
    Delete { nth: u8 },
    Begin,
    Pass { minutes: i64 },
    Prune(RetentionPolicy),
}

fn action() -> impl Strategy<Value = Action> {
    let some = |bound: u64| prop::option::of(0..bound);
    let policy = (some(8), some(200), some(2_000)).prop_map(|(jobs, age, bytes)| {
        let age = age.map(|minutes| TimeDelta::minutes(i64::try_from(minutes).unwrap()));
        RetentionPolicy { jobs, age, bytes }
    });
    prop_oneof![
        12 => (0..3_u8, 0..50_u64).prop_map(|(state, size)| Action::End { state, size }),
        1 => (0..8_u8).prop_map(|nth| Action::Delete { nth }),
        1 => Just(Action::Begin),
        4 => (-10..60_i64).prop_map(|minutes| Action::Pass { minutes }),
        4 => policy.prop_map(Action::Prune),
    ]
}

#[test]
fn every_policy_keeps_the_newest_successes_and_unfinished_jobs() {
    let config = Config {
        cases: 64,
        failure_persistence: None,
        ..Config::default()
    };
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let removed = Cell::new(0);
    TestRunner::new_with_rng(config, seed)
        .run(&prop::collection::vec(action(), 1..60), |actions| {
            let mut archive = Archive::new();
            let mut unfinished = BTreeSet::new();
            for action in actions {
                match action {
                    Action::End { state, size } => {
                        let states = [EndState::Succeeded, EndState::Failed, EndState::Cancelled];
                        archive.end(states[usize::from(state)], size);
                    }
                    Action::Delete { nth } => {
                        let protected = archive.protected();
                        let nth = archive.jobs.values().nth(usize::from(nth)).cloned();
                        if let Some(job) = nth.filter(|job| !protected.contains(&job.id)) {
                            let actor = Actor::Daemon;
                            // Refused while the worker may still append to the log.
                            archive.run(DeleteJob { job, actor }).ok();
                        }
                    }
                    Action::Begin => drop(unfinished.insert(archive.test.running().0)),
                    Action::Pass { minutes } => archive.test.pass(TimeDelta::minutes(minutes)),
                    Action::Prune(policy) => {
                        removed.set(removed.get() + archive.prune(policy));
                        let silent = archive.jobs.values().all(|job| {
                            job.state.end().unwrap().at + WORKER_LAST_WORDS <= archive.test.now
                        });
                        if silent && let Some(limit) = policy.jobs {
                            let protected = archive.protected().len() as u64;
                            assert!(archive.kept().jobs <= limit.max(protected));
                        }
                    }
                }
                archive.check();
                let world = &archive.test.world;
                assert!(unfinished.iter().all(|job| world.job(*job).is_some()));
            }
            let mut replayed = World::default();
            for change in &archive.test.decided {
                replayed.apply(change);
                replayed.apply(change);
            }
            assert_eq!(snapshot(&replayed), snapshot(&archive.test.world));
            Ok(())
        })
        .unwrap();
    assert!(removed.get() > 100, "{} jobs were removed", removed.get());
}
