//! The sources.

use ui::{links, pages};
use warp::reply::Response;

use super::frame::{Frame, see_other};
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

/// Looks at the repository. The page shows when the look is over, so the form does not wait for it.
pub(super) async fn sync(frame: &Frame<'_>) -> Result<Response, Failure> {
    let name = frame.parameter(0);
    sources::sync(frame.me, &frame.request.asking(&[name], &[])).await?;
    Ok(see_other(&links::source(name)))
}
