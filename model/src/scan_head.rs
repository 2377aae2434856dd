//! The head of a scan: the little that must be known of its past without reading it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use workflow::ScanName;

use crate::world::ScanKey;
use crate::{JobId, Order, Timestamp, WorkflowId};

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
}

impl ScanHead {
    /// The head of a scan that has never had a job.
    pub const fn new(workflow: WorkflowId, scan: ScanName) -> Self {
        Self {
            workflow,
            scan,
            latest_job: JobId::FIRST,
            latest_claim: None,
            totals: Totals {
                succeeded: 0,
                failed: 0,
                cancelled: 0,
                skipped: 0,
            },
            successes: Vec::new(),
            history: Tail { page: 0, bytes: 0 },
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
}

impl Totals {
    /// How many jobs ended in the state of this name; none in one that is no end.
    pub fn of(mut self, state: &str) -> u64 {
        self.counter(state).map_or(0, |counter| *counter)
    }

    /// Counts a job that ended in the state of this name.
    pub fn count(&mut self, state: &str) {
        if let Some(counter) = self.counter(state) {
            *counter += 1;
        }
    }

    fn counter(&mut self, state: &str) -> Option<&mut u64> {
        match state {
            "succeeded" => Some(&mut self.succeeded),
            "failed" => Some(&mut self.failed),
            "cancelled" => Some(&mut self.cancelled),
            "skipped" => Some(&mut self.skipped),
            _ => None,
        }
    }
}

/// A success as `is_available` and `has_diff` need it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Success {
    /// The job.
    pub job: JobId,
    /// The place of its completion in the order of decisions.
    pub order: Order,
    /// When it finished.
    pub finished_at: Timestamp,
    /// Artifact name to content digest. Outlives the files.
    pub artifacts: BTreeMap<String, String>,
}

/// The end of an append-only sequence of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tail {
    /// The page that is written now, from 0.
    pub page: u64,
    /// Its length.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{House, NIGHTLY, key, sha256};

    #[test]
    fn a_head_with_two_successes_of_two_artifacts_takes_less_than_a_kibibyte() {
        let mut house = House::new();
        let workflow = house.push("nightly", NIGHTLY);
        let success = |artifact: &str| Success {
            job: "0198c5f2-7c1e-7000-8000-000000000000".parse().unwrap(),
            order: serde_json::from_value(json!(u64::from(u32::MAX))).unwrap(),
            finished_at: house.now + chrono::TimeDelta::nanoseconds(1),
            artifacts: ["hosts", "ports"]
                .map(|name| (name.to_owned(), format!("sha256:{}", sha256(artifact))))
                .into(),
        };
        let head = ScanHead {
            latest_job: "0198c5f2-7c1e-7000-8000-000000000000".parse().unwrap(),
            latest_claim: Some(success("new").order),
            totals: Totals {
                succeeded: 1_000_000,
                failed: 1_000_000,
                cancelled: 1_000_000,
                skipped: 1_000_000,
            },
            successes: vec![success("new"), success("old")],
            history: Tail {
                page: 10_000,
                bytes: 1_000_000,
            },
            ..ScanHead::new(workflow, key(workflow, "subdomains_all").scan)
        };
        let json = serde_json::to_string(&head).unwrap();
        // Design section 6: heads of all scans are in memory and written with every claim and end.
        assert!(json.len() <= 1_024, "{} bytes", json.len());
        assert_eq!(serde_json::from_str::<ScanHead>(&json).unwrap(), head);
    }
}
