//! The vars and secrets of projects.

use http::StatusCode;
use maud::Markup;
use ui::form::Refused;
use ui::{links, pages};
use warp::reply::Response;
use wire::SetValue;

use super::frame::{Frame, html, see_other};
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::projects;

pub(super) fn list(frame: &Frame<'_>) -> Result<Response, Failure> {
    let query = [("cursor", frame.query("cursor"))];
    let found = projects::load_list(frame.me, &frame.request.asking(&[], &query))?;
    Ok(frame.page(pages::projects(&frame.visit, &found)))
}

pub(super) fn show(frame: &Frame<'_>) -> Result<Response, Failure> {
    let page = page(frame, &Refused::default(), &Refused::default())?;
    Ok(frame.page(page))
}

fn page(
    frame: &Frame<'_>,
    refused_var: &Refused,
    refused_secret: &Refused,
) -> Result<Markup, Failure> {
    let request = frame.request.asking(&[frame.parameter(0)], &[]);
    let page = pages::Variables {
        project: &projects::load_show(frame.me, &request)?,
        vars: &projects::load_vars(frame.me, &request)?,
        secrets: &projects::load_secrets(frame.me, &request)?,
        refused_var,
        refused_secret,
    };
    Ok(pages::variables(&frame.visit, &page))
}

/// The page after a change. A reader who may not see it is sent to one that all may see.
fn back(frame: &Frame<'_>) -> Response {
    match frame.may(model::Scope::ProjectRead) {
        true => see_other(&links::project(frame.parameter(0))),
        false => see_other(links::OVERVIEW),
    }
}

/// The page with a form that was refused, for those who may see the page.
fn again(
    frame: &Frame<'_>,
    status: StatusCode,
    var: &Refused,
    secret: &Refused,
) -> Result<Response, Failure> {
    Ok(html(status, page(frame, var, secret)?.into_string()))
}

pub(super) async fn set_var(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let value = SetValue {
        value: typed.text("value").to_owned(),
    };
    let path = [frame.parameter(0), typed.text("name").trim()];
    let request = frame.request.telling(&path, &value, None)?;
    match projects::set_var(frame.me, request).await {
        Ok(_) => Ok(back(frame)),
        Err(failure) if !frame.may(model::Scope::ProjectRead) => Err(failure),
        Err(failure) => {
            let (status, refused) = frame.refused(failure, typed, &["name", "value"])?;
            again(frame, status, &refused, &Refused::default())
        }
    }
}

pub(super) async fn set_secret(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let value = SetValue {
        value: typed.text("value").to_owned(),
    };
    let path = [frame.parameter(0), typed.text("name").trim()];
    let request = frame.request.telling(&path, &value, None)?;
    match projects::set_secret(frame.me, request).await {
        Ok(_) => Ok(back(frame)),
        Err(failure) if !frame.may(model::Scope::ProjectRead) => Err(failure),
        Err(failure) => {
            let (status, refused) = frame.refused(failure, typed, &["name"])?;
            again(frame, status, &Refused::default(), &refused)
        }
    }
}

pub(super) async fn delete_var(frame: &Frame<'_>) -> Result<Response, Failure> {
    projects::delete_var(frame.me, &unconditional(frame)).await?;
    Ok(back(frame))
}

pub(super) async fn delete_secret(frame: &Frame<'_>) -> Result<Response, Failure> {
    projects::delete_secret(frame.me, &unconditional(frame)).await?;
    Ok(back(frame))
}

/// The request without the headers of the browser, which are no conditions.
fn unconditional(frame: &Frame<'_>) -> crate::request::Request {
    let path = [frame.parameter(0), frame.parameter(1)];
    frame.request.asking(&path, &[])
}
