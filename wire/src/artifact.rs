//! Artifacts, the files in them, and how two artifacts differ.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::is_zero;

/// A stored artifact.
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
    /// Digest over entry names and contents, which `has_diff` compares.
    pub content_digest: String,
    pub created_at: DateTime<Utc>,
    /// After this it can no longer be downloaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// Present once the file is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<Removed>,
    /// Files that could not be packed, once the job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
}

/// Files that are not in an artifact, or not all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// At most 20 for all artifacts of a job.
    pub files: Vec<LeftOutFile>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// A file that could not be packed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutFile {
    /// Relative to the job's folder. What is not UTF-8 in it is replaced.
    pub name: String,
    /// Why, such as `is a link to nothing`.
    pub reason: String,
}

/// Why the file of an artifact is gone. Its record stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    pub at: DateTime<Utc>,
    /// Stable name: `expired`, `deleted_by_user` or `pruned`.
    pub code: String,
    /// The same for a person.
    pub message: String,
    /// Who caused it: a token's name or `everscand`.
    pub actor: String,
}

/// How far an artifact is that a running job stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactProgress {
    pub name: String,
    pub phase: ArtifactPhase,
    /// Bytes of the files that are packed, or of the zip that was sent.
    pub bytes: u64,
    /// All bytes of the phase.
    pub of: u64,
}

names! {
    pub enum ArtifactPhase {
        /// Its files are put into a zip.
        Packing = "packing",
        /// The zip is sent to the daemon.
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

/// How an artifact differs from that of another job with the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactDiff {
    pub artifact: String,
    /// The job to compare with.
    pub from: Uuid,
    pub to: Uuid,
    /// Whether names and contents of all files are the same, by the content digests.
    pub same: bool,
    pub added: u64,
    pub removed: u64,
    /// Files whose length or CRC-32 differs.
    pub changed: u64,
    pub unchanged: u64,
    /// A page of the files that differ, by name.
    pub files: Vec<FileChange>,
    /// The `cursor` of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A file that differs.
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
