//! `/v0/workflows/{workflow}/scans/{scan}/why`

use model::{ActiveWorkflow, ScanKey, Timestamp};
use reconciler::Handle;
use warp::reply::Response;

use super::workflows;
use crate::convert_why;
use crate::failure::Failure;
use crate::reply;
use crate::request::Request;

/// Why a scan ran or did not, now or at a moment in the past.
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
    let answer = match workflow.scan(&key.scan) {
        Some(scan) => convert_why::why(&workflow, scan, why),
        None => {
            let removed_by = handle.state().removed_by(&key).await?;
            convert_why::of_removed(&workflow, &key.scan, removed_by.as_ref(), why)
        }
    };
    Ok(reply::ok(&answer))
}

/// Finds the scan: one that the workflow has, or had while there was a job of it.
fn scan(handle: &Handle, request: &Request) -> Result<(ActiveWorkflow, ScanKey), Failure> {
    handle.state().read(|world| {
        let workflow = workflows::find_readable(world, request.parameter(0))?;
        let name = request.parameter(1);
        let key = name.parse().ok().map(|scan| ScanKey {
            workflow: workflow.record.id,
            scan,
        });
        let is_known = |key: &ScanKey| {
            workflow.scan(&key.scan).is_some()
                || world.head(key).is_some()
                || world.jobs_of(key).next().is_some()
        };
        match key.filter(is_known) {
            Some(key) => Ok((workflow, key)),
            None => Err(Failure::not_found("scan", name).hint(workflows::scans_of(&workflow))),
        }
    })
}
