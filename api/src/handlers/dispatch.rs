//! `/v0/workflows/{workflow}/scans/{scan}/dispatch`

use http::StatusCode;
use warp::reply::Response;
use wire::{DispatchRequest, DispatchResponse};

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

pub(crate) async fn start(me: &Visible, mut request: Request) -> Result<ShownJob, Failure> {
    let workflow = me.find(|seen| Ok(workflows::find(seen, request.parameter(0))?.id))?;
    let bytes = request.body.bytes().await?;
    let asked: DispatchRequest = if bytes.is_empty() {
        DispatchRequest::default()
    } else {
        body::is_json(&request.headers)?;
        body::parse(&bytes)?
    };
    let scan = request.parameter(1);
    let route = format!("dispatch\0{}\0{scan}", *workflow);
    let key = idempotency::key(me, &request, &route, &bytes)?;
    me.dispatch(&workflow, scan, &asked.inputs, key).await
}
