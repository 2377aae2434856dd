//! The differences in meaning between two workflows, member by member. Comments, the order of keys and scans, quoting, explicit
//! defaults, and the spelling of an expression or schedule make no difference.
//!
//! A scan with a difference has another [digest](crate::Scan::digest). The reverse has two exceptions: a change of the workflow's
//! own `env` changes the digest of each scan but is reported once, and the digest depends on the spelling of expressions and
//! schedules.

mod lines;
mod members;
mod readers;
mod renames;
mod steps;
#[cfg(test)]
mod tests;
mod text;

use serde::Serialize;

pub use lines::{Hunk, LineDifference, line_diff};

use crate::definition::{Scan, Workflow};

/// The differences between two workflows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Changes outside of the scans.
    pub workflow: Vec<Change>,
    /// The scans that differ: first the present scans in their order, then the removed scans.
    pub scans: Vec<ScanDifference>,
}

/// The change of one scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScanDifference {
    /// Its name. For a scan that looks renamed, the new name.
    pub scan: String,
    /// Whether it was added, removed or changed.
    #[serde(flatten)]
    pub fate: Fate,
    /// The differences in the scan. Empty if it was added or removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// Whether a scan was added, removed or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum Fate {
    Added,
    Removed,
    /// Its `renamed_from` names a removed scan, or it equals a removed scan except for its name.
    Renamed {
        /// The name of the removed scan.
        from: String,
        /// True if it has `renamed_from`, and so keeps the results of the removed scan.
        goes_on: bool,
    },
    Changed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The part it belongs to.
    #[serde(flatten)]
    pub part: Part,
    /// The key in the file. Absent if the part itself was added, removed or changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<&'static str>,
    /// What happened to it.
    #[serde(flatten)]
    pub edit: Edit,
    /// Other scans that still read what was removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_by: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
        /// Its number, from 1. For a removed step, the old number.
        position: usize,
    },
}

/// The change of a member or part. Values are written as in the file; a default counts as if it were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
        removed: usize,
        added: usize,
        /// The removed lines after `-`, and the added lines after `+`.
        lines: Vec<String>,
    },
}

impl Difference {
    /// Whether both mean the same.
    pub fn is_empty(&self) -> bool {
        self.workflow.is_empty() && self.scans.is_empty()
    }
}

pub fn diff(before: &Workflow, after: &Workflow) -> Difference {
    let renames = renames::find(before, after);
    let mut scans: Vec<ScanDifference> = Vec::new();
    for scan in after.scans() {
        let name = scan.name.as_str();
        let (former, fate) = match (before.scan(name), renames.get(name)) {
            (Some(former), _) => (former, Fate::Changed),
            (None, Some(former)) => {
                let fate = Fate::Renamed {
                    from: former.name.to_string(),
                    goes_on: scan.renamed_from.as_ref() == Some(&former.name),
                };
                (*former, fate)
            }
            (None, None) => {
                scans.push(whole(scan, Fate::Added));
                continue;
            }
        };
        let mut changes = members::scan(former, scan, after);
        if fate != Fate::Changed {
            // `fate` already has this information.
            changes.retain(|change| change.member != Some(members::RENAMED_FROM));
        }
        if fate != Fate::Changed || !changes.is_empty() {
            scans.push(ScanDifference {
                scan: name.to_owned(),
                fate,
                changes,
            });
        }
    }
    let gone = before.scans().filter(|scan| {
        let name = scan.name.as_str();
        let is_renamed = || renames.values().any(|former| former.name == scan.name);
        after.scan(name).is_none() && !is_renamed()
    });
    scans.extend(gone.map(|scan| whole(scan, Fate::Removed)));
    Difference {
        workflow: members::workflow(before, after),
        scans,
    }
}

fn whole(scan: &Scan, fate: Fate) -> ScanDifference {
    ScanDifference {
        scan: scan.name.to_string(),
        fate,
        changes: Vec::new(),
    }
}
