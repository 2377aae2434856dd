//! Activates and retires workflows.

use std::sync::Arc;

use workflow::{Diagnostic, Workflow};

use super::renames::take_over;
use super::{Command, Decision, Refusal, Urgency};
use crate::armed::arm;
use crate::change::Change;
use crate::limits::INLINE_PAYLOAD_BYTES;
use crate::moment::Moment;
use crate::revision::{
    HeldCommit, Revision, RevisionRecord, RevisionRef, Text, WorkflowRecord, WorkflowStatus,
};
use crate::world::World;
use crate::{ProjectId, RevisionId, SourceName, WorkflowId};

/// Make a text the newest revision of a workflow.
#[derive(Debug, Clone)]
pub struct Activate {
    pub source: SourceName,
    pub name: String,
    /// Path in the repository.
    pub file: String,
    /// The commit from which the text was read.
    pub commit: String,
    pub text: Arc<str>,
    /// SHA-256 of the text, hexadecimal.
    pub sha256: String,
    pub definition: Arc<Workflow>,
    pub warnings: Vec<Diagnostic>,
}

impl Activate {
    /// True if the text is too large for a record.
    pub fn is_object(&self) -> bool {
        self.text.len() > INLINE_PAYLOAD_BYTES
    }
}

impl Command for Activate {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    /// The same text creates no new revision, but reactivates a retired workflow.
    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let id = WorkflowId::derive(&self.source, &self.name);
        let source = world.source(&self.source).map(Arc::as_ref);
        let held = HeldCommit::until_recorded(source, &self.commit);
        // A number is never used again, even if the newest revision cannot be read.
        let before = world.workflow_record(id);
        let newest = before.and_then(|before| world.revision(before.revision.id));
        if let (Some(before), Some(newest)) = (before, newest)
            && newest.record.text.sha256 == self.sha256
        {
            let record = WorkflowRecord {
                status: WorkflowStatus::Active,
                held: Some(held),
                file: self.file,
                armed: arm(
                    before.active_triggers(),
                    Some(&newest.definition),
                    &self.definition,
                    moment.now,
                    moment.order,
                ),
                ..WorkflowRecord::clone(before)
            };
            // A new commit alone does not need a write, unless an older commit is held.
            let as_before = WorkflowRecord {
                held: record.held.clone(),
                ..WorkflowRecord::clone(before)
            };
            let holds = |held: &HeldCommit| held.until.is_none();
            let changes = if record == as_before && !before.held.as_ref().is_some_and(holds) {
                Vec::new()
            } else {
                vec![Change::Workflow(Arc::new(record))]
            };
            return Ok(Decision::of(changes));
        }
        let object = self.is_object();
        let number = before.map_or(0, |before| before.revision.number) + 1;
        let reference = RevisionRef {
            id: RevisionId::derive(id, number),
            number,
            commit: self.commit,
        };
        let record = WorkflowRecord {
            id,
            project: ProjectId::of_source(&self.source),
            source: self.source,
            name: self.name,
            file: self.file.clone(),
            status: WorkflowStatus::Active,
            revision: reference.clone(),
            armed: arm(
                before.and_then(|before| before.active_triggers()),
                newest.map(|newest| &*newest.definition),
                &self.definition,
                moment.now,
                moment.order,
            ),
            held: Some(held),
        };
        let replaced = newest.map(|newest| &*newest.definition);
        let taken_over = take_over(world, id, replaced, &self.definition);
        let revision = Revision {
            record: RevisionRecord {
                workflow: record.reference(),
                reference,
                file: self.file,
                activated_at: moment.now,
                text: Text {
                    sha256: self.sha256,
                },
            },
            definition: self.definition,
            warnings: self.warnings,
        };
        let mut changes = vec![Change::Revision(
            Arc::new(revision),
            (!object).then_some(self.text),
        )];
        // The heads come first, because the workflow's triggers are indexed with them.
        changes.extend(taken_over);
        changes.push(Change::Workflow(Arc::new(record)));
        Ok(Decision::of(changes))
    }
}

/// Record the commit whose files a workflow's jobs get, because its file has become invalid at a tip, or is the active
/// revision again.
#[derive(Debug, Clone)]
pub struct HoldCommit {
    pub workflow: WorkflowId,
    pub held: HeldCommit,
}

impl Command for HoldCommit {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let Some(before) = world.workflow_record(self.workflow) else {
            return Err(Refusal::NoSuchWorkflow {
                workflow: self.workflow.to_string(),
            });
        };
        let record = WorkflowRecord {
            held: Some(self.held),
            ..WorkflowRecord::clone(before)
        };
        let changed = (record != **before).then(|| Change::Workflow(Arc::new(record)));
        Ok(Decision::of(changed))
    }
}

/// Retire a workflow whose file was removed.
#[derive(Debug, Clone)]
pub struct Retire {
    pub workflow: WorkflowId,
}

impl Command for Retire {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let Some(workflow) = world.workflow_record(self.workflow) else {
            return Err(Refusal::NoSuchWorkflow {
                workflow: self.workflow.to_string(),
            });
        };
        Ok(match workflow.status {
            WorkflowStatus::Retired { .. } => Decision::unchanged(()),
            WorkflowStatus::Active => {
                let status = WorkflowStatus::Retired { since: moment.now };
                let record = WorkflowRecord {
                    status,
                    ..WorkflowRecord::clone(workflow)
                };
                Decision::of([Change::Workflow(Arc::new(record))])
            }
        })
    }
}
