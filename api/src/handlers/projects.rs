//! `/v0/projects`, with their vars and secrets.

use std::sync::Arc;

use model::decide::{DeleteSecret, DeleteVar, SetVar};
use model::{ProjectId, SecretValue, Source, World};
use reconciler::Handle;
use warp::reply::Response;
use wire::SetValue;

use crate::access::actor;
use crate::body;
use crate::convert;
use crate::failure::Failure;
use crate::page::Window;
use crate::reply;
use crate::request::Request;

/// The projects by name.
pub(super) fn list(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let window = Window::of(&request.query)?;
    Ok(reply::ok(&handle.state().read(|world| {
        window.cut(
            world.sources(),
            |source| source.name.to_string(),
            |source| convert::project(world, source),
        )
    })))
}

/// One project.
pub(super) fn show(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let shown = handle.state().read(|world| {
        let source = find(world, request)?;
        Ok::<_, Failure>(convert::project(world, source))
    })?;
    Ok(reply::ok(&shown))
}

/// The vars of a project by name, without their values.
pub(super) fn list_vars(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let window = Window::of(&request.query)?;
    let page = handle.state().read(|world| {
        let record = world.vars(find(world, request)?.project);
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
pub(super) fn list_secrets(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let window = Window::of(&request.query)?;
    let page = handle.state().read(|world| {
        let record = world.secrets(find(world, request)?.project);
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
pub(super) fn show_var(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let name = request.parameter(1);
    let shown = handle.state().read(|world| {
        let record = world.vars(find(world, request)?.project);
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
pub(super) async fn set_var(handle: &Handle, mut request: Request) -> Result<Response, Failure> {
    let project = project(handle, &request)?;
    let value = value_of(&mut request).await?;
    let name = request.parameter(1);
    let set = SetVar {
        project,
        name: name.to_owned(),
        value,
        actor: actor(request.caller.user()?),
    };
    let var = handle.set_var(set).await?;
    Ok(reply::ok(&convert::var(name, &var)))
}

/// Removes a var.
pub(super) async fn delete_var(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let delete = DeleteVar {
        project: project(handle, request)?,
        name: request.parameter(1).to_owned(),
    };
    handle.delete_var(delete).await?;
    Ok(reply::empty())
}

/// Sets a secret. No answer ever contains it.
pub(super) async fn set_secret(handle: &Handle, mut request: Request) -> Result<Response, Failure> {
    let project = project(handle, &request)?;
    let value = value_of(&mut request).await?;
    let name = request.parameter(1);
    let actor = actor(request.caller.user()?);
    let value = SecretValue::new(value);
    let secret = handle
        .set_secret(project, name.to_owned(), value, actor)
        .await?;
    Ok(reply::ok(&convert::named(name, &secret.edit)))
}

/// Removes a secret.
pub(super) async fn delete_secret(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let delete = DeleteSecret {
        project: project(handle, request)?,
        name: request.parameter(1).to_owned(),
    };
    handle.delete_secret(delete).await?;
    Ok(reply::empty())
}

fn project(handle: &Handle, request: &Request) -> Result<ProjectId, Failure> {
    handle
        .state()
        .read(|world| find(world, request).map(|source| source.project))
}

/// Finds the project by name or id.
fn find<'a>(world: &'a World, request: &Request) -> Result<&'a Arc<Source>, Failure> {
    let text = request.parameter(0);
    let named = text.parse().ok().and_then(|name| world.source(&name));
    let by_id = || text.parse().ok().and_then(|id| world.source_of(id));
    named
        .or_else(by_id)
        .ok_or_else(|| Failure::not_found("project", text))
}
