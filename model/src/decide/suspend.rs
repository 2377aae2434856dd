//! Suspends and resumes workflows and scans.

use std::sync::Arc;

use workflow::ScanName;

use super::{Command, Decision, Refusal, Urgency, readable_workflow};
use crate::change::Change;
use crate::limits::SUSPENSION_REASON_CHARS;
use crate::moment::Moment;
use crate::suspension::{Resumption, Suspension};
use crate::world::World;
use crate::{Actor, WorkflowId};

/// Prevent a workflow or one of its scans from starting jobs.
#[derive(Debug, Clone)]
pub struct Suspend {
    pub workflow: WorkflowId,
    /// The scan; none for the whole workflow.
    pub scan: Option<String>,
    pub reason: String,
    pub actor: Actor,
}

impl Command for Suspend {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    /// A repeat changes nothing: the time and the reason of the first suspension stay.
    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let scan = part(world, self.workflow, self.scan.as_deref())?;
        let reason = words(&self.reason)?
            .ok_or_else(|| Refusal::invalid("reason", "is missing: say why, for later readers"))?;
        let latest = world.latest_suspension(self.workflow, scan.as_ref());
        if latest.is_some_and(|latest| latest.is_in_force()) {
            return Ok(Decision::unchanged(()));
        }
        let Some(record) = world.workflow_record(self.workflow) else {
            return Err(no_such_workflow(self.workflow));
        };
        let suspension = Suspension {
            project: record.project,
            workflow: record.reference(),
            scan,
            since: moment.now,
            by: self.actor,
            reason,
            resumed: None,
        };
        Ok(Decision::of([Change::Suspension(Arc::new(suspension))]))
    }
}

/// Allow a workflow or a scan to start jobs again.
#[derive(Debug, Clone)]
pub struct Resume {
    pub workflow: WorkflowId,
    /// The scan; none for the whole workflow.
    pub scan: Option<String>,
    pub reason: Option<String>,
    pub actor: Actor,
}

impl Command for Resume {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    /// If nothing is suspended, nothing changes. Later decisions, one per scan, check the causes that were skipped
    /// during the suspension.
    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let scan = part(world, self.workflow, self.scan.as_deref())?;
        let reason = match &self.reason {
            Some(reason) => words(reason)?,
            None => None,
        };
        let latest = world.latest_suspension(self.workflow, scan.as_ref());
        let Some(latest) = latest.filter(|latest| latest.is_in_force()) else {
            return Ok(Decision::unchanged(()));
        };
        let ended = Suspension {
            resumed: Some(Resumption {
                at: moment.now,
                by: self.actor,
                reason,
            }),
            ..Suspension::clone(latest)
        };
        Ok(Decision::of([Change::Suspension(Arc::new(ended))]))
    }
}

/// The scan with this name; none for the whole workflow. A removed scan can still be resumed.
fn part(
    world: &World,
    workflow: WorkflowId,
    scan: Option<&str>,
) -> Result<Option<ScanName>, Refusal> {
    let Some(name) = scan else {
        return match world.workflow_record(workflow) {
            Some(_) => Ok(None),
            None => Err(no_such_workflow(workflow)),
        };
    };
    let known = name.parse::<ScanName>().ok();
    if let Some(name) = &known
        && world.latest_suspension(workflow, Some(name)).is_some()
    {
        return Ok(known);
    }
    let readable = readable_workflow(world, workflow)?;
    match readable.revision.definition.scan(name) {
        Some(scan) => Ok(Some(scan.name.clone())),
        None => Err(super::dispatch::no_such_scan(&readable, name)),
    }
}

fn no_such_workflow(workflow: WorkflowId) -> Refusal {
    Refusal::NoSuchWorkflow {
        workflow: workflow.to_string(),
    }
}

/// The text of a reason. None if it is blank.
fn words(text: &str) -> Result<Option<String>, Refusal> {
    if text.chars().count() > SUSPENSION_REASON_CHARS {
        return Err(Refusal::invalid(
            "reason",
            format!("has more than {SUSPENSION_REASON_CHARS} characters"),
        ));
    }
    if text.contains(char::is_control) {
        return Err(Refusal::invalid("reason", "must be one line of text"));
    }
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}
