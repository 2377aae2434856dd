//! The ledger of a scan: why its triggers made a job or did not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Clause, JobId, Reason, Timestamp};

/// One check of a scan's trigger. A run of checks with the same outcome is one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerRecord {
    pub at: Timestamp,
    /// What was checked and why.
    pub cause: Cause,
    /// The result of the expression, if one was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cause {
    /// Slots of the schedule came due.
    Slots {
        first: Timestamp,
        last: Timestamp,
        /// Counted up to a limit.
        count: u64,
    },
    /// The scan was resumed. The slot came due during the suspension, and has an earlier record.
    Resumed { slot: Timestamp },
    /// A scan succeeded.
    Success {
        scan: String,
        /// Its newest successful job.
        job: JobId,
    },
    /// A revision added or changed the scan, whose expression uses `has_news`.
    Activation {
        /// The number of the revision.
        revision: u64,
    },
    /// A scan failed, and the expression uses `has_failed`.
    Failure {
        scan: String,
        /// Its newest failed job.
        job: JobId,
    },
    /// A runner asked for a job that the expression had made.
    Claim { job: JobId },
    /// The clock is behind the cursor of the schedule.
    Clock { cursor: Timestamp },
    /// The same outcome as before, repeatedly.
    Repeats {
        first: Timestamp,
        last: Timestamp,
        count: u64,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    Made {
        job: JobId,
    },
    NotMade {
        reason: Reason,
    },
    /// The job was skipped at its claim.
    Skipped {
        job: JobId,
        reason: Reason,
    },
}

/// The result of an expression, and what it read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    pub expression: String,
    /// The result, with its parts.
    pub clause: Clause,
    /// What it read of the scans that it names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scans: BTreeMap<String, ScanRead>,
}

impl Evaluation {
    /// True or false; `None` if it failed.
    pub fn holds(&self) -> Option<bool> {
        self.clause.value.as_ref()?.as_bool()
    }
}

/// What an expression read of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanRead {
    /// The value of `size()`.
    pub size: u64,
    /// The value of `is_available()`.
    pub available: bool,
    /// The value of `has_diff()`.
    pub diff: bool,
    /// The value of `has_news()`, if the expression asks for news of the scan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub news: Option<bool>,
    /// The value of `has_failed()`.
    #[serde(default)]
    pub failed: bool,
    /// Its two newest successful jobs, newest first.
    pub successes: Vec<JobId>,
}

/// A run of checks with the same outcome. Only this counter is written while the outcome stays the same, so that a
/// refusal every minute does not make the ledger grow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeats {
    /// Why these checks made no job.
    pub reason: Reason,
    /// The first check after the one with a record of its own.
    pub first: Timestamp,
    pub last: Timestamp,
    /// How many checks, not counting the one with a record of its own.
    pub count: u64,
}

impl Repeats {
    /// None if the run is empty.
    pub fn into_record(self) -> Option<LedgerRecord> {
        let Self {
            reason,
            first,
            last,
            count,
        } = self;
        (count > 0).then_some(LedgerRecord {
            at: last,
            cause: Cause::Repeats { first, last, count },
            evaluation: None,
            outcome: Outcome::NotMade { reason },
        })
    }
}
