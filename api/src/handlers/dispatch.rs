//! `/v0/workflows/{workflow}/scans/{scan}/dispatch`

use http::StatusCode;
use model::IdempotencyKey;
use warp::reply::Response;
use wire::{DispatchRequest, DispatchResponse};

use super::{jobs, workflows};
use crate::body;
use crate::failure::Failure;
use crate::limits::IDEMPOTENCY_KEY_BYTES;
use crate::reply;
use crate::request::Request;
use crate::visible::Visible;

/// Starts a job. The answer means that the job is durable. A repeat with the same `Idempotency-Key` returns the same
/// job.
pub(super) async fn dispatch(me: &Visible, mut request: Request) -> Result<Response, Failure> {
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
    let key = idempotency_key(&request)?
        .map(|key| IdempotencyKey::new(me.token().id, &route, key, &bytes));
    let job = me.dispatch(&workflow, scan, &asked.inputs, key).await?;
    let job = jobs::wire_job(me, &job).await?;
    Ok(reply::json(StatusCode::ACCEPTED, &DispatchResponse { job }))
}

fn idempotency_key(request: &Request) -> Result<Option<&str>, Failure> {
    let Some(value) = request.headers.get("idempotency-key") else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(key) if !key.is_empty() && key.len() <= IDEMPOTENCY_KEY_BYTES => Ok(Some(key)),
        Ok(_) | Err(_) => Err(Failure::invalid(
            "Idempotency-Key",
            format!("must be 1 to {IDEMPOTENCY_KEY_BYTES} printable characters"),
        )),
    }
}
