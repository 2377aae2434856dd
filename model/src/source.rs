//! Sources: the Git repositories that the daemon follows, their last known state, and their problems.

use serde::{Deserialize, Serialize};
use workflow::{Diagnostic, LinesOfFile};

use crate::{ProjectId, Reason, SourceName, Timestamp, WorkflowId};

/// A source: its configuration and its last known state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// From the daemon's configuration.
    pub name: SourceName,
    pub project: ProjectId,
    /// The location of the repository, without credentials.
    pub url: String,
    /// Branch, tag or commit. None for the remote's default branch.
    pub reference: Option<String>,
    /// Folder of workflows within the repository.
    pub folder: String,
    /// Polling interval in seconds. Other events may cause an earlier poll.
    pub interval_seconds: u64,
    /// True if the source is in the daemon's configuration.
    pub configured: bool,
    /// The newest tip that was read completely.
    pub tip: Option<TipRef>,
    /// The last applied tip. Set only if the newest tip is not applied: it waits for an approval, or its workflow
    /// folder is not readable. Older records name this field `commit_with_folder`.
    #[serde(
        default,
        alias = "commit_with_folder",
        skip_serializing_if = "Option::is_none"
    )]
    pub applied_commit: Option<String>,
    /// Set while the newest tip needs an approval, because it removes many workflows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<Removal>,
    /// The branch to which the remote's HEAD points. Set only if no reference is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_reference: Option<String>,
    pub conditions: Vec<SourceCondition>,
    /// Invalid files at the tip. A very long list is cut.
    pub stale_files: Vec<StaleFile>,
    /// Warnings about the repository at the tip, without those about workflow files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Diagnostic>,
}

impl Source {
    /// A statement that no poll has made yet is unknown.
    pub fn status(&self, kind: SourceConditionKind) -> Status {
        let mut known = self.conditions.iter();
        let known = known.find(|one| one.kind == kind);
        known.map_or(Status::Unknown, |known| known.status)
    }
}

/// The state of a tip that needs an approval, because it removes many workflows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// The tip is not applied. The active workflows do not change.
    Held,
    /// The next poll applies this tip. The approval does not cover later tips.
    Approved,
}

/// The newest tip of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TipRef {
    /// 1 for the first tip.
    pub number: u64,
    pub commit: String,
    /// First line of the message.
    pub summary: String,
    pub author: String,
    pub seen_at: Timestamp,
    /// True if the previous tip is not an ancestor of this tip.
    pub history_rewritten: bool,
}

/// A statement about a source that is true, false or unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCondition {
    pub kind: SourceConditionKind,
    pub status: Status,
    pub reason: Reason,
    /// When the status last changed.
    pub changed_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SourceConditionKind {
    /// The last poll read the repository.
    Fetched,
    /// Every workflow file at the tip is valid.
    Valid,
    /// All workflows of the tip are active.
    Active,
}

impl SourceConditionKind {
    pub const ALL: [Self; 3] = [Self::Fetched, Self::Valid, Self::Active];

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

/// A workflow file that is invalid at the tip. Its last valid version, if any, stays active.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaleFile {
    /// Path in the repository.
    pub file: String,
    /// The workflow that it would define.
    pub workflow: WorkflowId,
    /// The commit from which it was read.
    pub commit: String,
    /// The time since which it is invalid.
    pub since: Timestamp,
    /// At most [`crate::limits::STALE_DIAGNOSTICS`].
    pub diagnostics: Vec<Diagnostic>,
    /// The lines around its first error, because its text is not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<LinesOfFile>,
}

/// A tip and the verdict on each of its files. The record never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TipRecord {
    pub source: SourceName,
    pub tip: TipRef,
    /// Commits between the previous tip and this tip. They were never active.
    pub skipped: Vec<String>,
    /// True if more commits were skipped than listed.
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
    /// The file has become a new revision.
    Activated,
    /// The file is invalid. Its last valid version, if any, stays active.
    Invalid,
    /// The file was removed, and its workflow is retired.
    Retired,
}
