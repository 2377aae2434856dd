//! Retention: which finished jobs are removed, and the record of the removed jobs.
//!
//! A scan's history is read once, oldest job first. The record contains how far it was read, and the few earlier jobs that
//! had to stay. History lines whose job record no longer exists are ignored: these jobs were counted when they were removed.

mod choice;
mod policy;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use workflow::ScanName;

pub use choice::{Backlog, Candidate, Next, next};
pub use policy::{RetentionPolicy, RetentionSettings, Stock};

use crate::history::HistoryLine;
use crate::job::{Artifact, Inputs, Job};
use crate::limits::{PAGES_REMOVED, REMEMBERED_DELETIONS, WORKER_LAST_WORDS};
use crate::scan_head::Totals;
use crate::{Actor, JobId, ScanKey, Timestamp, WorkflowId};

/// The record of the jobs that were removed from a scan. It is created by the first removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    pub workflow: WorkflowId,
    pub scan: ScanName,
    /// The counters of removed data: jobs by end state, and bytes of jobs and single artifacts.
    pub removed: Totals,
    /// The history was read up to here. Every earlier job is removed, unless it is in `passed_over`.
    pub from: Position,
    /// Earlier jobs that had to stay, oldest first.
    pub passed_over: Vec<FinishedJob>,
    /// The newest deletions by people, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deletions: Vec<Deletion>,
}

/// A position in a scan's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Position {
    /// The page, from 0.
    pub page: u64,
    /// The offset in the page, in bytes.
    pub at: u64,
}

/// A finished job, as recorded in its history line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedJob {
    pub id: JobId,
    pub finished_at: Timestamp,
    /// The page of its line.
    pub page: u64,
}

/// A job that a person deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    pub job: JobId,
    pub at: Timestamp,
    pub actor: Actor,
}

/// The time when the first artifacts of a finished job expire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expiry {
    pub job: JobId,
    pub at: Timestamp,
}

impl Retention {
    pub const fn new(workflow: WorkflowId, scan: ScanName) -> Self {
        Self {
            workflow,
            scan,
            removed: Totals::NONE,
            from: Position { page: 0, at: 0 },
            passed_over: Vec::new(),
            deletions: Vec::new(),
        }
    }

    pub fn key(&self) -> ScanKey {
        ScanKey::new(self.workflow, &self.scan)
    }

    /// False if the job was certainly removed. `at` is the position of its history line.
    pub fn may_hold(&self, job: JobId, at: Position) -> bool {
        at >= self.from || self.passed_over.iter().any(|passed| passed.id == job)
    }

    /// The newest page below `page` that may still have an existing job.
    pub fn page_below(&self, page: u64) -> Option<u64> {
        let before = page.checked_sub(1)?;
        if before >= self.from.page {
            return Some(before);
        }
        let pages = self.passed_over.iter().map(|passed| passed.page);
        pages.filter(|passed| *passed <= before).max()
    }

    /// True if all jobs of a page are removed.
    pub fn is_done_with(&self, page: u64) -> bool {
        page < self.from.page && self.passed_over.iter().all(|passed| passed.page != page)
    }

    /// The pages that `before` still needed and this record no longer needs. If a record skips many pages at once,
    /// pages were lost, and only the first of them are returned.
    pub(crate) fn pages_done_since(&self, before: &Self) -> BTreeSet<u64> {
        let passed = before.passed_over.iter().map(|passed| passed.page);
        let crossed = (before.from.page..self.from.page).take(PAGES_REMOVED);
        let pages = crossed.chain(passed);
        pages.filter(|page| self.is_done_with(*page)).collect()
    }

    /// Records that a person deleted a job.
    pub(crate) fn note_deletion(&mut self, deletion: Deletion) {
        self.deletions.insert(0, deletion);
        self.deletions.truncate(REMEMBERED_DELETIONS);
    }
}

impl FinishedJob {
    /// Creates it from a line in this page of a history.
    pub fn of(line: &HistoryLine, page: u64) -> Self {
        Self {
            id: line.id,
            finished_at: line.finished_at,
            page,
        }
    }
}

impl Job {
    /// Its bytes on disk without its record: log, large inputs, and artifacts that were not removed.
    pub fn bytes(&self) -> u64 {
        let inputs = match &self.inputs {
            Inputs::Object { bytes, .. } => *bytes,
            Inputs::Inline(_) | Inputs::Defaults => 0,
        };
        let run = self.state.run();
        let artifacts = self.stored_artifacts().map(|artifact| artifact.size);
        inputs + run.map_or(0, |run| run.log_bytes) + artifacts.sum::<u64>()
    }

    /// The artifacts whose files were not removed.
    pub fn stored_artifacts(&self) -> impl Iterator<Item = &Artifact> {
        let artifacts = self.state.run().into_iter().flat_map(|run| &run.artifacts);
        artifacts.filter(|artifact| artifact.removed.is_none())
    }

    /// None if no artifact expires.
    pub fn expiry(&self) -> Option<Expiry> {
        let times = self
            .stored_artifacts()
            .filter_map(|artifact| artifact.expires_at);
        Some(Expiry {
            job: self.id,
            at: times.min()?,
        })
    }

    /// When the job ended, if its worker did not end it. The worker may then still append to the log.
    pub fn ended_by_another_at(&self) -> Option<Timestamp> {
        let end = self.state.end()?;
        self.state.run()?;
        match end.actor {
            Actor::Runner { .. } => None,
            Actor::Daemon | Actor::Token { .. } | Actor::User { .. } | Actor::Job { .. } => {
                Some(end.at)
            }
        }
    }

    /// For a job that its worker did not end: the time until which the worker may append to the log. None if this time
    /// has passed.
    pub fn may_log_until(&self, now: Timestamp) -> Option<Timestamp> {
        let end = self.ended_by_another_at()?;
        // If the end is far in the future, the clock was set back after it.
        ((now - end).abs() < WORKER_LAST_WORDS).then(|| end + WORKER_LAST_WORDS)
    }
}

impl Artifact {
    /// True if it has expired or its file was removed.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.removed.is_some() || self.expires_at.is_some_and(|at| at <= now)
    }
}
