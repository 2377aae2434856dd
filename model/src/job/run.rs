//! The run of a job: its steps, its artifacts and its log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use workflow::{Context, Outputs};

use crate::limits::TIMEOUT_END;
use crate::{Actor, ArtifactId, Order, Reason, RunnerId, Timestamp, TokenHash};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub runner: RunnerRef,
    /// Hash of the worker session token. Only its holder may report on the job.
    pub token: TokenHash,
    pub started_at: Timestamp,
    /// The claim's place in the order of decisions.
    pub claimed: Order,
    /// When the worker session token expires. The job ends then, too.
    pub expires_at: Timestamp,
    /// When the scan's `timeout` expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// What expressions read, frozen at the claim. The inputs are only in the job.
    pub context: Context,
    /// The secrets that expressions name, with their versions at the claim. The record never holds values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, u64>,
    /// The steps reported so far, in order.
    pub steps: Vec<Step>,
    /// The artifacts stored so far.
    pub artifacts: Vec<Artifact>,
    /// The outputs of the steps. Known at the completion.
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
    /// The first deadline in the record: a while after the scan's `timeout`, or the end of the session.
    pub fn ends_by(&self) -> Timestamp {
        let timeout = self
            .deadline
            .and_then(|it| it.checked_add_signed(TIMEOUT_END));
        timeout.map_or(self.expires_at, |timeout| timeout.min(self.expires_at))
    }
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

/// One step as its runner reported it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Position in the scan, from 0.
    pub index: u32,
    /// From the definition, which may be removed before the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub status: StepStatus,
    /// The effect on the job; absent while the step runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<StepOutcome>,
    /// The script's exit code, when it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What went wrong, if it was not the exit code.
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
    /// The job goes on.
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
    /// After this nobody can download it, and its file may be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Set once its file is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<Removed>,
    /// Files that its runner could not pack. Known at the completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
}

/// Files that are missing from an artifact, completely or in part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub files: Vec<LeftOutFile>,
    /// How many more files there are.
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
