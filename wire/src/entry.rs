//! The files in an artifact, and how those of two artifacts differ.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

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
