//! Removes finished jobs and their artifacts: for a person, by policy, or because artifacts have expired.
//!
//! The world does not hold finished jobs, so the commands carry their records. Only these commands and
//! [`CutEndedLog`](super::CutEndedLog) change the record of a finished job. The caller reads and submits one job at a
//! time, so that the record is current.

use std::sync::Arc;

use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::job::{EndState, Job, Removed};
use crate::limits::ARTIFACTS_REMOVED;
use crate::moment::Moment;
use crate::retention::{Deletion, Expiry, FinishedJob, Position, Retention};
use crate::world::World;
use crate::{Actor, JobId, Reason, ScanKey};

/// Remove a finished job for a person.
#[derive(Debug, Clone)]
pub struct DeleteJob {
    /// The job's current record.
    pub job: Arc<Job>,
    pub actor: Actor,
}

impl Command for DeleteJob {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let job = self.job;
        let state = check_over(world, &job)?;
        if let Some(until) = job.may_log_until(moment.now) {
            return Err(Refusal::JobNotSilent { job: job.id, until });
        }
        let mut retention = Arc::unwrap_or_clone(world.retention_or_new(&job.scan_key()));
        let before = retention.clone();
        retention.passed_over.retain(|passed| passed.id != job.id);
        retention.removed.count(state, job.bytes());
        retention.note_deletion(Deletion {
            job: job.id,
            at: moment.now,
            actor: self.actor,
        });
        let mut changes = vec![Change::JobRemoved(job)];
        record(&mut changes, &before, retention);
        Ok(Decision::of(changes))
    }
}

/// Remove the jobs of a scan that its policy does not keep, and record how far its history was read.
#[derive(Debug, Clone)]
pub struct Prune {
    pub scan: ScanKey,
    /// The history was read up to here. Every earlier job is removed, or is listed in the scan's record, in `remove` or
    /// in `stay`.
    pub from: Position,
    /// The current records of the jobs to remove.
    pub remove: Vec<(FinishedJob, Arc<Job>)>,
    /// Jobs that must stay.
    pub stay: Vec<FinishedJob>,
    /// Jobs that had to stay, but whose records no longer exist.
    pub gone: Vec<JobId>,
}

impl Command for Prune {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    /// The newest two successes always stay.
    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let mut retention = Arc::unwrap_or_clone(world.retention_or_new(&self.scan));
        let before = retention.clone();
        let (mut changes, mut stay, mut gone) = (Vec::new(), self.stay, self.gone);
        for (job, record) in self.remove {
            match record.state.kind().ended() {
                Some(state) if !is_protected(world, &self.scan, &record) => {
                    gone.push(job.id);
                    retention.removed.count(state, record.bytes());
                    changes.push(Change::JobRemoved(record));
                }
                Some(_) | None => stay.push(job),
            }
        }
        let passed_over = &mut retention.passed_over;
        passed_over.retain(|passed| !gone.contains(&passed.id));
        for job in stay {
            if passed_over.iter().all(|passed| passed.id != job.id) {
                passed_over.push(job);
            }
        }
        // Another pass may have read further in between.
        retention.from = retention.from.max(self.from);
        if retention != before {
            record(&mut changes, &before, retention);
        }
        Ok(Decision::of(changes))
    }
}

/// Stores the new record of a scan's removed jobs, and removes history pages that are no longer needed.
fn record(changes: &mut Vec<Change>, before: &Retention, retention: Retention) {
    let pages = retention.pages_done_since(before).into_iter();
    changes.extend(pages.map(|page| Change::HistoryPageRemoved(retention.key(), page)));
    changes.push(Change::Retention(Arc::new(retention)));
}

/// Remove artifacts of a finished job. Their entries in its record stay, with the digests.
#[derive(Debug, Clone)]
pub struct RemoveArtifacts {
    /// The job's current record.
    pub job: Arc<Job>,
    /// Their names. At most [`ARTIFACTS_REMOVED`] are removed at once.
    pub names: Vec<String>,
    pub reason: Reason,
    pub actor: Actor,
}

impl Command for RemoveArtifacts {
    type Answer = Arc<Job>;
    const URGENCY: Urgency = Urgency::Finishing;

    /// Artifacts that were already removed do not change.
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
        let mut retention = Arc::unwrap_or_clone(world.retention_or_new(&job.scan_key()));
        retention.removed.bytes += bytes;
        changes.push(Change::Retention(Arc::new(retention)));
        changes.push(Change::Job(job.clone()));
        Ok(Decision {
            changes,
            answer: job,
        })
    }
}

/// Remove an obsolete expiry entry: the job was removed, or its artifacts expire at another time.
#[derive(Debug, Clone)]
pub struct DropExpiry {
    pub expiry: Expiry,
}

impl Command for DropExpiry {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, _: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        Ok(Decision::of([Change::ExpiryRemoved(self.expiry)]))
    }
}

/// True if no policy may remove the job.
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
