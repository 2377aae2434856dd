//! What a runner's worker and the daemon say to each other about one job.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{JobState, Step};

/// The answer to a claim: everything needed to execute the job.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The job.
    pub job_id: Uuid,
    /// Its project.
    pub project_id: Uuid,
    /// Its workflow.
    pub workflow_id: Uuid,
    /// The workflow revision.
    pub revision_id: Uuid,
    /// The scan's name.
    pub scan: String,
    /// Environment of all steps, in order; values may hold templates.
    pub env: Vec<(String, String)>,
    /// Names taken from the runner's own environment.
    pub pass_env: Vec<String>,
    /// What to execute, in order.
    pub steps: Vec<ScanStep>,
    /// What to upload after a success.
    pub artifacts: Vec<ScanArtifact>,
    /// What expressions read, frozen at the claim; the shape of `context` in `job.json`.
    pub context: serde_json::Value,
    /// Values of the secrets the scan names.
    pub secrets: BTreeMap<String, String>,
    /// What the scan names and has no value, as `vars.X` or `secrets.X`, with a sentence that says why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, String>,
    /// Whether the job may be retried: if so the worker stops it after 100 s without contact.
    pub retries: bool,
    /// When the worker session token ends, and the job with it.
    pub expires_at: DateTime<Utc>,
    /// When the scan's time is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<DateTime<Utc>>,
    /// The number the next log record must have: not 0 when the claim is repeated.
    pub next_log_record: u64,
}

impl fmt::Debug for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assignment")
            .field("job_id", &self.job_id)
            .field("scan", &self.scan)
            .finish_non_exhaustive()
    }
}

/// One step to execute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanStep {
    /// Script text with templates.
    pub run: String,
    /// The shell's words; absent for the default shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<Vec<String>>,
    /// The condition's source.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Whether a failure leaves the job alone.
    #[serde(default)]
    pub allow_failure: bool,
    /// Seconds until the step is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

/// One artifact to upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanArtifact {
    /// Its name.
    pub name: String,
    /// Files and folders relative to the job's folder.
    pub paths: Vec<String>,
    /// The condition's source.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

/// The state of a job's steps. It carries all of them, so a repeat is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// Every step that started, ended or was skipped so far, in order.
    pub steps: Vec<Step>,
}

/// The end of a job as the runner reports it. The daemon decides success from the steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompleteJob {
    /// All steps, in order.
    pub steps: Vec<Step>,
    /// How many log records the job has; the daemon refuses to complete with fewer.
    pub log_records: u64,
    /// What failed the job outside its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<JobFailure>,
}

/// A failure that is no step's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "code", content = "message")]
pub enum JobFailure {
    /// An artifact's path, condition or upload failed.
    ArtifactFailed(String),
    /// An environment value of the scan could not be evaluated.
    EnvFailed(String),
    /// The runner could not prepare the job.
    SetupFailed(String),
    /// The runner was told to stop at once.
    RunnerStopped(String),
}

/// The answer to a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completed {
    /// How the job ended; repeats give the same answer.
    pub state: JobState,
}
