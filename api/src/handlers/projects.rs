//! `/v0/projects`, with their vars and secrets.

use std::sync::Arc;

use model::{ProjectId, SecretValue, Seen, Source};
use warp::reply::Response;
use wire::SetValue;

use crate::body;
use crate::convert;
use crate::failure::Failure;
use crate::page::Window;
use crate::reply;
use crate::request::Request;
use crate::visible::{Shown, Visible};

/// The projects by name.
pub(super) fn list(me: &Visible, request: &Request) -> Result<Response, Failure> {
    let window = Window::of(&request.query)?;
    Ok(reply::ok(&me.read(|seen| {
        window.cut(
            seen.sources(),
            |source| source.name.to_string(),
            |source| convert::project(seen, source),
        )
    })))
}

/// One project.
pub(super) fn show(me: &Visible, request: &Request) -> Result<Response, Failure> {
    let shown = me.read(|seen| {
        let source = find(seen, request.parameter(0))?;
        Ok::<_, Failure>(convert::project(seen, source))
    })?;
    Ok(reply::ok(&shown))
}

/// The vars of a project by name, without their values.
pub(super) fn list_vars(me: &Visible, request: &Request) -> Result<Response, Failure> {
    let window = Window::of(&request.query)?;
    let page = me.read(|seen| {
        let record = seen.vars(find(seen, request.parameter(0))?.project);
        let vars = record.into_iter().flat_map(|record| &record.vars);
        Ok::<_, Failure>(window.cut(
            vars,
            |(name, _)| (*name).clone(),
            |(name, var)| convert::named(name, &var.edit),
        ))
    })?;
    Ok(reply::ok(&page))
}

/// The secrets of a project by name.
pub(super) fn list_secrets(me: &Visible, request: &Request) -> Result<Response, Failure> {
    let window = Window::of(&request.query)?;
    let page = me.read(|seen| {
        let record = seen.secrets(find(seen, request.parameter(0))?.project);
        let secrets = record.into_iter().flat_map(|record| &record.secrets);
        Ok::<_, Failure>(window.cut(
            secrets,
            |(name, _)| (*name).clone(),
            |(name, secret)| convert::named(name, &secret.edit),
        ))
    })?;
    Ok(reply::ok(&page))
}

/// A var with its value.
pub(super) fn show_var(me: &Visible, request: &Request) -> Result<Response, Failure> {
    let name = request.parameter(1);
    let shown = me.read(|seen| {
        let record = seen.vars(find(seen, request.parameter(0))?.project);
        let var = record.and_then(|record| record.vars.get(name));
        var.map(|var| convert::var(name, var))
            .ok_or_else(|| Failure::not_found("var", name))
    })?;
    Ok(reply::ok(&shown))
}

/// Reads the value from the body. Errors never quote the body, which may hold a secret.
async fn value_of(request: &mut Request) -> Result<String, Failure> {
    body::is_json(&request.headers)?;
    let bytes = request.body.bytes().await?;
    let SetValue { value } = serde_json::from_slice(&bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let problem = format!("line {line}, column {column}: write {{\"value\": \"…\"}}");
        Failure::invalid("body", problem)
    })?;
    Ok(value)
}

/// Sets a var.
pub(super) async fn set_var(me: &Visible, mut request: Request) -> Result<Response, Failure> {
    let project = project(me, &request)?;
    let value = value_of(&mut request).await?;
    let name = request.parameter(1);
    let var = me.set_var(&project, name, value).await?;
    Ok(reply::ok(&convert::var(name, &var)))
}

/// Removes a var.
pub(super) async fn delete_var(me: &Visible, request: &Request) -> Result<Response, Failure> {
    let project = project(me, request)?;
    me.delete_var(&project, request.parameter(1)).await?;
    Ok(reply::empty())
}

/// Sets a secret. No answer ever contains it.
pub(super) async fn set_secret(me: &Visible, mut request: Request) -> Result<Response, Failure> {
    let project = project(me, &request)?;
    let value = SecretValue::new(value_of(&mut request).await?);
    let name = request.parameter(1);
    let secret = me.set_secret(&project, name, value).await?;
    Ok(reply::ok(&convert::named(name, &secret.edit)))
}

/// Removes a secret.
pub(super) async fn delete_secret(me: &Visible, request: &Request) -> Result<Response, Failure> {
    let project = project(me, request)?;
    me.delete_secret(&project, request.parameter(1)).await?;
    Ok(reply::empty())
}

fn project(me: &Visible, request: &Request) -> Result<Shown<ProjectId>, Failure> {
    me.find(|seen| find(seen, request.parameter(0)).map(|source| source.project))
}

/// Finds the project by name or id.
pub(super) fn find<'w>(seen: Seen<'w>, text: &str) -> Result<&'w Arc<Source>, Failure> {
    let named = text.parse().ok().and_then(|name| seen.source(&name));
    let by_id = || text.parse().ok().and_then(|id| seen.source_of(id));
    named
        .or_else(by_id)
        .ok_or_else(|| Failure::not_found("project", text))
}
