//! The revisions of a workflow, and the difference between two.

use chrono::{DateTime, FixedOffset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Diagnostic, Revision, RevisionRef, Scan};

/// A revision with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevisionText {
    #[serde(flatten)]
    pub revision: Revision,
    /// Path in the repository when it became active.
    pub file: String,
    pub text: String,
    /// True if this daemon accepts the text. An older daemon may have accepted more.
    pub valid: bool,
    /// The scans of a valid text, in its order.
    pub scans: Vec<Scan>,
    /// All errors and warnings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// The difference between two revisions. Comments, the order of keys, quoting and explicit defaults make no
/// difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevisionDiff {
    /// The revision to compare with.
    pub from: RevisionRef,
    pub to: RevisionRef,
    pub difference: Difference,
    /// The difference as text, line by line; empty if both mean the same.
    pub lines: Vec<String>,
    /// The unchanged scans, in their order. A change outside of the scans may still affect them.
    #[serde(default)]
    pub untouched: Vec<String>,
    /// The scans whose next five slots differ: first the current ones in their order, then the removed ones.
    #[serde(default)]
    pub next_slots: Vec<SlotDifference>,
    /// The difference of the texts, with comments and spaces.
    #[serde(default)]
    pub text: TextDifference,
}

/// The next slots of a scan by each of two revisions, in the time zone of its schedule; empty if the revision has no
/// schedule for it. A slot may start no job, for example because of a suspension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlotDifference {
    pub scan: String,
    pub from: Vec<DateTime<FixedOffset>>,
    pub to: Vec<DateTime<FixedOffset>>,
}

/// How two texts differ, line by line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TextDifference {
    /// From top to bottom; empty if both texts are the same.
    pub hunks: Vec<Hunk>,
    /// True if the list is incomplete: a difference of thousands of lines is truncated.
    pub cut: bool,
}

/// Adjacent lines that differ, with context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hunk {
    /// Its first line in the old text, from 1.
    pub from_line: u64,
    /// Its first line in the new text, from 1.
    pub to_line: u64,
    /// Each line begins with `-` (removed), `+` (added) or a space (in both).
    pub lines: Vec<String>,
}

/// The difference between two workflows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Outside of the scans.
    pub workflow: Vec<Change>,
    /// The scans that differ: first the current ones in their order, then the removed ones.
    pub scans: Vec<ScanDifference>,
}

/// The difference of one scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScanDifference {
    /// Its name; the new one if it was renamed.
    pub scan: String,
    #[serde(flatten)]
    pub fate: Fate,
    /// Empty if it was added or removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// Whether a scan was added, removed or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum Fate {
    Added,
    Removed,
    /// It has `renamed_from`, or it equals a removed scan except for its name.
    Renamed {
        /// The name of the removed scan.
        from: String,
        /// True if it keeps the results of the removed scan, because it has `renamed_from`.
        #[serde(default)]
        goes_on: bool,
    },
    /// It is in both.
    Changed,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    #[serde(flatten)]
    pub part: Part,
    /// The key in the file. Absent if the part itself was added, removed or changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    #[serde(flatten)]
    pub edit: Edit,
    /// Other scans that still read what was removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_by: Vec<String>,
}

/// A part of a workflow or scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum Part {
    /// The workflow or scan itself.
    Itself,
    Env {
        name: String,
    },
    Input {
        name: String,
    },
    Artifact {
        name: String,
    },
    Step {
        /// Its number, from 1; for a removed step the old one.
        position: u64,
    },
}

/// The change of a member or part. Values are as in the file; a default counts as if it were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "edit", rename_all = "snake_case")]
pub enum Edit {
    Added {
        to: String,
    },
    Removed {
        from: String,
    },
    Changed {
        from: String,
        to: String,
    },
    /// A script has other lines.
    Rewritten {
        removed: u64,
        added: u64,
        /// The removed lines after `-`, and the added lines after `+`.
        lines: Vec<String>,
    },
}
