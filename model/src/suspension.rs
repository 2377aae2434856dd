//! Suspended workflows and scans: they start no jobs until a person resumes them.
//!
//! The record belongs to the workflow or the scan, not to a revision. So it survives new revisions, and a retirement of
//! the workflow. A resumption ends the suspension and is stored in its record.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workflow::ScanName;

use crate::revision::WorkflowRef;
use crate::{Actor, ProjectId, Reason, Timestamp, WorkflowId};

/// The latest suspension of a workflow or of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    pub project: ProjectId,
    pub workflow: WorkflowRef,
    /// The scan; none for the whole workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<ScanName>,
    pub since: Timestamp,
    pub by: Actor,
    /// The text of the person who suspended it.
    pub reason: String,
    /// The resumption, after which the suspension has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Resumption>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumption {
    pub at: Timestamp,
    pub by: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuspendedPart {
    Workflow,
    Scan,
}

impl Suspension {
    pub const fn is_in_force(&self) -> bool {
        self.resumed.is_none()
    }

    pub const fn part(&self) -> SuspendedPart {
        match self.scan {
            None => SuspendedPart::Workflow,
            Some(_) => SuspendedPart::Scan,
        }
    }

    pub fn as_reason(&self) -> Reason {
        Reason::Suspended {
            part: self.part(),
            since: self.since,
            by: self.by.clone(),
            text: self.reason.clone(),
        }
    }
}

/// Includes suspensions that have ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Suspensions(BTreeMap<WorkflowId, OfWorkflow>);

#[derive(Debug, Clone, Default)]
struct OfWorkflow {
    whole: Option<Arc<Suspension>>,
    scans: BTreeMap<ScanName, Arc<Suspension>>,
}

impl Suspensions {
    pub(crate) fn put(&mut self, suspension: &Arc<Suspension>) {
        let of_workflow = self.0.entry(suspension.workflow.id).or_default();
        match &suspension.scan {
            None => of_workflow.whole = Some(suspension.clone()),
            Some(scan) => {
                let scans = &mut of_workflow.scans;
                scans.insert(scan.clone(), suspension.clone());
            }
        }
    }

    /// The latest suspension of the workflow itself, or of a scan.
    pub(crate) fn latest(
        &self,
        workflow: WorkflowId,
        scan: Option<&ScanName>,
    ) -> Option<&Arc<Suspension>> {
        let of_workflow = self.0.get(&workflow)?;
        match scan {
            None => of_workflow.whole.as_ref(),
            Some(scan) => of_workflow.scans.get(scan),
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Suspension>> {
        let of_workflows = self.0.values();
        of_workflows.flat_map(|it| it.whole.iter().chain(it.scans.values()))
    }
}
