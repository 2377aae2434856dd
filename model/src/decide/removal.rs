//! Removing finished jobs and their artifacts: by a person, by policy, or because they have expired.
//!
//! The world does not hold finished jobs, so the commands carry their records. Only these commands and
//! [`CutEndedLog`](super::CutEndedLog) change the record of a finished job. Whoever submits them reads and submits one
//! at a time, so that the record is current.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::job::{EndState, Job, Removed};
use crate::limits::ARTIFACTS_REMOVED;
use crate::moment::Moment;
use crate::retention::{Deletion, Expiry, FinishedJob, Position, Retention};
use crate::world::World;
use crate::{Actor, Reason, ScanKey};

/// Remove a finished job for a person.
#[derive(Debug, Clone)]
pub struct DeleteJob {
    /// The job's present record.
    pub job: Arc<Job>,
    pub actor: Actor,
}

impl Command for DeleteJob {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let job = self.job;
        let state = check_over(world, &job)?;
        if let Some(until) = job.last_words_until(moment.now) {
            return Err(Refusal::JobNotSilent { job: job.id, until });
        }
        let mut retention = retention_of(world, &job.scan_key());
        let passed = retention.passed_over.len();
        let page = retention
            .passed_over
            .iter()
            .find(|passed| passed.id == job.id)
            .map(|passed| passed.page);
        retention.passed_over.retain(|passed| passed.id != job.id);
        if retention.passed_over.len() == passed {
            retention.note_gone_ahead(state);
        }
        retention.removed.count(state, job.bytes());
        retention.note_deletion(Deletion {
            job: job.id,
            at: moment.now,
            actor: self.actor,
        });
        let page = page.filter(|page| retention.is_done_with(*page));
        let mut changes = vec![Change::JobRemoved(job)];
        changes.extend(page.map(|page| Change::HistoryPageRemoved(retention.key(), page)));
        changes.push(Change::Retention(Arc::new(retention)));
        Ok(Decision {
            changes,
            answer: (),
        })
    }
}

/// Read the next part of a scan's history, and remove the jobs that the policy does not keep.
#[derive(Debug, Clone)]
pub struct Prune {
    pub scan: ScanKey,
    /// Up to where its history had been read when the jobs were chosen.
    pub from: Position,
    /// The jobs, in the order in which they ended.
    pub jobs: Vec<Chosen>,
}

#[derive(Debug, Clone)]
pub struct Chosen {
    pub job: FinishedJob,
    /// Where its line ends; none for a job that was passed over before.
    pub end: Option<Position>,
    pub fate: ChosenFate,
}

/// What happens to a job that was read.
#[derive(Debug, Clone)]
pub enum ChosenFate {
    /// It is removed. Its record lists what to remove.
    Remove(Arc<Job>),
    /// It is gone already.
    Gone,
    Stay {
        /// Its bytes on disk now. Its line has more once artifacts were removed.
        bytes: u64,
    },
}

/// What is counted as removed: the jobs removed here, and those whose files somebody had removed by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    pub jobs: u64,
    /// Bytes of their logs and artifacts.
    pub bytes: u64,
}

impl Pruned {
    fn count(&mut self, retention: &mut Retention, state: EndState, bytes: u64) {
        self.jobs += 1;
        self.bytes += bytes;
        retention.removed.count(state, bytes);
    }
}

impl Command for Prune {
    type Answer = Pruned;
    const URGENCY: Urgency = Urgency::Finishing;

