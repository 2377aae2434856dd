//! The head of a scan: the little that must be known of its past without reading it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use workflow::ScanName;

use crate::job::{EndState, Job};
use crate::ledger::Repeats;
use crate::{JobId, Order, ScanKey, Timestamp, WorkflowId};

/// What is remembered of a scan. Written with every claim and end of its jobs, in the same commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanHead {
    /// The workflow.
    pub workflow: WorkflowId,
    /// The scan.
    pub scan: ScanName,
    /// The newest job, so that ids go on rising after a restart.
    pub latest_job: JobId,
    /// The newest claim of any of its jobs.
    pub latest_claim: Option<Order>,
    /// Finished jobs by how they ended, over the scan's whole life.
    pub totals: Totals,
    /// Up to two newest successes, newest first.
    pub successes: Vec<Success>,
    /// Where the next history line goes.
    pub history: Tail,
    /// Up to where the slots of its schedule have been looked at, once one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron_cursor: Option<Timestamp>,
    /// Up to where its expression has considered successes, once it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub considered: Option<Order>,
    /// Where the next ledger record goes.
    #[serde(default, skip_serializing_if = "Tail::is_empty")]
    pub ledger: Tail,
    /// The run of looks that made no job and have the newest ledger record's outcome. Stored beside the head, since a
    /// reason may be long and a head is written with every claim.
    #[serde(skip)]
    pub repeats: Option<Repeats>,
}

impl ScanHead {
    /// The head of a scan that has never had a job.
    pub const fn new(workflow: WorkflowId, scan: ScanName) -> Self {
        Self {
            workflow,
            scan,
            latest_job: JobId::FIRST,
            latest_claim: None,
            totals: Totals::NONE,
            successes: Vec::new(),
            history: Tail { page: 0, bytes: 0 },
            cron_cursor: None,
            considered: None,
            ledger: Tail { page: 0, bytes: 0 },
            repeats: None,
        }
    }

    /// Names the scan.
    pub fn key(&self) -> ScanKey {
        ScanKey {
            workflow: self.workflow,
            scan: self.scan.clone(),
        }
    }

    /// Whether one of its newest successes left an artifact.
    pub fn has_digests(&self) -> bool {
        self.successes.iter().any(|success| success.artifacts > 0)
    }
}

/// Lifetime counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Jobs that succeeded.
    pub succeeded: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// Jobs that were cancelled.
    pub cancelled: u64,
    /// Jobs that were skipped.
    pub skipped: u64,
    /// What all of them took on disk beside their records when they ended.
    #[serde(default)]
    pub bytes: u64,
}

impl Totals {
    /// Of a scan without jobs.
    pub const NONE: Self = Self {
        succeeded: 0,
        failed: 0,
        cancelled: 0,
        skipped: 0,
        bytes: 0,
    };

    /// How many jobs there are.
    pub const fn jobs(&self) -> u64 {
        self.succeeded + self.failed + self.cancelled + self.skipped
    }

    /// How many of them expressions see: those that were not skipped.
    pub const fn seen(&self) -> u64 {
        self.succeeded + self.failed + self.cancelled
    }

    /// Counts what `more` counts, too.
    pub const fn add(&mut self, more: &Self) {
        self.succeeded += more.succeeded;
        self.failed += more.failed;
        self.cancelled += more.cancelled;
        self.skipped += more.skipped;
        self.bytes += more.bytes;
    }

    /// What is left of this without `removed`.
    #[must_use]
    pub const fn without(&self, removed: &Self) -> Self {
        Self {
            succeeded: self.succeeded.saturating_sub(removed.succeeded),
            failed: self.failed.saturating_sub(removed.failed),
            cancelled: self.cancelled.saturating_sub(removed.cancelled),
            skipped: self.skipped.saturating_sub(removed.skipped),
            bytes: self.bytes.saturating_sub(removed.bytes),
        }
    }

