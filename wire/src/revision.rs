//! The revisions of a workflow, and how two of them differ in meaning.

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
    /// Whether the text is valid in the language of this daemon. An older daemon may have accepted more.
    pub valid: bool,
    /// The scans of a valid text, in its order.
    pub scans: Vec<Scan>,
    /// All errors and warnings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// How two revisions differ in meaning. Comments, the order of keys, quoting and explicit defaults make no difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevisionDiff {
    /// The revision to compare with.
    pub from: RevisionRef,
    pub to: RevisionRef,
    pub difference: Difference,
    /// The difference for people, line by line; none if both mean the same.
    pub lines: Vec<String>,
    /// The scans that are the same in both, in their order. A change outside of the scans may still matter to them.
    #[serde(default)]
    pub untouched: Vec<String>,
    /// The scans whose next five slots differ, first the present ones in their order, then the removed ones.
    #[serde(default)]
    pub next_slots: Vec<SlotDifference>,
    /// How the texts of the files differ, with comments and spaces.
    #[serde(default)]
    pub text: TextDifference,
}

/// The next slots of a scan's schedule by each of two revisions, in the time zone of that schedule. A revision without the
/// scan, or without a schedule of it, has none. Whether one of them starts a job is not said: the scan may be suspended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlotDifference {
    pub scan: String,
    pub from: Vec<DateTime<FixedOffset>>,
    pub to: Vec<DateTime<FixedOffset>>,
}

/// How two texts differ, line by line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TextDifference {
    /// From the top of the texts to their end; none if both are the same.
    pub hunks: Vec<Hunk>,
    /// Whether there is more than the listed hunks: a difference of thousands of lines is cut.
    pub cut: bool,
}

/// Neighbouring lines that differ, with some that are the same around them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hunk {
    /// The number of its first line in the text to compare with, from 1.
    pub from_line: u64,
    /// The number of its first line in the text that is compared, from 1.
    pub to_line: u64,
    /// Removed lines after `-`, added ones after `+`, and those in both after a space.
    pub lines: Vec<String>,
}

/// What differs between two workflows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Outside of the scans.
    pub workflow: Vec<Change>,
    /// The scans that differ: first the present ones in their order, then the removed ones.
    pub scans: Vec<ScanDifference>,
}

/// The change of one scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScanDifference {
    /// Its name; the new one of a scan that looks renamed.
    pub scan: String,
    #[serde(flatten)]
    pub fate: Fate,
    /// The differences in it; none if it was added or removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// Whether a scan was added, removed or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum Fate {
    Added,
    Removed,
    /// It says that it is a removed scan, or it is the same as one except for the name.
    Renamed {
        /// The name of the removed scan.
        from: String,
        /// Whether it goes on with the results of the removed scan, because it has `renamed_from`. Otherwise it starts
        /// anew.
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
        /// Its number, from 1; of a removed step the old one.
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
        /// How many lines were removed.
        removed: u64,
        /// How many lines were added.
        added: u64,
        /// The removed lines, after `-`, and the added ones, after `+`.
        lines: Vec<String>,
    },
}
