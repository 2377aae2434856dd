//! Removing finished jobs and artifacts.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::decide::{
    Cancel, Chosen, ChosenFate, Complete, DeleteJob, Prune, Pruned, Refusal, RemoveArtifacts,
    StoreArtifact,
};
use crate::job::{StepOutcome as Outcome, StepStatus as Status};
use crate::limits::WORKER_LAST_WORDS;
use crate::retention::{
    Ahead, Backlog, Candidate, Fate, FinishedJob, Outlook, Position, RetentionPolicy, Stock, choose,
};
use crate::testing::{House, complete, key, snapshot, step};
use crate::{Actor, Change, EndState, Job, JobId, Reason, ScanKey, Totals, WorkflowId, World};

/// A house with a record of what is on disk.
struct Archive {
    house: House,
    jobs: BTreeMap<JobId, Arc<Job>>,
    lines: Vec<Ahead>,
    pages: BTreeSet<u64>,
}

impl Archive {
    fn new() -> Self {
        Self {
            house: House::new(),
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
        let (changes, answer) = self.house.changes(command)?;
        for change in &changes {
            match change {
                Change::Job(job) if job.state.is_terminal() => {
                    self.jobs.insert(job.id, job.clone());
                }
                Change::JobRemoved(job) => {
                    assert!(self.jobs.remove(&job.id).is_some(), "it is removed once");
                }
                Change::History(entry) => {
                    self.pages.insert(entry.page);
                    let at = entry.at + entry.text.len() as u64;
                    self.lines.push(Ahead {
                        job: FinishedJob::of(&entry.line, entry.page),
                        end: Position {
                            page: entry.page,
                            at,
                        },
                    });
                }
                Change::HistoryPageRemoved(_, page) => {
                    assert!(self.pages.remove(page), "page {page} is removed once");
                    self.lines.retain(|line| line.job.page != *page);
                }
                _ => {}
            }
        }
        Ok(answer)
    }

    /// A job that ends in that way, with an artifact of that size.
    fn end(&mut self, state: EndState, size: u64) -> JobId {
        let (job, token) = self.house.running();
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

    fn backlog(&self) -> Backlog {
        let scan = self.scan();
        let world = &self.house.world;
        let from = world
            .retention(&scan)
            .map_or_else(Position::default, |it| it.from);
        let passed = world
            .retention(&scan)
            .into_iter()
            .flat_map(|it| &it.passed_over);
        let passed = passed.map(|job| Candidate {
            job: job.clone(),
            end: None,
        });
        let ahead = self.lines.iter().filter(|line| line.end > from);
        let ahead = ahead.map(|line| Candidate {
            job: line.job.clone(),
            end: Some(line.end),
        });
        let head = world.head(&scan);
        Backlog {
            room: 100,
            protected: head
                .iter()
                .flat_map(|head| head.successes.iter().map(|success| success.job))
                .collect(),
            queue: passed.chain(ahead).collect::<VecDeque<_>>(),
            is_whole: true,
            scan,
        }
    }

    fn kept(&self) -> Stock {
        Stock {
            jobs: self.jobs.len() as u64,
            bytes: self.jobs.values().map(|job| job.bytes()).sum(),
        }
    }

    /// One whole pass.
    fn prune(&mut self, policy: RetentionPolicy) -> Pruned {
        let mut all = Pruned::default();
        loop {
            let (mut stock, mut backlogs) = (self.kept(), [self.backlog()]);
            // Those that were passed over are so again.
            let passed = backlogs[0].queue.iter().filter(|it| it.end.is_none());
            let room = 5 + passed.count();
            let choice = choose(&policy, self.house.now, &mut stock, &mut backlogs, room);
            let from = self.house.world.retention(&backlogs[0].scan);
            let from = from.map_or_else(Position::default, |it| it.from);
            let jobs = choice.taken.into_iter().map(|(_, candidate, fate)| Chosen {
                fate: match (fate, self.jobs.get(&candidate.job.id)) {
                    (_, None) => ChosenFate::Gone,
                    (Fate::PassOver(_), Some(job)) => ChosenFate::Stay { bytes: job.bytes() },
                    (Fate::Remove, Some(job)) => ChosenFate::Remove(job.clone()),
                },
                job: candidate.job,
                end: candidate.end,
            });
            let prune = Prune {
                scan: self.scan(),
                from,
                jobs: jobs.collect(),
            };
            let pruned = self.run(prune).unwrap();
            all.jobs += pruned.jobs;
            all.bytes += pruned.bytes;
            if let Outlook::Done(_) = choice.outlook {
                return all;
            }
        }
    }

    fn check(&self) {
        let world = &self.house.world;
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
        let retention = world.retention(&self.scan());
        let may_hold = |line: &Ahead| {
            let before = Position {
                page: line.end.page,
                at: line.end.at - 1,
            };
            retention.is_none_or(|it| it.may_hold(line.job.id, before))
        };
        for job in self.jobs.keys() {
            let line = self.lines.iter().find(|line| line.job.id == *job);
            assert!(may_hold(line.unwrap()), "what is there is found");
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
fn counters_and_digests_outlive_the_jobs() {
    let mut archive = Archive::new();
    let first = archive.end(EndState::Succeeded, 0);
    for _ in 0..4 {
        archive.end(EndState::Failed, 20);
    }
    archive.end(EndState::Succeeded, 10);
    assert_eq!(archive.prune(jobs(3)), Pruned::default(), "they may talk");
    archive.house.pass(WORKER_LAST_WORDS);
    let pruned = archive.prune(jobs(3));
    assert_eq!(
        pruned,
        Pruned {
            jobs: 3,
            bytes: 3 * 320
        }
    );
    archive.check();
    let head = archive.house.world.head(&archive.scan()).unwrap();
    assert_eq!((head.totals.failed, head.totals.succeeded), (4, 2));
    let retention = archive.house.world.retention(&archive.scan()).unwrap();
    assert_eq!(retention.removed.failed, 3);
    assert_eq!(retention.passed_over[0].id, first);
    assert_eq!(archive.prune(jobs(3)), Pruned::default(), "once");
}

#[test]
fn what_was_chosen_before_the_world_moved_on_is_chosen_again() {
    let mut archive = Archive::new();
    for _ in 0..4 {
        archive.end(EndState::Failed, 0);
    }
    let mut stale = Prune {
        scan: archive.scan(),
        from: Position { page: 0, at: 1 },
        jobs: Vec::new(),
    };
    let backlog = archive.backlog();
    let job = archive.jobs.values().next().unwrap().clone();
    stale.jobs.push(Chosen {
        job: backlog.queue[0].job.clone(),
        end: backlog.queue[0].end,
        fate: ChosenFate::Remove(job),
    });
    assert_eq!(archive.run(stale).unwrap(), Pruned::default());
    assert_eq!(archive.jobs.len(), 4);
}

#[test]
fn a_person_may_delete_any_job_that_is_over_and_silent() {
    let mut archive = Archive::new();
    let newest = archive.end(EndState::Succeeded, 5);
    let actor = Actor::Daemon;
    let delete = |job: &Arc<Job>| DeleteJob {
        job: job.clone(),
        actor: actor.clone(),
    };
    let job = archive.jobs[&newest].clone();
    archive.run(delete(&job)).unwrap();
    let head = archive.house.world.head(&archive.scan()).unwrap().clone();
    assert_eq!(archive.house.world.retained(&head), Totals::default());
    assert_eq!(head.successes[0].digests["ports"], "0");
    let retention = archive.house.world.retention(&archive.scan()).unwrap();
    let gone = BTreeMap::from([(EndState::Succeeded, 1)]);
    assert_eq!(
        (&retention.gone_ahead, retention.deletions[0].job),
        (&gone, newest)
    );

    let cancelled = archive.end(EndState::Cancelled, 0);
    let job = archive.jobs[&cancelled].clone();
    let refused = archive.run(delete(&job)).unwrap_err();
    assert!(matches!(refused, Refusal::JobNotSilent { .. }), "{refused}");
    archive.house.pass(WORKER_LAST_WORDS);
    archive.run(delete(&job)).unwrap();

    let (running, _) = archive.house.running();
    let running = archive.house.world.job(running).unwrap().clone();
    let refused = archive.run(delete(&running)).unwrap_err();
    assert!(matches!(refused, Refusal::JobNotOver { .. }), "{refused}");

    // The pass finds the lines of jobs that are gone, and counts none of them twice.
    archive.end(EndState::Failed, 0);
    archive.house.pass(WORKER_LAST_WORDS);
    archive.prune(jobs(0));
    assert_eq!(archive.house.world.retained(&head), Totals::default());
    let retention = archive.house.world.retention(&archive.scan()).unwrap();
    assert!(retention.gone_ahead.is_empty());
}

#[test]
fn what_was_removed_by_hand_is_counted_once_its_line_is_read() {
    let mut archive = Archive::new();
    let (by_hand, by_person) = (
        archive.end(EndState::Failed, 0),
        archive.end(EndState::Cancelled, 0),
    );
    for _ in 0..3 {
        archive.end(EndState::Failed, 0);
    }
    archive.house.pass(WORKER_LAST_WORDS);
    let job = archive.jobs[&by_person].clone();
    let actor = Actor::Daemon;
    archive.run(DeleteJob { job, actor }).unwrap();
    let known = archive.jobs.remove(&by_hand).unwrap();
    let backlog = archive.backlog();
    let jobs = backlog.queue.iter().take(2).map(|candidate| Chosen {
        job: candidate.job.clone(),
        end: candidate.end,
        fate: ChosenFate::Gone,
    });
    let prune = Prune {
        scan: archive.scan(),
        from: Position::default(),
        jobs: jobs.collect(),
    };
    let (jobs, bytes) = (1, known.bytes());
    assert_eq!(archive.run(prune).unwrap(), Pruned { jobs, bytes });
    // Neither was taken for the other, though the one by hand came first.
    archive.check();
    let retention = archive.house.world.retention(&archive.scan()).unwrap();
    assert_eq!(
        (retention.removed.failed, retention.removed.cancelled),
        (1, 1)
    );
    assert!(retention.gone_ahead.is_empty());
}

/// A pass has loaded a job into the backlog, and a person deletes it before the pass comes to it.
#[test]
fn a_job_that_was_passed_over_and_deleted_is_counted_once() {
    let mut archive = Archive::new();
    let id = archive.end(EndState::Succeeded, 0);
    archive.prune(jobs(0));
    let passed = {
        let retention = archive.house.world.retention(&archive.scan()).unwrap();
        (retention.passed_over[0].clone(), retention.from)
    };
    archive.house.pass(WORKER_LAST_WORDS);
    let job = archive.jobs[&id].clone();
    let actor = Actor::Daemon;
    archive.run(DeleteJob { job, actor }).unwrap();
    let prune = Prune {
        scan: archive.scan(),
        from: passed.1,
        jobs: vec![Chosen {
            job: passed.0,
            end: None,
            fate: ChosenFate::Gone,
        }],
    };
    assert_eq!(archive.run(prune).unwrap(), Pruned::default());
    let retention = archive.house.world.retention(&archive.scan()).unwrap();
    assert_eq!(retention.removed.succeeded, 1);
}

#[test]
fn a_job_that_stays_takes_what_is_left_of_it() {
    let mut archive = Archive::new();
    let id = archive.end(EndState::Succeeded, 10);
    let remove = RemoveArtifacts {
        job: archive.jobs[&id].clone(),
        names: vec!["ports".to_owned()],
        reason: Reason::Expired,
        actor: Actor::Daemon,
    };
    archive.run(remove).unwrap();
    archive.prune(jobs(0));
    let retention = archive.house.world.retention(&archive.scan()).unwrap();
    assert_eq!(retention.passed_over[0].bytes, 300);
    // Then nothing is counted twice when somebody removes it by hand.
    archive.jobs.remove(&id).unwrap();
    archive.end(EndState::Failed, 0);
    archive.house.pass(WORKER_LAST_WORDS);
    archive.prune(jobs(0));
    let head = archive.house.world.head(&archive.scan()).unwrap();
    assert_eq!(archive.house.world.retained(head), Totals::default());
}

#[test]
fn an_artifact_goes_and_what_is_known_of_it_stays() {
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
    let (changes, job) = archive.house.changes(remove).unwrap();
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
    let (changes, job) = archive.house.changes(again).unwrap();
    assert!(changes.is_empty(), "the first reason stays");
    archive
        .run(DeleteJob {
            job,
            actor: Actor::Daemon,
        })
        .unwrap();
    let head = archive.house.world.head(&archive.scan()).unwrap();
    assert_eq!(archive.house.world.retained(head), Totals::default());
}

/// Something that may happen.
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
fn whatever_the_policy_the_newest_successes_and_unfinished_jobs_stay() {
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
                        let protected = archive.backlog().protected;
                        let nth = archive.jobs.values().nth(usize::from(nth)).cloned();
                        if let Some(job) = nth.filter(|job| !protected.contains(&job.id)) {
                            let actor = Actor::Daemon;
                            // Refused while its runner may talk.
                            archive.run(DeleteJob { job, actor }).ok();
                        }
                    }
                    Action::Begin => drop(unfinished.insert(archive.house.running().0)),
                    Action::Pass { minutes } => archive.house.pass(TimeDelta::minutes(minutes)),
                    Action::Prune(policy) => {
                        let before = archive.kept();
                        let pruned = archive.prune(policy);
                        assert_eq!(before.jobs - pruned.jobs, archive.kept().jobs);
                        assert_eq!(before.bytes - pruned.bytes, archive.kept().bytes);
                        removed.set(removed.get() + pruned.jobs);
                        let silent = archive.jobs.values().all(|job| {
                            job.state.end().unwrap().at + WORKER_LAST_WORDS <= archive.house.now
                        });
                        if silent && let Some(limit) = policy.jobs {
                            let protected = archive.backlog().protected.len() as u64;
                            assert!(archive.kept().jobs <= limit.max(protected));
                        }
                    }
                }
                archive.check();
                let world = &archive.house.world;
                assert!(unfinished.iter().all(|job| world.job(*job).is_some()));
            }
            let mut replayed = World::default();
            for change in &archive.house.decided {
                replayed.apply(change);
                replayed.apply(change);
            }
            assert_eq!(snapshot(&replayed), snapshot(&archive.house.world));
            Ok(())
        })
        .unwrap();
    assert!(removed.get() > 100, "{} jobs were removed", removed.get());
}
