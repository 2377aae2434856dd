//! Finds a workflow with its newest revision, or the reason why the revision cannot be read.

use super::{Refusal, Remedy};
use crate::{ActiveWorkflow, Reason, WorkflowId, WorkflowRecord, World};

pub fn readable_workflow(world: &World, id: WorkflowId) -> Result<ActiveWorkflow, Refusal> {
    let Some(record) = world.workflow_record(id) else {
        return Err(Refusal::NoSuchWorkflow {
            workflow: id.to_string(),
        });
    };
    world
        .workflow(id)
        .ok_or_else(|| Refusal::WorkflowUnreadable {
            workflow: format!("{}/{}", record.source, record.name),
            revision: record.revision.number,
            remedy: remedy(world, record),
        })
}

fn remedy(world: &World, record: &WorkflowRecord) -> Remedy {
    match (world.retirement(record), world.stale_file(record)) {
        (Some(Reason::SourceDropped), _) => Remedy::Source,
        (None | Some(_), Some(_)) => Remedy::ValidFile {
            source_name: record.source.to_string(),
        },
        (Some(_), None) => Remedy::File,
        (None, None) => Remedy::Backup,
    }
}
