//! The sources.

use ui::{links, pages};
use warp::reply::Response;

use super::frame::Frame;
use super::html::see_other;
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::sources;

pub(super) fn list(frame: &Frame<'_>) -> Result<Response, Failure> {
    let found = sources::list(frame.user, &frame.window()?);
    Ok(frame.page(pages::sources(&frame.visit, &found)))
}

pub(super) async fn show(frame: &Frame<'_>) -> Result<Response, Failure> {
    let source = sources::show(frame.user, frame.parameter(0)).await?;
    Ok(frame.page(pages::source(&frame.visit, &source)))
}

/// Approves a held tip. The form does not wait until the tip is applied; the page shows the progress.
pub(super) async fn approve(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let name = sources::name(frame.user, frame.parameter(0))?;
    let commit = typed.text("commit").to_owned();
    frame.user.approve_source(&name, commit, false).await?;
    Ok(see_other(&links::source(frame.parameter(0))))
}

/// Polls the repository. The form does not wait for the poll; the page shows the progress.
pub(super) async fn sync(frame: &Frame<'_>) -> Result<Response, Failure> {
    let name = sources::name(frame.user, frame.parameter(0))?;
    sources::sync(frame.user, &name, false).await?;
    Ok(see_other(&links::source(name.as_str())))
}
