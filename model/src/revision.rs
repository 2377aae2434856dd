//! Workflows and their revisions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workflow::{Diagnostic, Scan, ScanName, Workflow};

use crate::armed::{Armed, arm};
use crate::source::Source;
use crate::{Order, ProjectId, RevisionId, SourceName, Timestamp, WorkflowId};

/// The record of a workflow file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRecord {
    /// Derived from source and name.
    pub id: WorkflowId,
    pub project: ProjectId,
    pub source: SourceName,
    /// Path below the source's folder, without extension.
    pub name: String,
    /// Path in the repository when it was last active.
    pub file: String,
    pub status: WorkflowStatus,
    pub revision: RevisionRef,
    /// When the triggers of its scans became active.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub armed: BTreeMap<ScanName, Armed>,
    /// The commit whose files its jobs get, if it is not the newest tip of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldCommit>,
}

/// The newest commit whose version of a workflow file is the active revision. It is recorded while the newest tip is
/// being applied, and while the file is invalid at the newest tip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldCommit {
    pub commit: String,
    /// The tip number from which the newest tip is used instead. Absent while the file is invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

impl HeldCommit {
    /// The commit is used until the source records this tip.
    pub(crate) fn until_recorded(source: Option<&Source>, commit: &str) -> Self {
        let tip = source.and_then(|source| source.tip.as_ref());
        let until = match tip {
            // A held tip is only applied now.
            Some(tip)
                if tip.commit == commit
                    && source.is_some_and(|source| source.applied_commit.is_none()) =>
            {
                tip.number
            }
            Some(tip) => tip.number + 1,
            None => 1,
        };
        Self {
            commit: commit.to_owned(),
            until: Some(until),
        }
    }

    /// True if the commit is used while the newest tip has this number; 0 if there is no tip.
    pub(crate) fn counts(&self, tip: u64) -> bool {
        self.until.is_none_or(|until| tip < until)
    }
}

impl WorkflowRecord {
    /// Makes all triggers active from now on.
    #[must_use]
    pub fn rearmed(self, definition: &Workflow, now: Timestamp, order: Order) -> Self {
        Self {
            armed: arm(None, None, definition, now, order),
            ..self
        }
    }

    /// The triggers with their start times, if the workflow is active.
    pub(crate) fn active_triggers(&self) -> Option<&BTreeMap<ScanName, Armed>> {
        match self.status {
            WorkflowStatus::Active => Some(&self.armed),
            WorkflowStatus::Retired { .. } => None,
        }
    }

    /// The reference for the records of jobs.
    pub fn reference(&self) -> WorkflowRef {
        WorkflowRef {
            id: self.id,
            source: self.source.clone(),
            name: self.name.clone(),
        }
    }
}

/// Identifies a workflow by id and name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRef {
    pub id: WorkflowId,
    pub source: SourceName,
    /// Path within the source without extension.
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum WorkflowStatus {
    /// The newest revision is active.
    Active,
    /// The file was removed, or the source is no longer configured. The workflow starts no new jobs. Running jobs
    /// finish, and the history stays.
    Retired { since: Timestamp },
}

/// Identifies a workflow revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionRef {
    /// Expressions read it as `revision.id`.
    pub id: RevisionId,
    /// 1 for the workflow's first revision.
    pub number: u64,
    /// The Git commit from which it was read.
    pub commit: String,
}

/// A version of a workflow file that was active. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionRecord {
    pub workflow: WorkflowRef,
    pub reference: RevisionRef,
    /// Path in the repository.
    pub file: String,
    pub activated_at: Timestamp,
    pub text: Text,
}

/// Identifies a revision's text, which has its own file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// SHA-256 of the text, hexadecimal.
    pub sha256: String,
}

/// A revision with its definition.
#[derive(Debug, Clone)]
pub struct Revision {
    pub record: RevisionRecord,
    pub definition: Arc<Workflow>,
    /// Warnings about the file. They are recomputed at each start.
    pub warnings: Vec<Diagnostic>,
}

/// A workflow with its active revision.
#[derive(Debug, Clone)]
pub struct ActiveWorkflow {
    pub record: Arc<WorkflowRecord>,
    pub revision: Arc<Revision>,
}

impl ActiveWorkflow {
    pub fn scan(&self, name: &ScanName) -> Option<&Scan> {
        self.revision.definition.scan(name.as_str())
    }
}
