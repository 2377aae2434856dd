//! `/v0/workflows/{workflow}/scans/{scan}/dispatch` and `/v0/jobs/{job}/rerun`

use http::StatusCode;
use reconciler::RerunOf;
use serde::de::DeserializeOwned;
use warp::reply::Response;
use wire::{DispatchRequest, DispatchResponse, RerunJob};

use super::{jobs, workflows};
use crate::body;
use crate::failure::Failure;
use crate::idempotency;
use crate::reply;
use crate::request::Request;
use crate::visible::{ShownJob, Visible};

/// Starts a job. The answer means that the job is durable. A repeat with the same `Idempotency-Key` returns the same
/// job.
pub(super) async fn dispatch(me: &Visible, request: Request) -> Result<Response, Failure> {
    let job = start(me, request).await?;
    let job = jobs::wire_job(me, &job).await?;
    Ok(reply::json(StatusCode::ACCEPTED, &DispatchResponse { job }))
}

/// Runs a finished job again, as a new job. A repeat with the same `Idempotency-Key` returns the same new job.
pub(super) async fn rerun(me: &Visible, request: Request) -> Result<Response, Failure> {
    let job = start_again(me, request).await?;
    let job = jobs::wire_job(me, &job).await?;
    Ok(reply::json(StatusCode::ACCEPTED, &DispatchResponse { job }))
}

pub(crate) async fn start_again(me: &Visible, mut request: Request) -> Result<ShownJob, Failure> {
    let job = me.job_named(request.parameter(0)).await?;
    let bytes = request.body.bytes().await?;
    let RerunJob { current } = parsed(&request, &bytes)?;
    let which = match current {
        true => RerunOf::ActiveRevision,
        false => RerunOf::SameRevision,
    };
    let key = idempotency::key(me, &request, &format!("rerun\0{}", job.id), &bytes)?;
    me.rerun(&job, which, key).await
}

/// The body of a request, which may be left out.
fn parsed<T: DeserializeOwned + Default>(request: &Request, bytes: &[u8]) -> Result<T, Failure> {
    if bytes.is_empty() {
        return Ok(T::default());
    }
    body::is_json(&request.headers)?;
    body::parse(bytes)
}

pub(crate) async fn start(me: &Visible, mut request: Request) -> Result<ShownJob, Failure> {
    let workflow = me.find(|seen| Ok(workflows::find(seen, request.parameter(0))?.id))?;
    let bytes = request.body.bytes().await?;
    let asked: DispatchRequest = parsed(&request, &bytes)?;
    let scan = request.parameter(1);
    let route = format!("dispatch\0{}\0{scan}", *workflow);
    let key = idempotency::key(me, &request, &route, &bytes)?;
    me.dispatch(&workflow, scan, &asked.inputs, key).await
}
