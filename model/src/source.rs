//! Sources: the Git repositories that the daemon follows, their last known state, and what is wrong with them.

use serde::{Deserialize, Serialize};
use workflow::{Diagnostic, LinesOfFile};

use crate::{ProjectId, Reason, SourceName, Timestamp, WorkflowId};

/// A source as configured and as last seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// From the daemon's configuration.
    pub name: SourceName,
    pub project: ProjectId,
    /// Where the repository is, without credentials.
    pub url: String,
    /// Branch, tag or commit. Absent for the remote's default branch.
    pub reference: Option<String>,
    /// Folder of workflows within the repository.
    pub folder: String,
    /// Polling interval in seconds. Other events may trigger a poll earlier.
    pub interval_seconds: u64,
    /// True while the daemon's configuration names it.
    pub configured: bool,
    /// The newest tip that was read completely.
    pub tip: Option<TipRef>,
    /// The last applied tip. Set only if the newest tip is not applied: it waits for approval, or its workflow folder
    /// is not readable. Older records call it `commit_with_folder`.
    #[serde(
        default,
        alias = "commit_with_folder",
        skip_serializing_if = "Option::is_none"
    )]
    pub applied_commit: Option<String>,
    /// Set while the newest tip removes so much that it needs an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<Removal>,
    /// The branch that the remote's HEAD points to. Set only if no reference is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_reference: Option<String>,
    pub conditions: Vec<Condition>,
    /// Invalid files at the tip. A very long list is cut.
    pub stale_files: Vec<StaleFile>,
    /// Warnings about the repository at the tip, not about its workflow files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Diagnostic>,
}

/// The state of a tip that removes so much that it needs an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// The tip is not applied. Everything stays as it was.
    Held,
    /// The next poll applies this tip. The approval does not cover later tips.
    Approved,
}

/// The newest tip of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TipRef {
    /// 1 for the first tip seen.
    pub number: u64,
    pub commit: String,
    /// First line of the message.
    pub summary: String,
    pub author: String,
    pub seen_at: Timestamp,
    /// True if the previous tip is not an ancestor of this one.
    pub history_rewritten: bool,
}

/// A statement about a source that is true, false or unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    pub kind: ConditionKind,
    pub status: Status,
    pub reason: Reason,
    /// When the status last changed.
    pub changed_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ConditionKind {
    /// The last poll read the repository.
    Fetched,
    /// Every workflow file at the tip is valid.
    Valid,
    /// All workflows of the tip are active.
    Active,
}

impl ConditionKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fetched => "Fetched",
            Self::Valid => "Valid",
            Self::Active => "Active",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    True,
    False,
    Unknown,
}

impl Status {
    pub const fn name(self) -> &'static str {
        match self {
            Self::True => "true",
            Self::False => "false",
            Self::Unknown => "unknown",
        }
    }
}

/// A workflow file that is invalid at the tip. Its last valid version stays active, if there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaleFile {
    /// Path in the repository.
    pub file: String,
    /// The workflow that it would define.
    pub workflow: WorkflowId,
    /// The commit it was read from.
    pub commit: String,
    /// Since when it has been invalid.
    pub since: Timestamp,
    /// At most [`crate::limits::STALE_DIAGNOSTICS`].
    pub diagnostics: Vec<Diagnostic>,
    /// The lines around its first error, since its text is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<LinesOfFile>,
}

/// A tip that was seen, and the verdict on each of its files. It is written once and never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TipRecord {
    pub source: SourceName,
    pub tip: TipRef,
    /// Commits between the previous tip and this one. They were never active.
    pub skipped: Vec<String>,
    /// True if more commits were skipped than are listed.
    pub more_skipped: bool,
    /// The files whose state changed with this tip. A very long list is cut.
    pub files: Vec<FileVerdict>,
    /// Number of workflow files at the tip.
    pub file_count: u64,
}

/// The verdict on a file at a tip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVerdict {
    /// Path in the repository.
    pub file: String,
    pub verdict: FileOutcome,
}

/// The possible verdicts on a file at a tip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOutcome {
    /// It made a new revision.
    Activated,
    /// It is invalid. Its last valid version stays active, if there is one.
    Invalid,
    /// It was removed, and its workflow is retired.
    Retired,
}
