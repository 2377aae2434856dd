//! The vars and secrets of projects.

use http::StatusCode;
use maud::Markup;
use model::SecretValue;
use model::decide::Precondition;
use model::limits::{CALLBACKS, PAYLOAD_GROUPS};
use ui::form::Refused;
use ui::{links, pages};
use warp::reply::Response;

use super::frame::Frame;
use super::html::see_other;
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::{callbacks, payloads, projects};
use crate::page::Window;

/// Forms have no condition on the version of the value.
const ANYTHING: Precondition = Precondition::Anything;

pub(super) fn list(frame: &Frame<'_>) -> Result<Response, Failure> {
    let found = projects::list(frame.user, &frame.window()?);
    Ok(frame.page(pages::projects(&frame.visit, &found)))
}

pub(super) fn show(frame: &Frame<'_>) -> Result<Response, Failure> {
    let page = page(frame, Forms::default())?;
    Ok(frame.page(page))
}

/// What was refused of each form.
#[derive(Default)]
struct Forms {
    var: Refused,
    secret: Refused,
    callback: Refused,
}

fn page(frame: &Frame<'_>, refused: Forms) -> Result<Markup, Failure> {
    let project = frame.parameter(0);
    let page = pages::Variables {
        project: &projects::show(frame.user, project)?,
        vars: &projects::all_vars(frame.user, project)?,
        secrets: &projects::all_secrets(frame.user, project)?,
        callbacks: &callbacks::list(frame.user, Some(project), &Window::first(CALLBACKS))?.items,
        has_callbacks: frame.user.callback_zones().is_some(),
        refused_var: &refused.var,
        refused_secret: &refused.secret,
        refused_callback: &refused.callback,
        payload_groups: &payload_groups(frame, project)?,
    };
    Ok(pages::variables(&frame.visit, &page))
}

/// None for a reader who may not see payloads: the rights of a page are those of its own scope.
fn payload_groups(frame: &Frame<'_>, project: &str) -> Result<Vec<wire::PayloadGroup>, Failure> {
    let may = frame.visit.may_in(project, wire::Scope::PayloadRead);
    match may {
        true => {
            Ok(payloads::list(frame.user, Some(project), &Window::first(PAYLOAD_GROUPS))?.items)
        }
        false => Ok(Vec::new()),
    }
}

/// Sends the reader to the page after a change, or to the overview without its scope.
fn back(frame: &Frame<'_>) -> Response {
    match frame.may(model::Scope::ProjectRead) {
        true => see_other(&links::project(frame.parameter(0))),
        false => see_other(links::OVERVIEW),
    }
}

fn again(frame: &Frame<'_>, status: StatusCode, refused: Forms) -> Result<Response, Failure> {
    Ok(frame.html(status, page(frame, refused)?))
}

pub(super) async fn create_callback(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let asked = wire::CreateCallback {
        project: frame.parameter(0).to_owned(),
        name: typed.text("name").trim().to_owned(),
        keep_days: None,
        keep_forever: false,
    };
    match callbacks::make(frame.user, asked).await {
        Ok(made) => Ok(frame.done(model::Scope::CallbackRead, &links::callback(&made.id))),
        Err(failure) if !frame.may(model::Scope::ProjectRead) => Err(failure),
        Err(failure) => {
            let (status, callback) = frame.refused(failure, typed, &["name"])?;
            let refused = Forms {
                callback,
                ..Forms::default()
            };
            again(frame, status, refused)
        }
    }
}

pub(super) async fn set_var(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let (name, value) = (typed.text("name").trim(), typed.text("value").to_owned());
    let project = projects::project(frame.user, frame.parameter(0))?;
    match projects::set_var_to(frame.user, &project, name, value, ANYTHING).await {
        Ok(_) => Ok(back(frame)),
        Err(failure) if !frame.may(model::Scope::ProjectRead) => Err(failure),
        Err(failure) => {
            let (status, var) = frame.refused(failure, typed, &["name", "value"])?;
            let refused = Forms {
                var,
                ..Forms::default()
            };
            again(frame, status, refused)
        }
    }
}

pub(super) async fn set_secret(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let value = SecretValue::new(typed.text("value").to_owned());
    let project = projects::project(frame.user, frame.parameter(0))?;
    let name = typed.text("name").trim();
    match frame.user.set_secret(&project, name, value, ANYTHING).await {
        Ok(_) => Ok(back(frame)),
        Err(failure) if !frame.may(model::Scope::ProjectRead) => Err(failure),
        Err(failure) => {
            let (status, secret) = frame.refused(failure, typed, &["name"])?;
            let refused = Forms {
                secret,
                ..Forms::default()
            };
            again(frame, status, refused)
        }
    }
}

pub(super) async fn delete_var(frame: &Frame<'_>) -> Result<Response, Failure> {
    let project = projects::project(frame.user, frame.parameter(0))?;
    let name = frame.parameter(1);
    projects::remove_var(frame.user, &project, name, ANYTHING).await?;
    Ok(back(frame))
}

pub(super) async fn delete_secret(frame: &Frame<'_>) -> Result<Response, Failure> {
    let project = projects::project(frame.user, frame.parameter(0))?;
    let name = frame.parameter(1);
    projects::remove_secret(frame.user, &project, name, ANYTHING).await?;
    Ok(back(frame))
}
