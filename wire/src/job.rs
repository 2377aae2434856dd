//! Jobs, their steps and artifacts, as users see them.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Artifact, ArtifactProgress, Delivery, is_zero};

/// One invocation of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// Globally unique. Ids of later jobs sort later.
    pub id: Uuid,
    pub workflow: WorkflowRef,
    /// The revision that runs.
    pub revision: RevisionRef,
    pub scan: String,
    pub state: JobState,
    pub trigger: Trigger,
    /// Why it is in this state.
    pub reason: JobReason,
    /// Why it has not started, while it is scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Explanation>,
    /// The inputs, with defaults filled in.
    pub inputs: BTreeMap<String, Input>,
    pub created_at: DateTime<Utc>,
    /// Who dispatched it, if anyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatched_by: Option<String>,
    /// The earlier job that was run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_of: Option<Uuid>,
    /// The commit of the files that it gets, if its scan has a `checkout`. Jobs that are not dispatched get it when a
    /// runner claims them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<JobSource>,
    /// The failed or lost job that it retries. That job may have been removed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<Uuid>,
    /// The job that retries this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_by: Option<Uuid>,
    /// For a retry: its position in the chain of retries. The first job has position 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// For a retry: the most jobs in the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// No runner gets it earlier. For retries, and for scans that start each other in a circle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<DateTime<Utc>>,
    /// The jobs whose ends caused the evaluation that made it, newest first: successes, or failures if the expression
    /// asks for those. They may have been removed since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Uuid>,
    /// The number of earlier jobs in its chain of causes, among scans that can start each other. From the second lap
    /// on, such jobs wait.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u64,
    /// The interactions that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<CallbackCause>,
    /// When a runner claimed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<DateTime<Utc>>,
    /// The runner that claimed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<RunnerRef>,
    /// The steps reported so far.
    pub steps: Vec<Step>,
    /// The artifacts stored so far.
    pub artifacts: Vec<Artifact>,
    /// The artifact that its runner packs or uploads now. Only known for running jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storing: Option<ArtifactProgress>,
    /// The outputs of its steps, once it has completed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
    pub log: LogSummary,
    /// The newest attempts of the newest messages about it, newest first. Only if asked for, and
    /// only with `notify:read`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Delivery>,
}

/// Interactions of a callback server that started a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallbackCause {
    /// The id of the server.
    pub server: String,
    pub name: String,
    /// The number of the first one.
    pub first: u64,
    /// The number of the last one.
    pub last: u64,
    pub count: u64,
    /// The kinds of the requests: `dns`, `http`.
    pub types: Vec<String>,
    /// The job that made the name of the newest one that was made by a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Uuid>,
}

impl Job {
    /// Why the job ended, to be put after its state: `failed: step 2 (test) failed with exit code 1`. Steps are counted
    /// from 1.
    pub fn end_cause(&self) -> String {
        let failed_step = || {
            self.steps
                .iter()
                .find(|step| step.outcome == Some(StepOutcome::Failed))
        };
        match self.reason.code.as_str() {
            "cancelled_by_user" => format!("by {}", self.reason.actor),
            "step_failed" => match failed_step() {
                Some(step) => step.failure(),
                None => self.reason.message.clone(),
            },
            _ => self.reason.message.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowRef {
    pub id: Uuid,
    /// Its source, which is also the project's name.
    pub source: String,
    /// Path within the source without extension.
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevisionRef {
    pub id: Uuid,
    /// 1 for the workflow's first revision.
    pub number: u64,
    /// The Git commit it was read from.
    pub commit: String,
}

/// The commit of the files that a job gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobSource {
    pub commit: String,
    /// The branch or tag that the source follows: as configured, else the full name of the default branch.
    #[serde(rename = "ref")]
    pub reference: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunnerRef {
    pub id: Uuid,
    pub name: String,
}

names! {
    /// The state of a job. It never returns to an earlier state.
    pub enum JobState {
        /// Waits for a runner.
        Scheduled = "scheduled",
        /// Claimed by a runner.
        Running = "running",
        /// Ended, and no step failed it.
        Succeeded = "succeeded",
        /// Ended: a step, an artifact or the runner failed.
        Failed = "failed",
        /// Ended by a person or a deadline.
        Cancelled = "cancelled",
        /// Never ran: its expression was no longer true when a runner claimed it.
        Skipped = "skipped",
    }
}

impl JobState {
    /// True if the job has ended.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Scheduled | Self::Running => false,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::Skipped => true,
        }
    }
}

names! {
    /// What made a job.
    pub enum Trigger {
        /// A person or program dispatched it.
        Dispatch = "dispatch",
        /// A cron slot came due.
        Cron = "cron",
        /// An expression over other scans' results became true.
        Expr = "expr",
        /// A callback server had interactions.
        Callback = "callback",
    }
}

impl Trigger {}

/// Why a job is in its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobReason {
    /// Stable name, for example `runner_lost`.
    pub code: String,
    /// For people.
    pub message: String,
    /// Who caused it: a token's name, a runner's name or `everscand`.
    pub actor: String,
}

/// A reason without an actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// Stable name.
    pub code: String,
    /// For people.
    pub message: String,
    /// The jobs that the message names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Uuid>,
}

