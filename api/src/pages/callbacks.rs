//! What a callback server hears.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ui::pages;
use ui::pages::Heard;
use warp::reply::Response;

use super::frame::Frame;
use crate::failure::Failure;
use crate::handlers::callbacks::{self, InteractionsQuery};

pub(super) async fn show(frame: &Frame<'_>) -> Result<Response, Failure> {
    let named = frame.parameter(0);
    let found = callbacks::find(frame.user, named)?;
    let wanted = InteractionsQuery::of(&frame.request.query)?;
    let filter = Heard {
        tag: frame.query("tag").to_owned(),
        kind: frame.query("type").to_owned(),
        address: frame.query("address").to_owned(),
        text: frame.query("text").to_owned(),
    };
    let page = pages::CallbackPage {
        callback: &callbacks::show(frame.user, named)?,
        filter: &filter,
        interactions: &callbacks::interactions(frame.user, &found, &wanted).await?,
        is_later: !frame.query("cursor").is_empty(),
    };
    Ok(frame.page(pages::callback(&frame.visit, &page)))
}

pub(super) async fn interaction(frame: &Frame<'_>) -> Result<Response, Failure> {
    let (named, number) = (frame.parameter(0), frame.parameter(1));
    let callback = callbacks::show(frame.user, named)?;
    let shown = callbacks::interaction(frame.user, named, number).await?;
    let raw = STANDARD.decode(shown.raw.as_deref().unwrap_or_default());
    let page = pages::interaction(&frame.visit, &callback, &shown, &raw.unwrap_or_default());
    Ok(frame.page(page))
}
