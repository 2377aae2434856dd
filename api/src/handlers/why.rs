//! `/v0/workflows/{workflow}/scans/{scan}/why`

use model::{ActiveWorkflow, ScanKey, Timestamp};
use reconciler::Handle;
use warp::reply::Response;

use super::workflows;
use crate::convert_why;
use crate::failure::Failure;
use crate::reply;
use crate::request::Request;

/// Why a scan ran or did not, now or up to a moment in the past.
pub(super) async fn why(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let (workflow, key) = scan(handle, request)?;
    let at: Option<Timestamp> = request
        .query
        .get("at")
        .map(|text| {
            text.parse()
                .map_err(|_| Failure::invalid("at", "must be a time such as 2026-11-21T10:00:00Z"))
        })
        .transpose()?;
    let why = handle.why(&key, at, request.query.limit()?).await?;
    let scan = workflow
        .scan(&key.scan)
        .ok_or_else(|| Failure::not_found("scan", key.scan.as_str()))?;
    Ok(reply::ok(&convert_why::why(&workflow, scan, why)))
}

fn scan(handle: &Handle, request: &Request) -> Result<(ActiveWorkflow, ScanKey), Failure> {
    let workflow = handle
        .state()
        .read(|world| workflows::find_readable(world, request.parameter(0)))?;
    let name = request.parameter(1);
    let Some(scan) = workflow.revision.definition.scan(name) else {
        let known: Vec<&str> = workflow
            .revision
            .definition
            .scans()
            .map(|scan| scan.name.as_str())
            .collect();
        return Err(Failure::not_found("scan", name)
            .hint(format!("the workflow has: {}", known.join(", "))));
    };
    let key = ScanKey {
        workflow: workflow.record.id,
        scan: scan.name.clone(),
    };
    Ok((workflow, key))
}
