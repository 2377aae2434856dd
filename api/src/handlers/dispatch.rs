//! `/v0/workflows/{workflow}/scans/{scan}/dispatch`

use http::StatusCode;
use model::IdempotencyKey;
use reconciler::Handle;
use warp::reply::Response;
use wire::{DispatchRequest, DispatchResponse};

use super::{jobs, workflows};
use crate::access::actor;
use crate::body;
use crate::failure::Failure;
use crate::limits::IDEMPOTENCY_KEY_BYTES;
use crate::reply;
use crate::request::Request;

/// Starts a job. The answer means that the job is durable. A repeat with the same `Idempotency-Key` returns the same
/// job.
pub(super) async fn dispatch(handle: &Handle, mut request: Request) -> Result<Response, Failure> {
    let workflow = handle
        .state()
        .read(|world| workflows::find(world, request.parameter(0)).map(|found| found.id))?;
    let bytes = request.body.bytes().await?;
    let asked: DispatchRequest = if bytes.is_empty() {
        DispatchRequest::default()
    } else {
        body::is_json(&request.headers)?;
        body::parse(&bytes)?
    };
    let token = request.caller.user()?;
    let route = format!("dispatch\0{workflow}\0{}", request.parameter(1));
    let key =
        idempotency_key(&request)?.map(|key| IdempotencyKey::new(token.id, &route, key, &bytes));
    let job = handle
        .dispatch(
            workflow,
            request.parameter(1),
            &asked.inputs,
            actor(token),
            key,
        )
        .await?;
    let job = jobs::wire_job(handle, &job).await?;
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
