//! Sources: the Git repositories that the daemon follows, their last known state, and what is wrong with them.

use serde::{Deserialize, Serialize};
use workflow::{Diagnostic, LinesOfFile};

use crate::{ProjectId, Reason, SourceName, Timestamp, WorkflowId};

/// A source as configured and as last seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// From the daemon's configuration.
    pub name: SourceName,
    /// The project of the same name.
    pub project: ProjectId,
    /// Where the repository is, without credentials.
    pub url: String,
    /// Branch, tag or commit. Absent for the remote's default branch.
    pub reference: Option<String>,
    /// Folder of workflows within the repository.
    pub folder: String,
    /// Seconds between two looks, if nothing triggers a look earlier.
    pub interval_seconds: u64,
    /// Whether the daemon's configuration names it.
    pub configured: bool,
    /// The newest tip that was read completely.
    pub tip: Option<TipRef>,
    /// The newest tip that was applied, while the newest tip is not: its removal is held, or it has no readable folder of
    /// workflows. Older records call it `commit_with_folder`.
    #[serde(
        default,
        alias = "commit_with_folder",
        skip_serializing_if = "Option::is_none"
    )]
    pub applied_commit: Option<String>,
    /// Present while the newest tip removes so much that it needs an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<Removal>,
    /// The full name of what the remote's HEAD names, if no reference is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_reference: Option<String>,
    /// One condition of each kind.
    pub conditions: Vec<Condition>,
    /// The files that are invalid at the tip. A very long list is cut.
    pub stale_files: Vec<StaleFile>,
    /// Warnings about the repository at the tip, apart from its workflow files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Diagnostic>,
}

/// What happens to a tip that removes so much that somebody must approve it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// Nothing of the tip is applied: what was active goes on.
    Held,
    /// The next look applies the tip, and no later one.
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
    /// When the daemon saw it.
    pub seen_at: Timestamp,
    /// Whether the previous tip is not an ancestor.
    pub history_rewritten: bool,
}

/// A statement about a source that is true, false or unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// What it is about.
    pub kind: ConditionKind,
    /// Whether it holds.
    pub status: Status,
    pub reason: Reason,
    /// When the status last changed.
    pub changed_at: Timestamp,
}

/// What a condition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ConditionKind {
    /// The repository was read at the last look.
    Fetched,
    /// Every workflow file at the tip is valid.
    Valid,
    /// All workflows of the tip are active.
    Active,
}

impl ConditionKind {
    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fetched => "Fetched",
            Self::Valid => "Valid",
            Self::Active => "Active",
        }
    }
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    True,
    False,
    Unknown,
}

impl Status {
    /// The stable name.
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
    /// Whether there are more than are listed.
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
    /// It is gone, and its workflow is retired.
    Retired,
}
