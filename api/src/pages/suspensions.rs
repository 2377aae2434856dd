//! Suspending and resuming from the pages of workflows and scans.

use ui::links;
use warp::reply::Response;
use wire::{Resume, Suspend, SuspensionStatus};

use super::frame::Frame;
use super::html::see_other;
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::suspensions::{self, Subject};

pub(super) async fn suspend(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let reason = typed.text("reason").to_owned();
    let subject = Subject::of(frame.request);
    let begun = suspensions::begin(frame.user, &subject, Suspend { reason });
    Ok(back(&begun.await?))
}

pub(super) async fn resume(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let reason = typed.get("reason").map(str::to_owned);
    let subject = Subject::of(frame.request);
    let ended = suspensions::end(frame.user, &subject, Resume { reason });
    Ok(back(&ended.await?))
}

fn back(status: &SuspensionStatus) -> Response {
    let workflow = links::workflow_name(&status.workflow);
    see_other(&match &status.scan {
        None => links::workflow(&workflow),
        Some(scan) => links::scan(&workflow, scan),
    })
}
