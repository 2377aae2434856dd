//! Removals of jobs and artifacts: clients that request them, the answers, and a check that only allowed jobs were
//! removed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use chrono::{DateTime, Utc};
use client::Client;
use uuid::Uuid;
use wire::{Job, JobState, PruneRequest};

use crate::load::{KEPT, PAUSE, WORKFLOWS};
use crate::promises::{Finding, Promises};
use crate::tree::Past;

/// Finished jobs that pruning keeps in a workflow. It runs rarely, so that retention removes jobs as well.
const PRUNED_TO: u64 = 12;
const PRUNE_PAUSE: Duration = Duration::from_millis(500);

/// Jobs of a workflow that always stay: the newest two successes of its two scans.
const PROTECTED: usize = 4;

/// One in this many jobs is deleted, and one loses its artifact.
const DELETED: u128 = 8;

/// A job to delete is chosen from this many of the newest jobs.
const NEWEST: usize = 50;

/// Requested and observed removals.
#[derive(Default)]
pub(crate) struct Removals {
    /// Jobs whose deletion was requested.
    asked: BTreeSet<Uuid>,
    /// Jobs that are known to be removed.
    gone: BTreeSet<Uuid>,
    /// Jobs whose artifacts were requested to be deleted, and whether that was acknowledged.
    artifacts: BTreeMap<Uuid, bool>,
    /// Jobs that were found missing and are not checked yet.
    missing: BTreeSet<Uuid>,
    /// Jobs that are missing without a request.
    retained: BTreeSet<Uuid>,
}

/// The numbers for the report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Removed {
    deleted: usize,
    artifacts: usize,
    by_retention: usize,
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            deleted,
            artifacts,
            by_retention,
        } = self;
        write!(
            f,
            "{deleted} jobs and the artifacts of {artifacts} deleted, {by_retention} jobs removed by retention"
        )
    }
}

/// A deletion that a client requests.
pub(crate) enum Deletion {
    Job(Uuid),
    Artifact(Uuid),
}

impl Removals {
    /// Chooses a deletion among the given jobs that was not requested yet, and marks it as requested.
    pub(crate) fn choose<'a>(
        &mut self,
        newest_first: impl Iterator<Item = &'a Job>,
    ) -> Option<Deletion> {
        let over = newest_first
            .take(NEWEST)
            .filter(|job| job.state == JobState::Succeeded && !self.asked.contains(&job.id));
        for job in over {
            match job.id.as_u128() % DELETED {
                0 => {
                    self.asked.insert(job.id);
                    return Some(Deletion::Job(job.id));
                }
                1 if !job.artifacts.is_empty() && !self.artifacts.contains_key(&job.id) => {
                    self.artifacts.insert(job.id, false);
                    return Some(Deletion::Artifact(job.id));
                }
                _ => {}
            }
        }
        None
    }

    /// Records that a job was removed. Returns true if this was not known.
    pub(crate) fn saw_gone(&mut self, job: Uuid) -> bool {
        if !self.asked.contains(&job) {
            self.missing.insert(job);
        }
        self.gone.insert(job)
    }

    pub(crate) fn is_gone(&self, job: Uuid) -> bool {
        self.gone.contains(&job)
    }

    /// Records that the artifacts of a job were removed. Returns true if this was not known.
    pub(crate) fn note_artifacts_removed(&mut self, job: Uuid) -> bool {
        self.artifacts.insert(job, true) != Some(true)
    }

    /// Checks the artifacts of a job, present or removed.
    pub(crate) fn compare_artifacts(&mut self, job: &Job) -> Option<Finding> {
        let is_removed = job.artifacts.iter().any(|found| found.removed.is_some());
        let asked = self.artifacts.get(&job.id).copied();
        let id = job.id;
        match (asked, is_removed) {
            (None, true) => Some(Finding::Lost(format!("the artifacts of job {id}"))),
            (Some(true), false) if !job.artifacts.is_empty() => Some(Finding::Lost(format!(
                "the deletion of the artifacts of job {id}"
            ))),
            (Some(_), true) => {
                self.note_artifacts_removed(id);
                None
            }
            (None | Some(_), false) => None,
        }
    }

    /// Checks that retention was allowed to remove the jobs that are missing without a request. It
    /// must keep unfinished jobs, the newest successes, and the configured number of others.
    pub(crate) fn judge(&mut self, past: &Past) -> Vec<Finding> {
        let mut findings = Vec::new();
        for job in std::mem::take(&mut self.missing) {
            let Some(end) = past.ended.get(&job) else {
                if accepted_at(job) >= past.whole_since {
                    findings.push(Finding::Lost(format!("job {job}, which had not ended")));
                }
                continue;
            };
            let later = past
                .ended
                .values()
                .filter(|other| other.workflow == end.workflow && other.at >= end.at)
                .count();
            if later + PROTECTED < (PRUNED_TO as usize).min(KEPT) {
                findings.push(Finding::Lost(format!(
                    "job {job}, after which only {later} have ended"
                )));
            }
            self.retained.insert(job);
        }
        let kept = past.successes.iter();
        let lost = kept.filter(|job| !past.jobs.contains(*job) && !self.asked.contains(*job));
        findings.extend(lost.map(|job| Finding::Lost(format!("job {job}, a newest success"))));
        findings
    }

    pub(crate) fn count(&self) -> Removed {
        Removed {
            deleted: self.gone.intersection(&self.asked).count(),
            artifacts: self.artifacts.values().filter(|is_gone| **is_gone).count(),
            by_retention: self.retained.len(),
        }
    }
}

/// The time in a job's id, at which it was accepted.
fn accepted_at(job: Uuid) -> DateTime<Utc> {
    let at = job.get_timestamp().unwrap();
    let (seconds, nanos) = at.to_unix();
    DateTime::from_timestamp(seconds as i64, nanos).unwrap()
}

/// Deletes a job or artifact, if there is a candidate.
pub(crate) async fn delete(client: &Client, promises: &Mutex<Promises>) {
    let chosen = promises.lock().unwrap().choose_deletion();
    match chosen {
        Some(Deletion::Job(job)) => {
            let answer = client.delete_job(&job.to_string()).await;
            // Retention may have been faster, and a repeated request finds the result of the first.
            let is_gone = answer.err().is_none_or(|it| it.status() == Some(404));
            is_gone.then(|| promises.lock().unwrap().saw_gone(job));
        }
        Some(Deletion::Artifact(job)) => {
            let answer = client.delete_artifact(&job.to_string(), "numbers").await;
            let is_gone = answer.is_ok();
            is_gone.then(|| promises.lock().unwrap().note_artifacts_removed(job));
        }
        None => {}
    }
    tokio::time::sleep(PAUSE).await;
}

/// Removes all but a few jobs of a workflow.
pub(crate) async fn prune(client: &Client) {
    tokio::time::sleep(PRUNE_PAUSE).await;
    let request = PruneRequest {
        jobs: Some(PRUNED_TO),
        ..PruneRequest::default()
    };
    // The removed jobs are found later; the answer is not needed.
    drop(client.prune(WORKFLOWS[0], &request).await);
}
