//! `/v0/workflows`

use model::{ActiveWorkflow, WorkflowId, WorkflowStatus, World};
use reconciler::Handle;
use warp::reply::Response;
use wire::ErrorCode;

use crate::convert;
use crate::failure::Failure;
use crate::page::Window;
use crate::reply;
use crate::request::Request;

/// The active workflows by source and name; with `state=all` the retired ones too.
pub(super) fn list(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let all = match request.query.get("state") {
        None | Some("active") => false,
        Some("all") => true,
        Some(_) => return Err(Failure::invalid("state", "must be `active` or `all`")),
    };
    let window = Window::of(&request.query)?;
    Ok(reply::ok(&handle.state().read(|world| {
        window.cut(
            world
                .workflows()
                .filter(|workflow| all || workflow.record.status == WorkflowStatus::Active),
            full_name,
            |workflow| convert::workflow(world, workflow),
        )
    })))
}

/// One workflow, by id or name.
pub(super) fn show(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let shown = handle.state().read(|world| {
        find(world, request.parameter(0)).map(|workflow| convert::workflow(world, &workflow))
    })?;
    Ok(reply::ok(&shown))
}

/// The workflow meant by an id, by `source/name`, or by a name that only one source has.
pub(super) fn find(world: &World, text: &str) -> Result<ActiveWorkflow, Failure> {
    let not_found = || {
        Failure::not_found("workflow", text).hint("`everscan workflow list` shows what there is")
    };
    if let Ok(id) = text.parse::<WorkflowId>() {
        return world.workflow(id).ok_or_else(not_found);
    }
    let named: Vec<ActiveWorkflow> = world
        .workflows()
        .filter(|workflow| {
            let record = &workflow.record;
            let full = text
                .strip_prefix(record.source.as_str())
                .and_then(|rest| rest.strip_prefix('/'));
            record.name == text || full == Some(record.name.as_str())
        })
        .collect();
    let mut active = named
        .iter()
        .filter(|workflow| workflow.record.status == WorkflowStatus::Active);
    match (active.next(), active.next(), named.as_slice()) {
        (Some(only), None, _) => Ok(only.clone()),
        (None, None, [only]) => Ok(only.clone()),
        (None, None, []) => Err(not_found()),
        (Some(_), Some(_), _) | (None, _, _) => {
            let full: Vec<String> = named.iter().map(full_name).collect();
            Err(Failure::new(
                ErrorCode::AmbiguousName,
                format!("several workflows are named `{text}`"),
            )
            .hint(format!("say which: {}", full.join(", "))))
        }
    }
}

fn full_name(workflow: &ActiveWorkflow) -> String {
    format!("{}/{}", workflow.record.source, workflow.record.name)
}
