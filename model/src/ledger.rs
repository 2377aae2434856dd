//! The ledger of a scan: why its triggers made a job, or made none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Clause, JobId, Reason, Timestamp};

/// One look at a scan's trigger. A run of looks with the same outcome is one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerRecord {
    /// When it was looked at.
    pub at: Timestamp,
    /// What was looked at, and why.
    pub cause: Cause,
    /// What the expression said, when one was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
    /// What came of it.
    pub outcome: Outcome,
}

/// Why a trigger was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cause {
    /// Slots of the schedule came due.
    Slots {
        /// The first of them.
        first: Timestamp,
        /// The last of them.
        last: Timestamp,
        /// How many; very many are not counted to the end.
        count: u64,
    },
    /// A scan succeeded.
    Success {
        /// The scan.
        scan: String,
        /// Its newest successful job.
        job: JobId,
    },
    /// A runner came for a job that the expression had made.
    Claim {
        /// The job.
        job: JobId,
    },
    /// The clock was found to be behind the cursor of the schedule.
    Clock {
        /// The cursor.
        cursor: Timestamp,
    },
    /// The same outcome again and again.
    Repeats {
        /// The first time.
        first: Timestamp,
        /// The last time.
        last: Timestamp,
        /// How often.
        count: u64,
    },
}

/// What came of a look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// It made a job.
    Made {
        /// The job.
        job: JobId,
    },
    /// It made none.
    NotMade {
        /// Why.
        reason: Reason,
    },
    /// The job it had made was skipped.
    Skipped {
        /// The job.
        job: JobId,
        /// Why.
        reason: Reason,
    },
}

/// What an expression said, and what it read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The expression.
    pub expression: String,
    /// The whole, with its parts.
    pub clause: Clause,
    /// What was known of the scans it names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scans: BTreeMap<String, ScanRead>,
}

impl Evaluation {
    /// Whether it is true; `None` when it failed.
    pub fn holds(&self) -> Option<bool> {
        self.clause.value.as_ref()?.as_bool()
    }
}

/// What was known of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanRead {
    /// What `size()` says.
    pub size: u64,
    /// What `is_available()` says.
    pub available: bool,
    /// What `has_diff()` says.
    pub diff: bool,
    /// Its two newest successful jobs, newest first.
    pub successes: Vec<JobId>,
}

/// A run of looks that ended alike. Kept in the head, so that a refusal every minute writes no file of its own growth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeats {
    /// Why none of them made a job.
    pub reason: Reason,
    /// The first after the one that has a record of its own.
    pub first: Timestamp,
    /// The last.
    pub last: Timestamp,
    /// How many, without the one that has a record of its own.
    pub count: u64,
}

impl Repeats {
    /// The run as a record, when it is one.
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
