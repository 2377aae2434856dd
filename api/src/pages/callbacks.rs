//! What a callback server hears.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::Markup;
use model::Scope;
use ui::form::Refused;
use ui::pages::Heard;
use ui::{links, pages};
use warp::reply::Response;

use super::frame::Frame;
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::callbacks::{self, InteractionsQuery};
use crate::page::Window;

/// Names that a page lists.
const NAMES: usize = 100;

pub(super) async fn show(frame: &Frame<'_>) -> Result<Response, Failure> {
    let wanted = InteractionsQuery::of(&frame.request.query)?;
    Ok(frame.page(page(frame, &wanted, &Refused::default()).await?))
}

async fn page(
    frame: &Frame<'_>,
    wanted: &InteractionsQuery,
    refused: &Refused,
) -> Result<Markup, Failure> {
    let named = frame.parameter(0);
    let found = callbacks::find(frame.user, named)?;
    let filter = Heard {
        tag: frame.query("tag").to_owned(),
        job: frame.query("job").to_owned(),
        kind: frame.query("type").to_owned(),
        address: frame.query("address").to_owned(),
        payload: frame.query("payload").to_owned(),
        text: frame.query("text").to_owned(),
    };
    let rules = serde_json::to_string_pretty(&callbacks::rules(frame.user, named)?);
    let page = pages::CallbackPage {
        callback: &callbacks::show(frame.user, named)?,
        filter: &filter,
        interactions: &callbacks::interactions(frame.user, &found, wanted).await?,
        is_later: !frame.query("cursor").is_empty(),
        tokens: &callbacks::tokens(frame.user, named, &Window::first(NAMES))?.items,
        rules: &rules.map_err(|_| Failure::defect())?,
        refused,
    };
    Ok(pages::callback(&frame.visit, &page))
}

/// The page again with what was refused.
async fn again(
    frame: &Frame<'_>,
    failure: Failure,
    typed: &Typed,
    field: &'static str,
) -> Result<Response, Failure> {
    if !frame.may(Scope::CallbackRead) {
        return Err(failure);
    }
    let (status, refused) = frame.refused(failure, typed, &[field])?;
    let wanted = InteractionsQuery::newest();
    Ok(frame.html(status, page(frame, &wanted, &refused).await?))
}

fn back(frame: &Frame<'_>) -> Response {
    frame.done(Scope::CallbackRead, &links::callback(frame.parameter(0)))
}

pub(super) async fn create_token(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let callback = callbacks::find(frame.user, frame.parameter(0))?;
    let asked = wire::CreateCallbackToken {
        note: typed.text("note").trim().to_owned(),
        ..wire::CreateCallbackToken::default()
    };
    match callbacks::make_token(frame.user, &callback, asked).await {
        Ok(_) => Ok(back(frame)),
        Err(failure) => again(frame, failure, typed, "note").await,
    }
}

pub(super) async fn end_token(frame: &Frame<'_>) -> Result<Response, Failure> {
    callbacks::end_token(frame.user, frame.parameter(0), frame.parameter(1)).await?;
    Ok(back(frame))
}

pub(super) async fn set_rules(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let callback = callbacks::find(frame.user, frame.parameter(0))?;
    let rules = serde_json::from_str(typed.text("rules"));
    let rules = rules.map_err(|error| Failure::invalid("rules", error.to_string()));
    let set = match rules {
        Ok(rules) => callbacks::set_rules_to(frame.user, &callback, rules).await,
        Err(failure) => Err(failure),
    };
    match set {
        Ok(()) => Ok(back(frame)),
        Err(failure) => again(frame, failure, typed, "rules").await,
    }
}

pub(super) async fn delete(frame: &Frame<'_>) -> Result<Response, Failure> {
    let project = callbacks::show(frame.user, frame.parameter(0))?.project;
    callbacks::delete(frame.user, frame.parameter(0)).await?;
    Ok(frame.done(Scope::ProjectRead, &links::project(&project)))
}

pub(super) async fn interaction(frame: &Frame<'_>) -> Result<Response, Failure> {
    let (named, number) = (frame.parameter(0), frame.parameter(1));
    let callback = callbacks::show(frame.user, named)?;
    let shown = callbacks::interaction(frame.user, named, number).await?;
    let raw = STANDARD.decode(shown.raw.as_deref().unwrap_or_default());
    let page = pages::interaction(&frame.visit, &callback, &shown, &raw.unwrap_or_default());
    Ok(frame.page(page))
}
