//! Sources as users see them.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Diagnostic, StaleFile};

/// A Git repository that the daemon follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// The name from the daemon's configuration; also the project's name.
    pub name: String,
    pub project_id: Uuid,
    /// The repository's address without credentials.
    pub url: String,
    /// The configured reference; absent for the remote's default branch.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The folder of workflows within the repository.
    pub path: String,
    /// Polling interval in seconds. Webhooks and requests may cause earlier polls.
    pub interval_seconds: u64,
    #[serde(flatten)]
    pub access: SourceAccess,
    /// The newest tip that was read completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tip: Option<Tip>,
    /// The last successful poll.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<DateTime<Utc>>,
    pub conditions: Vec<Condition>,
    /// Files that are invalid at the tip.
    pub stale_files: Vec<StaleFile>,
    /// Warnings about the repository, apart from its workflow files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Diagnostic>,
    /// The number of active workflows.
    pub active_workflows: u64,
}

impl Source {
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|one| one.kind == kind)
    }

    /// True if the tip waits for an approval.
    pub fn is_held(&self) -> bool {
        let active = self.condition("Active");
        active.is_some_and(|active| active.reason == "removal_held")
    }
}

/// Approves a held tip, which would retire many workflows at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveSource {
    /// The commit of the held tip. No other commit is approved.
    pub commit: String,
}

/// How the daemon gets access to a private repository: the place of the token, never its value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceAccess {
    /// The file that holds the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<String>,
    /// The program that prints the token, without its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_command: Option<String>,
    /// The user name that the host gets with the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The file with the trusted certificate authorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
}

/// A commit that the daemon saw at the tip of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tip {
    /// 1 for the first tip.
    pub number: u64,
    /// The commit id.
    pub commit: String,
    /// The first line of the commit message.
    pub summary: String,
    pub author: String,
    /// When the daemon saw it.
    pub seen_at: DateTime<Utc>,
    /// True if the previous tip is not an ancestor of this one.
    pub history_rewritten: bool,
    /// The commits between the previous tip and this one, which were never active. Not in lists of
    /// sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<String>,
    /// True if the list is incomplete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_passed_over: bool,
}

/// A statement about a source that is true, false or unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    /// `Fetched`, `Valid`, `Active`, `Reconciling` or `Stalled`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `true`, `false` or `unknown`.
    pub status: String,
    /// Stable name of the reason.
    pub reason: String,
    /// For people.
    pub message: String,
    /// When the status last changed.
    pub changed_at: DateTime<Utc>,
}
