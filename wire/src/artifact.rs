//! Artifacts, their files, and the difference between two artifacts.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::is_zero;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// UUID v5 of job and name.
    pub id: Uuid,
    /// Unique within the scan.
    pub name: String,
    /// Bytes of the zip.
    pub size: u64,
    /// SHA-256 of the zip, hexadecimal.
    pub sha256: String,
    /// Digest over entry names and contents. `has_diff` compares it.
    pub content_digest: String,
    pub created_at: DateTime<Utc>,
    /// The end of its retention; afterwards it cannot be downloaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// Present once the file was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<Removed>,
    /// Files that could not be packed; known after the end of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
}

/// Files that are missing or incomplete in an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// At most 20 for all artifacts of a job.
    pub files: Vec<LeftOutFile>,
    /// The number of further files.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// A file that could not be packed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutFile {
    /// Relative to the job's folder. Invalid UTF-8 is replaced.
    pub name: String,
    /// Why, such as `is a link to nothing`.
    pub reason: String,
}

/// Why the file of an artifact was removed. Its record is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    pub at: DateTime<Utc>,
    /// Stable name: `expired`, `deleted_by_user` or `pruned`.
    pub code: String,
    /// For people.
    pub message: String,
    /// Who caused it: a token's name or `everscand`.
    pub actor: String,
}

/// The progress of the artifact that a running job stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactProgress {
    pub name: String,
    pub phase: ArtifactPhase,
    /// Packed bytes, or sent bytes of the zip.
    pub bytes: u64,
    /// The total for the phase.
    pub of: u64,
}

names! {
    pub enum ArtifactPhase {
        /// The runner packs a zip.
        Packing = "packing",
        /// The runner sends the zip to the daemon.
        Uploading = "uploading",
    }
}

impl ArtifactPhase {}

/// A file in an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactEntry {
    /// Its path in the artifact.
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
    /// Its length in the zip.
    pub packed_size: u64,
    /// The CRC-32 of its content, hexadecimal.
    pub crc32: String,
}

/// The difference between the artifacts of the same name of two jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactDiff {
    pub artifact: String,
    /// The job to compare with.
    pub from: Uuid,
    pub to: Uuid,
    /// True if names and contents of all files are the same, by content digest.
    pub same: bool,
    pub added: u64,
    pub removed: u64,
    /// Files whose length or CRC-32 differs.
    pub changed: u64,
    pub unchanged: u64,
    /// One page of the differing files, by name.
    pub files: Vec<FileChange>,
    /// The `cursor` of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    pub name: String,
    /// Its length before; absent if it was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_size: Option<u64>,
    /// Its length now; absent if it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_size: Option<u64>,
}