    /// Does nothing if the history was read on since the choice. The newest two successes stay in any case.
    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<Pruned>, Refusal> {
        let mut retention = retention_of(world, &self.scan);
        if retention.from != self.from {
            return Ok(Decision::unchanged(Pruned::default()));
        }
        let mut pruned = Pruned::default();
        let mut changes = Vec::new();
        let mut pages = BTreeSet::new();
        for chosen in self.jobs {
            let mut job = chosen.job;
            let stays = match chosen.fate {
                ChosenFate::Remove(record) => match record.state.kind().ended() {
                    Some(state) if !is_protected(world, &self.scan, &record) => {
                        pruned.count(&mut retention, state, record.bytes());
                        changes.push(Change::JobRemoved(record));
                        false
                    }
                    Some(_) | None => {
                        job.bytes = record.bytes();
                        true
                    }
                },
                ChosenFate::Gone => {
                    // A person deleted it, or removed its files by hand. Its record is gone, so artifacts that were
                    // removed and counted before are counted again.
                    let was_counted = match chosen.end {
                        Some(_) => retention.take_gone_ahead(job.state),
                        // Deleting a job that was passed over removes it from that list.
                        None => retention
                            .passed_over
                            .iter()
                            .all(|passed| passed.id != job.id),
                    };
                    if !was_counted {
                        pruned.count(&mut retention, job.state, job.bytes);
                    }
                    false
                }
                ChosenFate::Stay { bytes } => {
                    job.bytes = bytes;
                    true
                }
            };
            match chosen.end {
                Some(end) => {
                    pages.extend(retention.from.page..end.page);
                    retention.from = end;
                    if stays {
                        retention.passed_over.push(job);
                    }
                }
                None if stays => {}
                None => {
                    pages.insert(job.page);
                    retention.passed_over.retain(|passed| passed.id != job.id);
                }
            }
        }
        pages.retain(|page| retention.is_done_with(*page));
        changes.extend(
            pages
                .into_iter()
                .map(|page| Change::HistoryPageRemoved(self.scan.clone(), page)),
        );
        if world
            .retention(&self.scan)
            .is_none_or(|before| **before != retention)
        {
            changes.push(Change::Retention(Arc::new(retention)));
        }
        Ok(Decision {
            changes,
            answer: pruned,
        })
    }
}

/// Remove artifacts of a finished job. Their entries in its record stay, with the digests.
#[derive(Debug, Clone)]
pub struct RemoveArtifacts {
    /// The job's present record.
    pub job: Arc<Job>,
    /// Their names. At most [`ARTIFACTS_REMOVED`] are removed at once.
    pub names: Vec<String>,
    pub reason: Reason,
    pub actor: Actor,
}

impl Command for RemoveArtifacts {
    type Answer = Arc<Job>;
    const URGENCY: Urgency = Urgency::Finishing;

    /// Artifacts that are removed already do not change.
    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<Arc<Job>>, Refusal> {
        check_over(world, &self.job)?;
        let before = self.job.expiry();
        let mut job = Job::clone(&self.job);
        let run = job.state.run_mut();
        let stored = run
            .into_iter()
            .flat_map(|run| &mut run.artifacts)
            .filter(|artifact| artifact.removed.is_none() && self.names.contains(&artifact.name));
        let (mut changes, mut bytes) = (Vec::new(), 0);
        for artifact in stored.take(ARTIFACTS_REMOVED) {
            artifact.removed = Some(Removed {
                at: moment.now,
                reason: self.reason.clone(),
                actor: self.actor.clone(),
            });
            bytes += artifact.size;
            changes.push(Change::ArtifactRemoved(self.job.id, artifact.name.clone()));
        }
        if changes.is_empty() {
            return Ok(Decision::unchanged(self.job));
        }
        let job = Arc::new(job);
        let after = job.expiry();
        if before != after {
            changes.extend(before.map(Change::ExpiryRemoved));
            changes.extend(after.map(Change::Expiry));
        }
        let mut retention = retention_of(world, &job.scan_key());
        retention.removed.bytes += bytes;
        // A job that was passed over has fewer bytes now, and will be counted so when it is removed.
        for passed in &mut retention.passed_over {
            if passed.id == job.id {
                passed.bytes = job.bytes();
            }
        }
        changes.push(Change::Retention(Arc::new(retention)));
        changes.push(Change::Job(job.clone()));
        Ok(Decision {
            changes,
            answer: job,
        })
    }
}

/// Forget an expiry that is obsolete: the job is gone, or its artifacts expire at another time.
#[derive(Debug, Clone)]
pub struct DropExpiry {
    pub expiry: Expiry,
}

impl Command for DropExpiry {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, _: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        Ok(Decision {
            changes: vec![Change::ExpiryRemoved(self.expiry)],
            answer: (),
        })
    }
}

/// Whether no policy removes the job.
fn is_protected(world: &World, scan: &ScanKey, job: &Job) -> bool {
    let head = world.head(scan);
    head.is_some_and(|head| head.successes.iter().any(|success| success.job == job.id))
        || world.job(job.id).is_some()
}

pub(super) fn check_over(world: &World, job: &Job) -> Result<EndState, Refusal> {
    match job.state.kind().ended() {
        Some(state) if world.job(job.id).is_none() => Ok(state),
        Some(_) | None => Err(Refusal::JobNotOver {
            job: job.id,
            state: job.state.name(),
        }),
    }
}

fn retention_of(world: &World, scan: &ScanKey) -> Retention {
    world.retention(scan).map_or_else(
        || Retention::new(scan.workflow, scan.scan.clone()),
        |retention| Retention::clone(retention),
    )
}
