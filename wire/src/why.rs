//! Why a scan ran or did not run.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    DamagedLines, Delivery, Explanation, JobState, LogCut, Resumption, RevisionRef, Suspension,
    Trigger, is_zero,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// As `source/name`.
    pub workflow: String,
    pub scan: String,
    /// `active`; `retired` if the workflow's file was removed; `removed` if the file no longer has the scan.
    pub state: String,
    /// The revision that removed the scan, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_by: Option<RevisionRef>,
    /// Its previous name. Earlier jobs are stored under that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// After a rename: the scan that takes over this scan's results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_to: Option<String>,
    /// Present while it or its workflow is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Suspension>,
    /// Present if its own latest suspension has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Resumption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<Schedule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expr: Option<Watching>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<Listening>,
    /// True if the file declares `dispatch`. Scans with a schedule or an expression can always be dispatched.
    pub dispatch: bool,
    /// Its unfinished jobs, newest first.
    pub unfinished: Vec<UnfinishedJob>,
    /// Its newest job, if its expression made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<CausedJob>,
    /// Present while it and other scans start each other in a circle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circle: Option<Circle>,
    /// The newest finished job, if its log was truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_job: Option<CutJob>,
    /// The newest attempts of the newest messages about its newest job, newest first. Absent for a time in the past, and without
    /// `notify:read`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Delivery>,
    /// Its ledger, newest first.
    pub records: Vec<LedgerRecord>,
    /// Records that are missing because they are unreadable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedLines>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    /// The five fields. Several schedules are separated by `; `.
    pub schedule: String,
    /// The schedule in words; several are separated by `; `.
    pub description: String,
    pub timezone: String,
    /// The next slot. A slot in the past waits for a job to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<DateTime<Utc>>,
    /// The schedule of `next`, if the scan has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_schedule: Option<String>,
    /// The schedule has run up to this time, which is over an hour ahead of the daemon's clock. It starts nothing before this
    /// time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<DateTime<Utc>>,
}

/// An expression over other scans' results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Watching {
    pub expression: String,
    /// Its current value; absent if the request asked about the past.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Evaluation>,
    /// It is evaluated at the next success of one of these scans; if empty, of any other scan.
    #[serde(default)]
    pub after_successes: Vec<String>,
    /// It is also evaluated at the next failure of one of these scans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_failures: Vec<String>,
}

/// A callback server whose interactions start the scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listening {
    /// Its name.
    pub server: String,
    /// Its id. Absent if the project has no such server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The shortest time between two starts.
    pub min_interval: String,
    /// Why no interaction can come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The number of the last interaction that the scan has considered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub considered: Option<u64>,
    /// The interactions that it has not considered yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitingInteractions>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingInteractions {
    pub first: u64,
    pub last: u64,
    pub count: u64,
    /// How many of them used names that jobs of the scan itself have made. They start nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub own: u64,
    /// What the scan waits for.
    pub until: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnfinishedJob {
    pub id: Uuid,
    pub state: JobState,
    pub trigger: Trigger,
    pub created_at: DateTime<Utc>,
    /// Why it has not started, while it is scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Explanation>,
    /// No runner gets it earlier. For retries, and for scans that start each other in a circle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<DateTime<Utc>>,
    /// For a retry: its position in the chain of retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// For a retry: the most jobs in the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Present if its log was truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_cut: Option<LogCut>,
}

/// A job that an expression made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CausedJob {
    pub id: Uuid,
    pub created_at: DateTime<Utc>,
    /// The jobs whose ends caused the evaluation, newest first.
    pub causes: Vec<Uuid>,
}

/// Scans that start each other in a circle, with more than a hundred laps of under a minute each so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Circle {
    pub scans: Vec<String>,
    /// The number of these laps.
    pub laps: u64,
    /// Their unfinished job with the most laps.
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
        /// The schedule of a single slot, if the scan has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schedule: Option<String>,
    },
    /// The scan was resumed. This slot came due during its suspension.
    Resumed {
        slot: DateTime<Utc>,
        /// The schedule of the slot, if the scan has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schedule: Option<String>,
    },
    /// A scan succeeded.
    Success { scan: String, job: Uuid },
    /// A revision added or changed the scan, whose expression calls `has_news()`.
    Activation {
        /// The number of the revision.
        revision: u64,
    },
    /// A scan failed, after its last retry.
    Failure { scan: String, job: Uuid },
    /// A callback server had interactions that the scan had not considered.
    Interactions {
        /// The id of the server.
        server: String,
        name: String,
        first: u64,
        last: u64,
        count: u64,
        /// How many of them used names that jobs of the scan itself have made.
        #[serde(default, skip_serializing_if = "is_zero")]
        own: u64,
    },
    /// A runner claimed the job that the expression had made.
    Claim { job: Uuid },
    /// The clock was behind the time up to which the schedule already ran.
    Clock {
        /// That time.
        cursor: DateTime<Utc>,
    },
    /// The same outcome, repeatedly.
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
    /// It made no job.
    NotMade {
        /// Stable name of the reason.
        code: String,
        /// For people.
        message: String,
    },
    /// The job was skipped.
    Skipped {
        job: Uuid,
        /// Stable name of the reason.
        code: String,
        /// For people.
        message: String,
    },
}

/// The value of an expression, and the scans that it read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evaluation {
    /// The whole expression with its parts.
    pub clause: Clause,
    /// The scans in the expression.
    pub scans: BTreeMap<String, ScanRead>,
}

/// A part of an expression and its value. It was not evaluated if it has neither value nor error: the other parts
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
    /// The number of further jobs that it read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_jobs: u64,
    /// The parts of a combination, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Clause>,
}

/// The facts about a scan that an expression can read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScanRead {
    /// The number of its jobs.
    pub size: u64,
    /// The value of `is_available()`.
    pub available: bool,
    /// The value of `has_diff()`.
    pub diff: bool,
    /// The value of `has_news()`, if the expression calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub news: Option<bool>,
    /// The value of `has_failed()`.
    #[serde(default)]
    pub failed: bool,
    /// Its two newest successful jobs, newest first.
    pub successes: Vec<String>,
}
