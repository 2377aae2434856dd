//! The run of a job: its steps, its artifacts and its log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use workflow::{Context, Outputs};

use crate::limits::TIMEOUT_END;
use crate::scope::{Scope, Scopes};
use crate::{
    Actor, ArtifactId, CallbackId, CallbackTag, Order, Reason, RunnerId, Timestamp, TokenHash,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub runner: RunnerRef,
    /// Hash of the worker session token. Only the holder of the token may report on the job.
    pub token: TokenHash,
    /// The token for the steps. None if the runner's program cannot give it to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_token: Option<JobToken>,
    /// The name that the claim has minted, if the scan has a `callback` and its server existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<RunCallback>,
    pub started_at: Timestamp,
    /// The claim's position in the order of decisions.
    pub claimed: Order,
    /// When the worker session token and the token for the steps expire. The job ends at this time at the latest.
    pub expires_at: Timestamp,
    /// When the scan's `timeout` expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The values for expressions, frozen at the claim. The inputs are only in the job.
    pub context: Context,
    /// The secrets that expressions use, with their versions at the claim. The record never holds their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, u64>,
    /// The steps reported so far, in order.
    pub steps: Vec<Step>,
    /// The artifacts stored so far.
    pub artifacts: Vec<Artifact>,
    /// The outputs of the steps. Set at the completion.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: Outputs,
    /// Number of log records at the end; 0 while running.
    pub log_records: u64,
    /// Length of the log at the end, in bytes; 0 while running.
    #[serde(default)]
    pub log_bytes: u64,
    /// The longest log that the scan allows, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_limit: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_cut: Option<LogCut>,
}

impl Run {
    /// The first deadline in the record: two minutes after the scan's `timeout`, or the end of the session.
    pub fn ends_by(&self) -> Timestamp {
        let timeout = self
            .deadline
            .and_then(|it| it.checked_add_signed(TIMEOUT_END));
        timeout.map_or(self.expires_at, |timeout| timeout.min(self.expires_at))
    }
}

/// The token of a job: what its steps may do in the project of the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobToken {
    pub hash: TokenHash,
    /// The `permissions` of the scan, frozen at the claim. None for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Scopes>,
}

impl JobToken {
    pub fn scopes(&self) -> Scopes {
        let default = [
            Scope::JobRead,
            Scope::BlobRead,
            Scope::BlobWrite,
            Scope::Dispatch,
            Scope::PayloadRead,
            Scope::CallbackOwn,
        ];
        self.permissions
            .clone()
            .unwrap_or_else(|| Scopes::from_iter(default))
    }
}

/// The name of a callback server that a job has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCallback {
    pub server: CallbackId,
    pub tag: CallbackTag,
    /// The number after the newest interaction at the claim: the job has no older ones.
    pub since: u64,
}

/// Where a log was cut at its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogCut {
    /// The number of the record that reports the cut.
    pub record: u64,
    /// The limit, in bytes.
    pub limit: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerRef {
    pub id: RunnerId,
    /// Its name at the claim.
    pub name: String,
}

/// A step as reported by its runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Position in the scan, from 0.
    pub index: u32,
    /// The name from the definition, which may be removed before the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub status: StepStatus,
    /// The effect on the job. Absent while the step runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<StepOutcome>,
    /// The script's exit code, if the script was not stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The problem, if the exit code does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

/// What happened to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    pub id: ArtifactId,
    pub name: String,
    /// Bytes of the zip.
    pub size: u64,
    /// SHA-256 of the zip, hexadecimal.
    pub sha256: String,
    /// Digest over entry names and contents, which `has_diff` compares.
    pub content_digest: String,
    pub created_at: Timestamp,
    /// After this time the artifact cannot be downloaded, and its file may be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Set when its file was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<Removed>,
    /// Files that the runner could not pack. Set at the completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
}

/// Files that are missing from an artifact, completely or in part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub files: Vec<LeftOutFile>,
    /// The number of other files.
    #[serde(default)]
    pub more: u64,
}

/// A file that could not be packed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutFile {
    /// Relative to the job's folder.
    pub name: String,
    pub reason: String,
}

/// An artifact's file was removed. Its entry in the record stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    pub at: Timestamp,
    pub reason: Reason,
    pub actor: Actor,
}
