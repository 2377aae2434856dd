//! Workflows, their revisions, and problems in their files.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Explanation, Resumption, RevisionRef, Suspension};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Workflow {
    /// UUID v5 of source and name.
    pub id: Uuid,
    pub source: String,
    /// Path below the source's folder, without extension.
    pub name: String,
    /// The title from the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description from the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `active`; `retired` if the file or the source was removed; `unreadable` if the revision cannot be read: then
    /// it starts no jobs until a valid file is pushed.
    pub state: String,
    /// Why it is retired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired: Option<Explanation>,
    /// Present while it is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Suspension>,
    /// Present if its own latest suspension has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Resumption>,
    /// Scans that are suspended themselves, apart from the workflow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspended_scans: Vec<String>,
    /// The active revision.
    pub revision: Revision,
    /// In the order of the file.
    pub scans: Vec<Scan>,
    /// Warnings about the file of the active revision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Diagnostic>,
    /// Present if the file at the tip is invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<StaleFile>,
}

/// The body of a validation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Validate {
    /// The text of a workflow file.
    pub text: String,
    /// The name of the file in diagnostics; `workflow.yaml` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// The result of a validation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Validated {
    /// True if a push of the file would make a revision.
    pub valid: bool,
    /// The scans of a valid file, in its order.
    pub scans: Vec<Scan>,
    /// All errors and warnings, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// An active version of a workflow file, now or earlier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revision {
    /// In expressions, `revision.id`.
    pub id: Uuid,
    /// 1 for the first.
    pub number: u64,
    /// The commit that changed the file.
    pub commit: String,
    /// Absent if the revision cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activated_at: Option<DateTime<Utc>>,
    /// SHA-256 of the file, hexadecimal; absent if the revision cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A scan of the active revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Scan {
    pub name: String,
    /// Its schedules, separated by `; `.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The time zone of the schedule, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expr: Option<String>,
    /// The name of the callback server whose interactions start it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<String>,
    /// The inputs of a dispatch, if the scan declares `dispatch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<ScanInput>>,
    /// The artifacts that a successful job may store.
    pub artifacts: Vec<String>,
    /// The scans that it reads: the edges of the workflow's graph.
    #[serde(default)]
    pub reads: Vec<Reading>,
    /// The number of steps.
    pub steps: u32,
    /// The labels that a runner must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs_on: Vec<String>,
    /// The files of the repository that its jobs get: `true`, or the paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
    /// The callback server of which its jobs get a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_server: Option<String>,
    /// How failed jobs are retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<ScanRetry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScanRetry {
    /// The most further jobs.
    pub attempts: u8,
    /// The pause before the first retry, such as `30s`. It doubles with each one.
    pub backoff: String,
}

/// A scan whose results or success are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reading {
    pub scan: String,
    pub how: How,
}

/// How a scan reads another scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// A success of the other scan causes an evaluation of `expr`, which may start this one.
    Starts,
    /// This scan reads results in another expression or a template, or reads its own past.
    Reads,
}

/// A declared input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScanInput {
    /// In expressions, `inputs.KEY`.
    pub key: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `string`, `bool`, `number` or `choice`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The options of a `choice`, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// True if a dispatch must give it.
    pub required: bool,
    pub default: String,
}

/// A workflow file that is invalid at the tip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StaleFile {
    /// Path in the repository.
    pub file: String,
    /// The commit it was read from.
    pub commit: String,
    pub since: DateTime<Utc>,
    /// The revision that stays active; absent if the file has never been valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good: Option<RevisionRef>,
    /// All problems of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// The lines around the first error; absent if it is about the file as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<Excerpt>,
}

/// Some lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Excerpt {
    /// The number of the first line, from 1.
    pub first: u32,
    /// Without line ends. A long line is cut and ends in `…`.
    pub lines: Vec<String>,
}

/// A problem at a place in a workflow file. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// Path in the repository, or as given.
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    /// The column after the last character.
    pub end_column: u32,
    pub severity: Severity,
    /// Stable name.
    pub code: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is accepted.
    Warning,
}
