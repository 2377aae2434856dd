//! `/v0/workflows/{workflow}/scans/{scan}/dispatch` and `/v0/jobs/{job}/rerun`

use http::StatusCode;
use model::WorkflowId;
use reconciler::RerunOf;
use serde::de::DeserializeOwned;
use warp::reply::Response;
use wire::{DispatchRequest, DispatchResponse, RerunJob};

use super::{jobs, workflows};
use crate::body;
use crate::failure::Failure;
use crate::idempotency::Attempt;
use crate::reply;
use crate::request::Request;
use crate::visible::{Shown, ShownJob, Visible};

/// Starts a job. When it answers, the job is durable. A repeat with the same `Idempotency-Key` returns the same job.
pub(super) async fn dispatch(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let workflow = user.find(|seen| Ok(workflows::find(seen, request.parameter(0))?.id))?;
    let attempt = Attempt::of(&mut request).await?;
    let asked = parsed(&request, &attempt)?;
    accepted(
        user,
        &start(user, &workflow, request.parameter(1), &asked, &attempt).await?,
    )
    .await
}

/// Runs a finished job again, as a new job. A repeat with the same `Idempotency-Key` returns the same new job.
pub(super) async fn rerun(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let job = user.job_named(request.parameter(0)).await?;
    let attempt = Attempt::of(&mut request).await?;
    let asked = parsed(&request, &attempt)?;
    accepted(user, &start_again(user, &job, asked, &attempt).await?).await
}

async fn accepted(user: &Visible, job: &ShownJob) -> Result<Response, Failure> {
    let job = jobs::changed(user, job).await?;
    Ok(reply::json(StatusCode::ACCEPTED, &DispatchResponse { job }))
}

fn parsed<T: DeserializeOwned + Default>(
    request: &Request,
    attempt: &Attempt,
) -> Result<T, Failure> {
    if attempt.body.is_empty() {
        return Ok(T::default());
    }
    body::is_json(&request.headers)?;
    body::parse(&attempt.body)
}

pub(crate) async fn start(
    user: &Visible,
    workflow: &Shown<WorkflowId>,
    scan: &str,
    asked: &DispatchRequest,
    attempt: &Attempt,
) -> Result<ShownJob, Failure> {
    let key = attempt.key(user, &format!("dispatch\0{}\0{scan}", **workflow))?;
    user.dispatch(workflow, scan, &asked.inputs, key).await
}

pub(crate) async fn start_again(
    user: &Visible,
    job: &ShownJob,
    RerunJob { current }: RerunJob,
    attempt: &Attempt,
) -> Result<ShownJob, Failure> {
    let which = match current {
        true => RerunOf::ActiveRevision,
        false => RerunOf::SameRevision,
    };
    let key = attempt.key(user, &format!("rerun\0{}", job.id))?;
    let again = user.rerun(job, which, key).await;
    // The errors quote the job's inputs, which only readers of jobs may see.
    again.map_err(|failure| match user.reads_jobs() {
        true => failure,
        false => failure.without_errors(),
    })
}
