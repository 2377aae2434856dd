//! Sources: Git repositories the daemon follows, what was last seen of them, and what is wrong.

use serde::{Deserialize, Serialize};
use workflow::Diagnostic;

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
    /// Branch, tag or commit; absent for the remote's default branch.
    pub reference: Option<String>,
    /// Folder of workflows within the repository.
    pub folder: String,
    /// Seconds between two looks when nothing wakes the daemon earlier.
    pub interval_seconds: u64,
    /// Whether the daemon's configuration names it.
    pub configured: bool,
    /// The newest tip that was read completely.
    pub tip: Option<TipRef>,
    /// What holds and what does not; one per kind.
    pub conditions: Vec<Condition>,
    /// Files that are invalid at the tip; when they are very many, the first of them.
    pub stale_files: Vec<StaleFile>,
    /// What is worth a second look in the repository at the tip, beside its workflow files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Diagnostic>,
}

/// The newest tip of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TipRef {
    /// 1 for the first tip seen.
    pub number: u64,
    /// The commit id.
    pub commit: String,
    /// First line of the message.
    pub summary: String,
    /// The commit's author.
    pub author: String,
    /// When the daemon saw it.
    pub seen_at: Timestamp,
    /// True when the tip before it is no ancestor.
    pub history_rewritten: bool,
}

/// One thing about a source that is true, false or not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// What it is about.
    pub kind: ConditionKind,
    /// Whether it holds.
    pub status: Status,
    /// Why.
    pub reason: Reason,
    /// Since when the status is what it is.
    pub changed_at: Timestamp,
}

/// What a condition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ConditionKind {
    /// The repository was read at the last look.
    Fetched,
    /// Every workflow file at the tip is valid.
    Valid,
    /// What the tip asks for is what runs.
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
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody knows.
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

/// A workflow file that is invalid at the tip; its last good version goes on, if it has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaleFile {
    /// Path in the repository.
    pub file: String,
    /// The workflow it would be.
    pub workflow: WorkflowId,
    /// The commit it was read from.
    pub commit: String,
    /// Since when it has been invalid.
    pub since: Timestamp,
    /// What is wrong, at most [`crate::limits::STALE_DIAGNOSTICS`].
    pub diagnostics: Vec<Diagnostic>,
}

/// A tip that was seen, with what became of every file. Written once, never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TipRecord {
    /// The source.
    pub source: SourceName,
    /// The tip.
    pub tip: TipRef,
    /// Commits between the tip before and this one, which were never active.
    pub skipped: Vec<String>,
    /// Whether there were more of them than are listed.
    pub more_skipped: bool,
    /// What became of every file whose state changed with this tip; when they are very many, the first of them.
    pub files: Vec<FileVerdict>,
    /// Number of workflow files at the tip.
    pub file_count: u64,
}

/// What became of one file at a tip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVerdict {
    /// Path in the repository.
    pub file: String,
    /// What became of it.
    pub verdict: FileOutcome,
}

/// What became of a file at a tip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOutcome {
    /// It made a new revision.
    Activated,
    /// It is invalid; its last good version goes on, if it has one.
    Invalid,
    /// It is gone; its workflow retired.
    Retired,
}
