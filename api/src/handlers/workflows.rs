//! `/v0/workflows`

use model::{ActiveWorkflow, Source, SourceName, WorkflowId, WorkflowStatus, World};
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
        let hint = match invalid_file(world, text) {
            Some(source) => {
                format!("its file is invalid: `everscan source show {source}` says what is wrong")
            }
            None => "`everscan workflow list` shows what there is".to_owned(),
        };
        Failure::not_found("workflow", text).hint(hint)
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

/// The source that has an invalid file of the workflow meant by an id, `source/name` or a name.
fn invalid_file<'a>(world: &'a World, text: &str) -> Option<&'a SourceName> {
    let id: Option<WorkflowId> = text.parse().ok();
    let is_meant = |source: &Source, stale: WorkflowId| {
        let named = |name: &str| stale == WorkflowId::derive(&source.name, name);
        let rest = text.strip_prefix(source.name.as_str());
        id == Some(stale)
            || named(text)
            || rest
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(named)
    };
    let found = world
        .sources()
        .filter(|source| source.configured)
        .find(|source| {
            let mut files = source.stale_files.iter();
            files.any(|stale| is_meant(source, stale.workflow))
        });
    found.map(|source| &source.name)
}

fn full_name(workflow: &ActiveWorkflow) -> String {
    format!("{}/{}", workflow.record.source, workflow.record.name)
}
