//! The sources.

use ui::{links, pages};
use warp::reply::Response;
use wire::ApproveSource;

use super::frame::{Frame, see_other};
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::sources;

pub(super) fn list(frame: &Frame<'_>) -> Result<Response, Failure> {
    let query = [("cursor", frame.query("cursor"))];
    let found = sources::load_list(frame.me, &frame.request.asking(&[], &query))?;
    Ok(frame.page(pages::sources(&frame.visit, &found)))
}

pub(super) async fn show(frame: &Frame<'_>) -> Result<Response, Failure> {
    let source = sources::load_show(frame.me, frame.request).await?;
    Ok(frame.page(pages::source(&frame.visit, &source)))
}

/// Lets a held tip be applied. The page shows when the look that applies it is over.
pub(super) async fn approve(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let name = frame.parameter(0);
    let body = ApproveSource {
        commit: typed.text("commit").to_owned(),
    };
    let request = frame.request.telling(&[name], &body, None)?;
    sources::approve(frame.me, request).await?;
    Ok(see_other(&links::source(name)))
}

/// Looks at the repository. The page shows when the look is over, so the form does not wait for it.
pub(super) async fn sync(frame: &Frame<'_>) -> Result<Response, Failure> {
    let name = frame.parameter(0);
    sources::sync(frame.me, &frame.request.asking(&[name], &[])).await?;
    Ok(see_other(&links::source(name)))
}
