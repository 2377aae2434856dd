//! What differs in meaning between two workflows, member by member. What has no meaning makes no difference: comments,
//! the order of keys and scans, quoting, defaults that are written out, and how an expression or schedule is written.
//!
//! A scan that appears here has another [digest](crate::Scan::digest). The reverse holds but for the workflow's own `env`,
//! which is part of each scan and told once, and for expressions and schedules, which the digest takes as they are written.

mod align;
mod members;
mod readers;
mod renames;
mod steps;
#[cfg(test)]
mod tests;
mod text;
mod written;

use serde::Serialize;

use crate::definition::{Scan, Workflow};

/// What differs between two workflows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Outside of the scans.
    pub workflow: Vec<Change>,
    /// The scans that differ: those that are there now in their order, then those that are gone.
    pub scans: Vec<ScanDifference>,
}

/// What became of one scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScanDifference {
    /// Its name; the new one of a scan that looks renamed.
    pub scan: String,
    /// What became of it as a whole.
    #[serde(flatten)]
    pub fate: Fate,
    /// What differs in it; nothing for one that is new or gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// What became of a scan as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum Fate {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It runs what a scan ran that is gone. For the daemon these are two scans.
    Renamed {
        /// The name of the scan that is gone.
        from: String,
    },
    /// It was there and is there.
    Changed,
}

/// One thing that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The part it belongs to.
    #[serde(flatten)]
    pub part: Part,
    /// The key in the file. Absent when it is the part itself that came, went or has another value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<&'static str>,
    /// What happened to it.
    #[serde(flatten)]
    pub edit: Edit,
    /// Other scans that still read what is gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_by: Vec<String>,
}

/// A part of a workflow or scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum Part {
    /// The workflow or scan itself.
    Itself,
    /// An entry of `env`.
    Env {
        /// Its name.
        name: String,
    },
    /// An input of the dispatch.
    Input {
        /// Its name.
        name: String,
    },
    /// An artifact.
    Artifact {
        /// Its name.
        name: String,
    },
    /// A step.
    Step {
        /// Its place, from 1: where it is now, or where it was when it is gone.
        position: usize,
    },
}

/// What happened to a member or part. Values are written as in the file; defaults count as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "edit", rename_all = "snake_case")]
pub enum Edit {
    /// It came.
    Added {
        /// Its value.
        to: String,
    },
    /// It went.
    Removed {
        /// The value it had.
        from: String,
    },
    /// It has another value.
    Changed {
        /// The value it had.
        from: String,
        /// Its value.
        to: String,
    },
    /// A script has other lines.
    Rewritten {
        /// How many lines went.
        removed: usize,
        /// How many lines came.
        added: usize,
        /// The lines that went, after `-`, and that came, after `+`.
        lines: Vec<String>,
    },
}

impl Difference {
    /// Whether both mean the same.
    pub fn is_empty(&self) -> bool {
        self.workflow.is_empty() && self.scans.is_empty()
    }
}

/// Compares two workflows.
pub fn diff(before: &Workflow, after: &Workflow) -> Difference {
    let renames = renames::find(before, after);
    let mut scans: Vec<ScanDifference> = Vec::new();
    for scan in after.scans() {
        let name = scan.name.as_str();
        let (former, fate) = match (before.scan(name), renames.get(name)) {
            (Some(former), _) => (former, Fate::Changed),
            (None, Some(former)) => {
                let from = former.name.to_string();
                (*former, Fate::Renamed { from })
            }
            (None, None) => {
                scans.push(whole(scan, Fate::Added));
                continue;
            }
        };
        let changes = members::scan(former, scan, after);
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
