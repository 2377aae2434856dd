//! The events of `GET /v0/events`. An event says what changed, not the new state. Clients read the state again after
//! an event, and after a gap in the stream.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Condition, Explanation, JobState, RevisionRef, RunnerRef, Step, Tip, WorkflowRef};

/// `event: job`: a job was made, claimed, ended or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobEvent {
    pub id: Uuid,
    pub workflow: WorkflowRef,
    pub scan: String,
    pub state: JobState,
    /// Why it is in this state.
    pub reason: Explanation,
    pub created_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<RunnerRef>,
    /// The job that it retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<Uuid>,
    /// The job that retries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_by: Option<Uuid>,
    /// True if it was removed with its log and artifacts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

/// `event: step`: a running job has a new step, artifact or log truncation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepEvent {
    pub job: Uuid,
    pub workflow: WorkflowRef,
    pub scan: String,
    /// All steps reported so far.
    pub steps: Vec<Step>,
}

/// `event: revision`: a workflow has a new revision, or was retired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevisionEvent {
    pub workflow: WorkflowRef,
    /// `active` or `retired`.
    pub state: String,
    pub revision: RevisionRef,
}

/// `event: suspension`: a workflow or a scan was suspended or resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuspensionEvent {
    pub workflow: WorkflowRef,
    /// The scan; absent for the whole workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<String>,
    pub suspended: bool,
}

/// `event: source`: a source has a new tip or a changed condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceEvent {
    pub name: String,
    pub configured: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tip: Option<Tip>,
    pub conditions: Vec<Condition>,
}

/// `event: condition`: a condition was opened, changed or closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionEvent {
    pub id: Uuid,
    pub code: String,
    pub message: String,
    pub since: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
}

/// `event: interaction`: a callback server has heard something. There are at most four a second for a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InteractionEvent {
    /// The id of the callback server.
    pub server: String,
    /// The numbers of the first and the last new interaction.
    pub first: u64,
    pub last: u64,
    pub count: u64,
    /// `dns`, `http`.
    pub types: Vec<String>,
    /// Some of the tags.
    pub tags: Vec<String>,
}

/// `event: runner`: a runner was registered or removed, or has a new session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunnerEvent {
    pub id: Uuid,
    /// Absent once it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}
