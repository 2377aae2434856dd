//! `/v0/jobs`

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Job, JobId, JobState, Reason, StateKind, WorkflowId, World, waiting};
use reconciler::Handle;
use state::{JobFilter, SubmitError};
use tokio::time::Instant;
use warp::reply::Response;
use wire::Page;
use workflow::ScanName;

use super::workflows;
use crate::access::actor;
use crate::convert;
use crate::failure::Failure;
use crate::limits::WAIT;
use crate::reply;
use crate::request::Request;

/// Jobs, newest first.
pub(super) async fn list(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let query = &request.query;
    let workflow = match query.get("workflow") {
        None => None,
        Some(text) => Some(
            handle
                .state()
                .read(|world| workflows::find(world, text).map(|found| found.id))?,
        ),
    };
    let scan = match query.get("scan") {
        None => None,
        Some(name) => Some(
            name.parse()
                .map_err(|_| Failure::invalid("scan", "is not a scan's name"))?,
        ),
    };
    let state = match query.get("state") {
        None => None,
        Some(name) => Some(
            StateKind::named(name)
                .ok_or_else(|| Failure::invalid("state", "is not a state of a job"))?,
        ),
    };
    let before: Option<JobId> = match query.get("cursor") {
        None => None,
        Some(cursor) => Some(
            cursor
                .parse()
                .map_err(|_| Failure::invalid("cursor", "is not from this list"))?,
        ),
    };
    let filter = JobFilter {
        workflow,
        scan,
        state,
    };
    if let Some(scan) = &filter.scan {
        let workflow = filter.workflow;
        handle.state().read(|world| known(world, workflow, scan))?;
    }
    let page = handle.state().jobs(&filter, before, query.limit()?).await?;
    let next_cursor = page.next.map(|next| next.to_string());
    let mut items = Vec::with_capacity(page.jobs.len());
    for job in &page.jobs {
        match wire_job(handle, job).await {
            Ok(job) => items.push(job),
            // The job was removed while the page was read.
            Err(failure) if failure.code == wire::ErrorCode::NotFound => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(reply::ok(&Page {
        items,
        next_cursor,
        damaged: convert::damaged(page.damaged),
    }))
}

/// Fails unless the workflow has a scan of that name, or had one that left jobs.
fn known(world: &World, workflow: Option<WorkflowId>, name: &ScanName) -> Result<(), Failure> {
    let is_it = |id| workflow.is_none_or(|workflow| workflow == id);
    let mut defined = world
        .workflows()
        .filter(|workflow| is_it(workflow.record.id));
    let mut heads = world.heads().filter(|head| is_it(head.workflow));
    let mut jobs = world.jobs().filter(|job| is_it(job.workflow.id));
    if defined.any(|workflow| workflow.scan(name).is_some())
        || heads.any(|head| head.scan == *name)
        || jobs.any(|job| job.scan == *name)
    {
        return Ok(());
    }
    let failure = Failure::not_found("scan", name.as_str());
    Err(match workflow.and_then(|id| world.workflow(id)) {
        Some(workflow) => failure.hint(workflows::scans_of(&workflow)),
        None => failure.hint("`everscan workflow show WORKFLOW` lists the scans of a workflow"),
    })
}

/// One job. With `wait=true` the answer is held until the job is over, up to 50 s.
pub(super) async fn show(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let id = request.job()?;
    let held_until = Instant::now()
        + if request.query.flag("wait")? {
            WAIT
        } else {
            std::time::Duration::ZERO
        };
    let mut changes = handle.state().job_changed(id);
    loop {
        changes.mark_unchanged();
        let job = find(handle, id).await?;
        if job.state.is_terminal() || Instant::now() >= held_until {
            return Ok(reply::ok(&wire_job(handle, &job).await?));
        }
        tokio::select! {
            _ = changes.changed() => {}
            () = tokio::time::sleep_until(held_until) => {}
            () = handle.stopping() => return Ok(reply::ok(&wire_job(handle, &job).await?)),
        }
    }
}

/// Cancels a job. A job that is already over is returned as it is, so a repeat is harmless.
pub(super) async fn cancel(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let id = request.job()?;
    let before = find(handle, id).await?;
    let job = if before.state.is_terminal() {
        before
    } else {
        match handle.cancel(id, actor(request.caller.user()?)).await {
            Ok(job) => job,
            Err(SubmitError::Refused(_)) => find(handle, id).await?,
            Err(error) => return Err(error.into()),
        }
    };
    match &job.state {
        JobState::Cancelled { .. } => Ok(reply::ok(&wire_job(handle, &job).await?)),
        state @ (JobState::Scheduled
        | JobState::Running { .. }
        | JobState::Succeeded { .. }
        | JobState::Failed { .. }
        | JobState::Skipped { .. }) => Err(Failure::new(
            wire::ErrorCode::IllegalTransition,
            format!("job {id} is {} and cannot be cancelled", state.name()),
        )),
    }
}

/// Removes a job that is over, with its log and artifacts. A repeat answers that there is no such job.
pub(super) async fn delete(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let actor = actor(request.caller.user()?);
    handle.delete_job(request.job()?, actor).await?;
    Ok(reply::empty())
}

/// Finds a job by id, unfinished or finished.
pub(super) async fn find(handle: &Handle, id: JobId) -> Result<Arc<Job>, Failure> {
    handle
        .state()
        .job(id)
        .await?
        .ok_or_else(|| Failure::not_found("job", &id.to_string()))
}

/// Converts a job, with what is not in its record.
pub(super) async fn wire_job(handle: &Handle, job: &Job) -> Result<wire::Job, Failure> {
    let stored: BTreeMap<_, _>;
    let inputs = match convert::inline_inputs(job) {
        Some(inputs) => inputs,
        None => {
            stored = handle.state().inputs(job).await?;
            &stored
        }
    };
    // The record of a completed job holds the count. After any other end, the runner may have added lines.
    let records = match &job.state {
        JobState::Scheduled | JobState::Skipped { .. } => 0,
        JobState::Succeeded { run, .. } => run.log_records,
        JobState::Running { .. } | JobState::Failed { .. } | JobState::Cancelled { .. } => {
            handle.state().logs().records(job.id).await?
        }
    };
    let waiting = why_waiting(handle, job);
    Ok(convert::job(job, inputs, records, waiting.as_ref()))
}

/// Why a scheduled job has not begun.
fn why_waiting(handle: &Handle, job: &Job) -> Option<Reason> {
    match &job.state {
        JobState::Scheduled => {}
        JobState::Running { .. }
        | JobState::Succeeded { .. }
        | JobState::Failed { .. }
        | JobState::Cancelled { .. }
        | JobState::Skipped { .. } => return None,
    }
    // Read before the world: the code that hands out jobs reads both in the other order.
    let in_hand = handle.jobs_in_hand();
    let holding = |runner| in_hand.get(&runner);
    handle
        .state()
        .read(|world| waiting(world, job, |runner| handle.is_connected(runner), holding))
}
