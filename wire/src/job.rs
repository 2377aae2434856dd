//! Jobs, their steps and artifacts, as users see them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Explanation;

/// One invocation of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Globally unique; ids of later jobs sort later.
    pub id: Uuid,
    /// The workflow the scan belongs to.
    pub workflow: WorkflowRef,
    /// The workflow revision that runs.
    pub revision: RevisionRef,
    /// The scan's name.
    pub scan: String,
    /// Where the job stands.
    pub state: JobState,
    /// What made it.
    pub trigger: Trigger,
    /// Why it is in this state.
    pub reason: JobReason,
    /// Why it has not begun, while it is scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Explanation>,
    /// The inputs, complete with defaults.
    pub inputs: BTreeMap<String, Input>,
    /// When it was scheduled.
    pub created_at: DateTime<Utc>,
    /// When a runner claimed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<DateTime<Utc>>,
    /// Who runs or ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<RunnerRef>,
    /// The steps reported so far.
    pub steps: Vec<Step>,
    /// The artifacts stored so far.
    pub artifacts: Vec<Artifact>,
    /// How much log there is.
    pub log: LogSummary,
}

/// Names a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRef {
    /// Its id.
    pub id: Uuid,
    /// The source it comes from, which is also its project's name.
    pub source: String,
    /// Path within the source without extension.
    pub name: String,
}

/// Names a workflow revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionRef {
    /// Its id.
    pub id: Uuid,
    /// 1 for the workflow's first revision.
    pub number: u64,
    /// The Git commit it was read from.
    pub commit: String,
}

/// Names a runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerRef {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
}

/// Where a job stands. No edge goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Waits for a runner.
    Scheduled,
    /// Claimed by a runner.
    Running,
    /// Ended; no step failed it.
    Succeeded,
    /// Ended; a step, an artifact or the runner failed.
    Failed,
    /// Ended by a person or a deadline.
    Cancelled,
    /// Never ran: its expression was no longer true when a runner came for it.
    Skipped,
}

impl JobState {
    /// Whether nothing can change any more.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Scheduled | Self::Running => false,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::Skipped => true,
        }
    }

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
        }
    }
}

/// What made a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A person or program asked for it.
    Dispatch,
    /// A cron slot came due.
    Cron,
    /// An expression over other scans' results became true.
    Expr,
}

impl Trigger {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::Cron => "cron",
            Self::Expr => "expr",
        }
    }
}

/// Why a job is in its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobReason {
    /// Stable name, for example `runner_lost`.
    pub code: String,
    /// The same for a person.
    pub message: String,
    /// Who caused it: a token's name, a runner's name or `everscand`.
    pub actor: String,
}

/// An input's value: a bare string or boolean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Input {
    /// Of an input of type `bool`.
    Bool(bool),
    /// Of an input of type `string`.
    Text(String),
}

/// One step of a job, as the runner reports it and as users see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Position in the scan, from 0.
    pub index: u32,
    /// What happened.
    pub status: StepStatus,
    /// What it means for the job; absent while the step runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<StepOutcome>,
    /// The script's exit code, when it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What went wrong, when something other than the exit code did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it started; absent for a step that never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<DateTime<Utc>>,
}

/// What happened to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Its script runs.
    Running,
    /// Its script ended with exit code 0.
    Succeeded,
    /// Its script failed or could not be started.
    Failed,
    /// It was stopped.
    Cancelled,
    /// Its condition was false.
    Skipped,
}

impl StepStatus {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
        }
    }
}

/// What a step means for its job. Differs from the status only for `allow_failure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// The job goes on.
    Succeeded,
    /// The step failed the job.
    Failed,
    /// The step was stopped with the job.
    Cancelled,
    /// The step did not run.
    Skipped,
}

/// A stored artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// UUID v5 of job and name.
    pub id: Uuid,
    /// Unique within the scan.
    pub name: String,
    /// Bytes of the zip.
    pub size: u64,
    /// SHA-256 of the zip, hexadecimal.
    pub sha256: String,
    /// Digest over entry names and contents, which `has_diff` compares.
    pub content_digest: String,
    /// When it was stored.
    pub created_at: DateTime<Utc>,
    /// After this it cannot be downloaded any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// That its file is gone, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<Removed>,
}

/// Why the file of an artifact is gone. What is known of it stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// When.
    pub at: DateTime<Utc>,
    /// Stable name: `expired`, `deleted_by_user` or `pruned`.
    pub code: String,
    /// The same for a person.
    pub message: String,
    /// Who caused it: a token's name or `everscand`.
    pub actor: String,
}

/// How much log a job has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LogSummary {
    /// Number of records.
    pub records: u64,
    /// That it was cut, when it had reached its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<LogCut>,
}

/// Where a log was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogCut {
    /// The number of the record that says so. What steps printed from there on was not kept.
    pub record: u64,
    /// The limit, in bytes.
    pub limit: u64,
}

/// The body of a dispatch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DispatchRequest {
    /// Values by input key: bare strings and booleans.
    #[serde(default)]
    pub inputs: BTreeMap<String, serde_json::Value>,
}

/// The answer to a dispatch: the job exists and survives a power cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DispatchResponse {
    /// The new job.
    pub job: Job,
}

/// The body of a cancellation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelJob {}
