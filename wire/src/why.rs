//! Why a scan ran or did not.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{DamagedLines, JobState, LogCut, RevisionRef, Trigger};

/// Why a scan ran or did not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Why {
    /// The workflow, as `source/name`.
    pub workflow: String,
    /// The scan.
    pub scan: String,
    /// `active`; `retired` once the workflow's file is gone; `removed` once the file is without the scan.
    pub state: String,
    /// The revision that removed the scan, as far as that is still known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_by: Option<RevisionRef>,
    /// Its schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<Schedule>,
    /// Its expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expr: Option<Watching>,
    /// Whether the file declares that it may be dispatched. Scans with a schedule or an expression always may.
    pub dispatch: bool,
    /// Its jobs that are not over, newest first.
    pub unfinished: Vec<UnfinishedJob>,
    /// The newest job that is over, if its log was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_job: Option<CutJob>,
    /// What was looked at, newest first.
    pub records: Vec<LedgerRecord>,
    /// What is missing among them because it cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedLines>,
}

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// The five fields.
    pub schedule: String,
    /// The same in words.
    pub description: String,
    /// The zone they are read in.
    pub timezone: String,
    /// When it comes due next; a time that has passed waits for a job to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<DateTime<Utc>>,
    /// Up to where it was followed, when that is more than an hour ahead of the daemon's clock: until then nothing comes
    /// due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<DateTime<Utc>>,
}

/// An expression over other scans' results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Watching {
    /// The expression.
    pub expression: String,
    /// What it says now. Absent when a moment in the past was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Evaluation>,
}

/// A job that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedJob {
    /// Its id.
    pub id: Uuid,
    /// Where it stands.
    pub state: JobState,
    /// What made it.
    pub trigger: Trigger,
    /// When it was scheduled.
    pub created_at: DateTime<Utc>,
    /// That its log was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_cut: Option<LogCut>,
}

/// A job whose log was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutJob {
    /// Its id.
    pub id: Uuid,
    /// Where its log was cut.
    pub log_cut: LogCut,
}

/// One look at a scan's trigger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerRecord {
    /// When.
    pub at: DateTime<Utc>,
    /// Why it was looked at.
    pub cause: LedgerCause,
    /// What the expression said, when one was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
    /// What came of it.
    pub outcome: LedgerOutcome,
}

/// Why a trigger was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LedgerCause {
    /// Slots of the schedule came due.
    Slots {
        /// The first of them.
        first: DateTime<Utc>,
        /// The last of them.
        last: DateTime<Utc>,
        /// How many.
        count: u64,
    },
    /// A scan succeeded.
    Success {
        /// The scan.
        scan: String,
        /// Its job.
        job: Uuid,
    },
    /// A runner came for the job that the expression had made.
    Claim {
        /// The job.
        job: Uuid,
    },
    /// The clock was found to be behind where the schedule had been followed to.
    Clock {
        /// That moment.
        cursor: DateTime<Utc>,
    },
    /// The same outcome again and again.
    Repeats {
        /// The first time.
        first: DateTime<Utc>,
        /// The last time.
        last: DateTime<Utc>,
        /// How often.
        count: u64,
    },
}

/// What came of a look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LedgerOutcome {
    /// It made a job.
    Made {
        /// The job.
        job: Uuid,
    },
    /// It made none.
    NotMade {
        /// Stable name of the reason.
        code: String,
        /// The reason for people.
        message: String,
    },
    /// The job it had made was skipped.
    Skipped {
        /// The job.
        job: Uuid,
        /// Stable name of the reason.
        code: String,
        /// The reason for people.
        message: String,
    },
}

/// What an expression said, and what it read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The whole, with its parts.
    pub clause: Clause,
    /// What was known of the scans it names.
    pub scans: BTreeMap<String, ScanRead>,
}

/// A part of an expression and its value. A part with neither value nor error was not evaluated: the other parts had
/// decided.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Clause {
    /// The operator of a combination, the source of a leaf.
    pub text: String,
    /// What it yields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<serde_json::Value>,
    /// Why it yields nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The jobs that a leaf read, newest first, by scan. Ids are text, as in expressions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub jobs: BTreeMap<String, Vec<String>>,
    /// How many jobs it has read besides those.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_jobs: u64,
    /// The parts of a combination, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Clause>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What was known of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanRead {
    /// How many jobs it has.
    pub size: u64,
    /// What `is_available()` says.
    pub available: bool,
    /// What `has_diff()` says.
    pub diff: bool,
    /// Its two newest successful jobs, newest first.
    pub successes: Vec<String>,
}
