//! Suspending and resuming from the pages of workflows and scans.

use ui::links;
use warp::reply::Response;
use wire::{Resume, Suspend, SuspensionStatus};

use super::frame::{Frame, see_other};
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::suspensions;

pub(super) async fn suspend(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let body = Suspend {
        reason: typed.text("reason").to_owned(),
    };
    let request = frame.request.telling(&path(frame), &body, typed.key())?;
    Ok(back(&suspensions::begin(frame.me, request).await?))
}

pub(super) async fn resume(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let body = Resume {
        reason: typed.get("reason").map(str::to_owned),
    };
    let request = frame.request.telling(&path(frame), &body, typed.key())?;
    Ok(back(&suspensions::end(frame.me, request).await?))
}

/// The workflow, and the scan if there is one.
fn path<'f>(frame: &'f Frame<'_>) -> Vec<&'f str> {
    let names = frame.request.parameters.iter();
    names.map(String::as_str).collect()
}

fn back(status: &SuspensionStatus) -> Response {
    let workflow = links::workflow_name(&status.workflow);
    see_other(&match &status.scan {
        None => links::workflow(&workflow),
        Some(scan) => links::scan(&workflow, scan),
    })
}
