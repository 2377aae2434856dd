//! Workflows and their revisions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workflow::{Diagnostic, Scan, ScanName, Workflow};

use crate::armed::{Armed, arm};
use crate::{Order, ProjectId, RevisionId, SourceName, Timestamp, WorkflowId};

/// A workflow file's place in the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRecord {
    /// Derived from source and name.
    pub id: WorkflowId,
    /// The project it belongs to.
    pub project: ProjectId,
    /// The source it comes from.
    pub source: SourceName,
    /// Path below the source's folder without extension.
    pub name: String,
    /// Path in the repository when it was last active.
    pub file: String,
    /// Whether it starts jobs.
    pub status: WorkflowStatus,
    /// The newest revision.
    pub revision: RevisionRef,
    /// Since when the triggers of its scans count.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub armed: BTreeMap<ScanName, Armed>,
}

impl WorkflowRecord {
    /// The record of a workflow whose triggers count from now.
    #[must_use]
    pub fn rearmed(self, definition: &Workflow, now: Timestamp, order: Order) -> Self {
        Self {
            armed: arm(None, definition, now, order),
            ..self
        }
    }

    /// Since when its triggers count, while it is active.
    pub(crate) fn active_triggers(&self) -> Option<&BTreeMap<ScanName, Armed>> {
        match self.status {
            WorkflowStatus::Active => Some(&self.armed),
            WorkflowStatus::Retired { .. } => None,
        }
    }

    /// How jobs name it.
    pub fn reference(&self) -> WorkflowRef {
        WorkflowRef {
            id: self.id,
            source: self.source.clone(),
            name: self.name.clone(),
        }
    }
}

/// Names a workflow with what people call it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRef {
    /// Its id.
    pub id: WorkflowId,
    /// The source it comes from.
    pub source: SourceName,
    /// Path within the source without extension.
    pub name: String,
}

/// Whether a workflow starts jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum WorkflowStatus {
    /// Its newest revision runs.
    Active,
    /// Its file is gone, or its source is not configured any more: no new jobs, running ones finish, the history stays.
    Retired {
        /// Since when.
        since: Timestamp,
    },
}

/// Names a workflow revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionRef {
    /// What expressions see as `revision.id`.
    pub id: RevisionId,
    /// 1 for the workflow's first.
    pub number: u64,
    /// The Git commit it was read from.
    pub commit: String,
}

/// One version of a workflow file that was active. Never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionRecord {
    /// The workflow.
    pub workflow: WorkflowRef,
    /// Id, number and commit.
    pub reference: RevisionRef,
    /// Path in the repository.
    pub file: String,
    /// When it became active.
    pub activated_at: Timestamp,
    /// What its text must be.
    pub text: Text,
}

/// Tells a revision's text, which stands in a file beside the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// SHA-256 of the text, hexadecimal.
    pub sha256: String,
}

/// A revision with what it defines.
#[derive(Debug, Clone)]
pub struct Revision {
    /// The record.
    pub record: RevisionRecord,
    /// The parsed file.
    pub definition: Arc<Workflow>,
    /// What is worth a second look in it; found again at each start.
    pub warnings: Vec<Diagnostic>,
}

/// A workflow together with the revision that runs.
#[derive(Debug, Clone)]
pub struct ActiveWorkflow {
    /// The record.
    pub record: Arc<WorkflowRecord>,
    /// Its newest revision.
    pub revision: Arc<Revision>,
}

impl ActiveWorkflow {
    /// The scan of that name in the newest revision.
    pub fn scan(&self, name: &ScanName) -> Option<&Scan> {
        self.revision.definition.scan(name.as_str())
    }
}
