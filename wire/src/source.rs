//! Sources as users see them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Diagnostic, StaleFile};

/// A Git repository the daemon follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The name from the daemon's configuration; also the project's name.
    pub name: String,
    /// The project of the same name.
    pub project_id: Uuid,
    /// Where the repository is, without credentials.
    pub url: String,
    /// What was asked for; absent for the remote's default branch.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The folder of workflows within the repository.
    pub path: String,
    /// Seconds between two looks when nothing wakes the daemon earlier.
    pub interval_seconds: u64,
    /// The newest tip that was read completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tip: Option<Tip>,
    /// When the repository was last looked at with success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<DateTime<Utc>>,
    /// What holds and what does not.
    pub conditions: Vec<Condition>,
    /// Files that are invalid at the tip.
    pub stale_files: Vec<StaleFile>,
    /// What is worth a second look in the repository, beside its workflow files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Diagnostic>,
    /// Number of workflows that are active.
    pub active_workflows: u64,
}

/// A commit the daemon has seen at the tip of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tip {
    /// 1 for the first tip seen.
    pub number: u64,
    /// The commit id.
    pub commit: String,
    /// The commit message's first line.
    pub summary: String,
    /// The commit's author.
    pub author: String,
    /// When the daemon saw it.
    pub seen_at: DateTime<Utc>,
    /// True when the tip before it is not an ancestor of this one.
    pub history_rewritten: bool,
}

/// One thing about a source that is true, false or not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// `Fetched`, `Valid`, `Active`, `Reconciling` or `Stalled`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `true`, `false` or `unknown`.
    pub status: String,
    /// Stable name of why.
    pub reason: String,
    /// The same for a person.
    pub message: String,
    /// Since when.
    pub changed_at: DateTime<Utc>,
}
