//! Why a scan ran or did not.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    DamagedLines, Explanation, JobState, LogCut, Resumption, RevisionRef, Suspension, Trigger,
    is_zero,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// As `source/name`.
    pub workflow: String,
    pub scan: String,
    /// `active`; `retired` once the workflow's file is gone; `removed` once the file no longer has the scan.
    pub state: String,
    /// The revision that removed the scan, if still known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_by: Option<RevisionRef>,
    /// The name that it had before: its earlier jobs are under that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// The scan that goes on with its results, once it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_to: Option<String>,
    /// Present while nothing of it starts, now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Suspension>,
    /// Present if its own latest suspension has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Resumption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<Schedule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expr: Option<Watching>,
    /// Whether the file declares `dispatch`. Scans with a schedule or an expression can always be dispatched.
    pub dispatch: bool,
    /// Its jobs that are not over, newest first.
    pub unfinished: Vec<UnfinishedJob>,
    /// Its newest job, if its expression made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<CausedJob>,
    /// Present while it and others go in a circle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circle: Option<Circle>,
    /// The newest job that is over, if its log was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_job: Option<CutJob>,
    /// Its ledger, newest first.
    pub records: Vec<LedgerRecord>,
    /// Records that are missing because they cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedLines>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    /// The five fields.
    pub schedule: String,
    /// The same in words.
    pub description: String,
    pub timezone: String,
    /// The next slot. A slot in the past waits for a job to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<DateTime<Utc>>,
    /// The time up to which the schedule was followed, if that is more than an hour ahead of the daemon's clock. Until
    /// then it starts nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<DateTime<Utc>>,
}

/// An expression over other scans' results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Watching {
    pub expression: String,
    /// Its value now; absent when a moment in the past was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Evaluation>,
    /// The scans at whose next success it is evaluated; none if it is at that of any other scan.
    #[serde(default)]
    pub after_successes: Vec<String>,
    /// The scans at whose next failure it is evaluated as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_failures: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnfinishedJob {
    pub id: Uuid,
    pub state: JobState,
    pub trigger: Trigger,
    pub created_at: DateTime<Utc>,
    /// Why it has not begun, while it is scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Explanation>,
    /// Of a retry, and of scans that wake each other in a circle: no runner gets it earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<DateTime<Utc>>,
    /// Of a retry: its place among the jobs that retry one another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Of a retry: how many jobs there may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Present if its log was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_cut: Option<LogCut>,
}

/// A job that an expression made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CausedJob {
    pub id: Uuid,
    pub created_at: DateTime<Utc>,
    /// The jobs for whose ends the expression was evaluated, newest first.
    pub causes: Vec<Uuid>,
}

/// Scans that wake each other, with more than a hundred laps of under a minute each behind them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Circle {
    /// Their names.
    pub scans: Vec<String>,
    /// How many such laps.
    pub laps: u64,
    /// Their job with most laps that is not over.
    pub job: Uuid,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CutJob {
    pub id: Uuid,
    pub log_cut: LogCut,
}

/// One evaluation of a scan's trigger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerRecord {
    pub at: DateTime<Utc>,
    /// Why the trigger was evaluated.
    pub cause: LedgerCause,
    /// The evaluation of the expression, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
    pub outcome: LedgerOutcome,
}

/// Why a trigger was evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LedgerCause {
    /// Slots of the schedule came due.
    Slots {
        first: DateTime<Utc>,
        last: DateTime<Utc>,
        count: u64,
    },
    /// The scan was resumed, and this slot had come due while it was suspended.
    Resumed { slot: DateTime<Utc> },
    /// A scan succeeded.
    Success { scan: String, job: Uuid },
    /// A revision added or changed the scan, whose expression asks for news.
    Activation {
        /// The number of the revision.
        revision: u64,
    },
    /// A scan failed, after its last retry.
    Failure { scan: String, job: Uuid },
    /// A runner claimed the job that the expression had made.
    Claim { job: Uuid },
    /// The clock was behind the time up to which the schedule had been followed.
    Clock {
        /// That time.
        cursor: DateTime<Utc>,
    },
    /// The same outcome repeated.
    Repeats {
        first: DateTime<Utc>,
        last: DateTime<Utc>,
        count: u64,
    },
}

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LedgerOutcome {
    /// It made a job.
    Made { job: Uuid },
    /// It made none.
    NotMade {
        /// Stable name of the reason.
        code: String,
        /// The reason for people.
        message: String,
    },
    /// The job it had made was skipped.
    Skipped {
        job: Uuid,
        /// Stable name of the reason.
        code: String,
        /// The reason for people.
        message: String,
    },
}

/// The value of an expression, and what it read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evaluation {
    /// The whole expression with its parts.
    pub clause: Clause,
    /// The scans that it names.
    pub scans: BTreeMap<String, ScanRead>,
}

/// A part of an expression and its value. A part with neither value nor error was not evaluated: the other parts had
/// decided.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clause {
    /// The operator of a combination, or the source of a leaf.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<serde_json::Value>,
    /// Why it has no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The jobs that a leaf read, newest first, by scan. Ids are text, as in expressions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub jobs: BTreeMap<String, Vec<String>>,
    /// The number of jobs it read besides those.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_jobs: u64,
    /// The parts of a combination, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Clause>,
}

/// What an expression read of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScanRead {
    /// The number of its jobs.
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
    pub successes: Vec<String>,
}
