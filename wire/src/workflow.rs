//! Workflows, their revisions, and what is wrong in a file.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Explanation, RevisionRef};

/// A workflow file's place in the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workflow {
    /// UUID v5 of source and name.
    pub id: Uuid,
    /// The source it comes from.
    pub source: String,
    /// Path below the source's folder without extension.
    pub name: String,
    /// The title the file gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the file says it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `active`, or `retired` once the file or the source is gone; `unreadable` when its revision cannot be read, so that
    /// nothing of it starts until a valid file is pushed.
    pub state: String,
    /// Why it is retired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired: Option<Explanation>,
    /// The revision that runs.
    pub revision: Revision,
    /// Its scans, in the order of the file.
    pub scans: Vec<Scan>,
    /// What is worth a second look in the file of the revision that runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Diagnostic>,
    /// Why the file at the tip is not what runs, when it is invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<StaleFile>,
}

/// One version of a workflow file that was active.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// What expressions see as `revision.id`.
    pub id: Uuid,
    /// 1 for the first.
    pub number: u64,
    /// The commit that changed the file.
    pub commit: String,
    /// When it became active; absent when the revision cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activated_at: Option<DateTime<Utc>>,
    /// SHA-256 of the file, hexadecimal; absent when the revision cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A scan as declared by the active revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scan {
    /// Its name.
    pub name: String,
    /// The cron schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The expression over other scans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expr: Option<String>,
    /// The inputs of a dispatch, when the scan declares one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<ScanInput>>,
    /// The artifacts a success may leave.
    pub artifacts: Vec<String>,
    /// Number of steps.
    pub steps: u32,
}

/// One declared input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanInput {
    /// Read in expressions as `inputs.KEY`.
    pub key: String,
    /// `string` or `bool`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether a dispatch must give it.
    pub required: bool,
    /// What it is when not given.
    pub default: String,
}

/// A workflow file that is invalid at the tip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaleFile {
    /// Path in the repository.
    pub file: String,
    /// The commit it was read from.
    pub commit: String,
    /// Since when.
    pub since: DateTime<Utc>,
    /// The revision that goes on meanwhile; absent when the file has never been good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good: Option<RevisionRef>,
    /// Everything that is wrong in it.
    pub diagnostics: Vec<Diagnostic>,
}

/// Something wrong at a place in a workflow file. Lines and columns are counted from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Path in the repository, or as given.
    pub file: String,
    /// First line.
    pub line: u32,
    /// First column.
    pub column: u32,
    /// Last line.
    pub end_line: u32,
    /// The column after the last character.
    pub end_column: u32,
    /// How bad it is.
    pub severity: Severity,
    /// Stable name.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is taken.
    Warning,
}
