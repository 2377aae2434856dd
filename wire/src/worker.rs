//! Messages between a runner's worker and the daemon about one job.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

use crate::{ArtifactProgress, JobState, LeftOut, Step};

/// The answer to a claim: everything needed to execute the job.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Assignment {
    pub job_id: Uuid,
    pub project_id: Uuid,
    pub workflow_id: Uuid,
    pub revision_id: Uuid,
    pub scan: String,
    /// The environment of all steps, in order. Values may hold templates.
    pub env: Vec<(String, String)>,
    /// The token of the job, for its steps. Absent for runners without the capability `job_token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_token: Option<String>,
    /// The name of a callback server for the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<String>,
    /// Variables to copy from the runner's own environment.
    pub pass_env: Vec<String>,
    /// The steps, in order.
    pub steps: Vec<ScanStep>,
    /// The files of the repository to put into the job's folder before the first step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<Checkout>,
    /// The artifacts to upload after the steps.
    pub artifacts: Vec<ScanArtifact>,
    /// The values that expressions read, frozen at the claim, in the form of `context` in `job.json`.
    pub context: serde_json::Value,
    /// The values of the secrets that the scan uses.
    pub secrets: BTreeMap<String, String>,
    /// What the scan uses but has no value, as `vars.X`, `secrets.X` or `callback`, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, String>,
    /// True if the job may be retried. Then the worker stops it after 100 s without contact.
    pub retries: bool,
    /// The daemon's clock. All other times are by this clock.
    pub now: DateTime<Utc>,
    /// When the worker session token expires, and the job with it.
    pub expires_at: DateTime<Utc>,
    /// The deadline of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<DateTime<Utc>>,
    /// The number of the next log record. It is greater than 0 if the claim is a repeat.
    pub next_log_record: u64,
}

/// The files of the repository that a job gets from `GET /jobs/{id}/source`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkout {
    pub commit: String,
    /// In steps: `SERVICE_SOURCE_REF`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Files and folders; empty for the whole repository. The same commit and paths always give the same files.
    pub paths: Vec<String>,
}

/// One step to execute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScanStep {
    /// Unique in the scan. Expressions read `steps.NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The script with its templates.
    pub run: String,
    /// The words of the shell's command line; absent for the default shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<Vec<String>>,
    /// The source of its condition.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// True if the job continues after a failure of the step.
    #[serde(default)]
    pub allow_failure: bool,
    /// Seconds until the runner stops the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

/// One artifact to upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScanArtifact {
    pub name: String,
    /// Files and folders relative to the job's folder.
    pub paths: Vec<String>,
    /// The source of its condition.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    #[serde(default)]
    pub upload_on: UploadOn,
    /// True if a file that cannot be packed fails the artifact. Otherwise the file is left out.
    #[serde(default)]
    pub strict: bool,
}

/// When an artifact is uploaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UploadOn {
    /// If no step failed the job.
    #[default]
    Success,
    /// If a step failed the job.
    Failure,
    /// In both cases.
    Always,
}

impl UploadOn {
    /// True if the artifact is uploaded. `ok` is true if no step failed the job.
    pub const fn includes(self, ok: bool) -> bool {
        match self {
            Self::Success => ok,
            Self::Failure => !ok,
            Self::Always => true,
        }
    }
}

/// The state of all steps of a job. It is always complete, so repeats are harmless.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// Every step that started, ended or was skipped so far, in order.
    pub steps: Vec<Step>,
    /// The artifact that the runner packs or uploads now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactProgress>,
}

/// The end of a job as the runner reports it. The daemon derives success from the steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteJob {
    /// All steps, in order.
    pub steps: Vec<Step>,
    /// The number of log records. The daemon refuses the completion while records are missing.
    pub log_records: u64,
    /// The outputs of all steps. Outputs of later steps replace equal names of earlier steps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
    /// Files that are missing in the stored artifacts, by artifact name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, LeftOut>,
    /// A failure outside the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<JobFailure>,
}

/// A failure outside the steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "code", content = "message")]
pub enum JobFailure {
    /// An artifact's path, condition or upload failed.
    ArtifactFailed(String),
    /// A value in the scan's `env` could not be evaluated.
    EnvFailed(String),
    /// The job could not get the files of the repository.
    CheckoutFailed(String),
    /// The runner could not prepare the job.
    SetupFailed(String),
    /// The runner had to stop immediately.
    RunnerStopped(String),
    /// The scan's `timeout` passed.
    TimedOut,
}

/// The answer to a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Completed {
    /// The final state. A repeat gets the same answer.
    pub state: JobState,
}

redacted!(Assignment { job_id, scan });