    /// How many jobs ended so.
    pub const fn of(&self, state: EndState) -> u64 {
        match state {
            EndState::Succeeded => self.succeeded,
            EndState::Failed => self.failed,
            EndState::Cancelled => self.cancelled,
            EndState::Skipped => self.skipped,
        }
    }

    /// Counts a job that ended so, with what it takes beside its record.
    pub const fn count(&mut self, state: EndState, bytes: u64) {
        self.bytes += bytes;
        *match state {
            EndState::Succeeded => &mut self.succeeded,
            EndState::Failed => &mut self.failed,
            EndState::Cancelled => &mut self.cancelled,
            EndState::Skipped => &mut self.skipped,
        } += 1;
    }
}

/// A success as `is_available` and `has_diff` need it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Success {
    /// The job.
    pub job: JobId,
    /// The place of its completion in the order of decisions.
    pub order: Order,
    /// How many artifacts it left.
    pub artifacts: usize,
    /// Artifact name to content digest. Outlives the files. Stored beside the head, since there is no bound on them
    /// and a head is written with every claim.
    #[serde(skip)]
    pub digests: BTreeMap<String, String>,
}

impl Success {
    /// Whether digests are missing: they were not read yet, or are lost.
    pub fn lacks_digests(&self) -> bool {
        self.digests.len() != self.artifacts
    }
}

/// The content digests of what a job left, by name.
pub fn digests_of(job: &Job) -> BTreeMap<String, String> {
    let artifacts = job.state.run().into_iter().flat_map(|run| &run.artifacts);
    artifacts
        .map(|artifact| (artifact.name.clone(), artifact.content_digest.clone()))
        .collect()
}

/// The digests of a scan's newest successes, which are in memory with its head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digests {
    /// The workflow.
    pub workflow: WorkflowId,
    /// The scan.
    pub scan: ScanName,
    /// Success to artifact name to content digest.
    pub successes: BTreeMap<JobId, BTreeMap<String, String>>,
}

impl Digests {
    /// Those of a head.
    pub fn of(head: &ScanHead) -> Self {
        let successes = head.successes.iter();
        Self {
            workflow: head.workflow,
            scan: head.scan.clone(),
            successes: successes
                .map(|success| (success.job, success.digests.clone()))
                .collect(),
        }
    }

    /// Names the scan.
    pub fn key(&self) -> ScanKey {
        ScanKey {
            workflow: self.workflow,
            scan: self.scan.clone(),
        }
    }
}

/// The end of an append-only sequence of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tail {
    /// The page that is written now, from 0.
    pub page: u64,
    /// Its length.
    pub bytes: u64,
}

impl Tail {
    /// Whether nothing has been written.
    const fn is_empty(&self) -> bool {
        self.page == 0 && self.bytes == 0
    }

    /// Makes room for so many bytes and tells where they go. A page that has reached `full` is closed.
    pub(crate) fn advance(&mut self, length: u64, full: u64) -> Self {
        let at = *self;
        let bytes = self.bytes + length;
        *self = if bytes >= full {
            Self {
                page: self.page + 1,
                bytes: 0,
            }
        } else {
            Self { bytes, ..at }
        };
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{House, NIGHTLY, key, sha256};

    #[test]
    fn a_head_keeps_no_digest_itself() {
        let mut house = House::new();
        let workflow = house.push("nightly", NIGHTLY);
        let digests = BTreeMap::from([("hosts".to_owned(), sha256("hosts"))]);
        let success = Success {
            job: "0198c5f2-7c1e-7000-8000-000000000000".parse().unwrap(),
            order: Order::default(),
            artifacts: 1,
            digests: digests.clone(),
        };
        let head = ScanHead {
            successes: vec![success],
            ..ScanHead::new(workflow, key(workflow, "subdomains_all").scan)
        };
        let json = serde_json::to_string(&head).unwrap();
        assert!(!json.contains(&sha256("hosts")), "{json}");
        let mut read: ScanHead = serde_json::from_str(&json).unwrap();
        assert!(read.successes[0].lacks_digests());
        read.successes[0].digests = digests;
        assert_eq!(read, head);
        assert!(!read.successes[0].lacks_digests());
    }
}