/// An input's value: a bare string, number or boolean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Input {
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Number(number) => match (number.as_i64(), number.as_f64()) {
                (None, Some(fraction)) => fraction.fmt(f),
                (Some(_), _) | (None, None) => number.fmt(f),
            },
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// One step of a job, as the runner reports it and as users see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Position in the scan, from 0.
    pub index: u32,
    /// Its name, if it has one. The runner does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub status: StepStatus,
    /// What it means for the job; absent while the step runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<StepOutcome>,
    /// The script's exit code, if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The error, if the step failed without an exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Absent for a step that never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<DateTime<Utc>>,
}

impl Step {
    /// How the step failed.
    fn failure(&self) -> String {
        let name = self.name.as_ref();
        let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
        let step = format!("step {}{name}", u64::from(self.index) + 1);
        match (self.exit_code, &self.error) {
            (Some(code), _) => format!("{step} failed with exit code {code}"),
            (None, Some(error)) => format!("{step} failed: {error}"),
            (None, None) => format!("{step} failed"),
        }
    }
}

names! {
    /// What happened to a step.
    pub enum StepStatus {
        /// Its script runs.
        Running = "running",
        /// Its script ended with exit code 0.
        Succeeded = "succeeded",
        /// Its script failed or could not be started.
        Failed = "failed",
        /// The runner stopped it.
        Cancelled = "cancelled",
        /// Its condition was false.
        Skipped = "skipped",
    }
}

impl StepStatus {}

/// What a step means for its job. It differs from the status only with `allow_failure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// The job continues.
    Succeeded,
    /// The step failed the job.
    Failed,
    /// The step was stopped with the job.
    Cancelled,
    /// The step did not run.
    Skipped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LogSummary {
    pub records: u64,
    /// Present if the log was truncated at its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<LogCut>,
}

/// Where a log was truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogCut {
    /// The record that reports the truncation. Later output of steps was dropped.
    pub record: u64,
    /// In bytes.
    pub limit: u64,
}

/// The body of a dispatch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DispatchRequest {
    /// Values by input key: strings, numbers and booleans. Numbers and booleans may also be strings.
    #[serde(default)]
    pub inputs: BTreeMap<String, serde_json::Value>,
}

/// The answer to a dispatch. The job is already durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DispatchResponse {
    pub job: ChangedJob,
}

/// A job that the request made or changed. The answer to a token without the scope `job:read` has only its id and state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ChangedJob {
    Whole(Box<Job>),
    Short { id: Uuid, state: JobState },
}

impl ChangedJob {
    pub fn id(&self) -> Uuid {
        match self {
            Self::Whole(job) => job.id,
            Self::Short { id, .. } => *id,
        }
    }

    pub fn state(&self) -> JobState {
        match self {
            Self::Whole(job) => job.state,
            Self::Short { state, .. } => *state,
        }
    }
}

/// The body of a rerun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RerunJob {
    /// Run the active revision, which checks the inputs, instead of the revision of the earlier job.
    #[serde(default)]
    pub current: bool,
}

/// The empty body of a cancellation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelJob {}

/// The values that the expressions of a job read, frozen when a runner claimed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobContext {
    /// When they were frozen.
    pub frozen_at: DateTime<Utc>,
    /// The values: `job`, `project`, `workflow`, `revision`, `vars`, `inputs` and `scans`, in the form that `everscan expr
    /// eval --context` takes.
    pub context: serde_json::Value,
    /// The secrets that they name, with their versions. Values are never shown.
    pub secrets: BTreeMap<String, u64>,
}
