//! `/v0/sources`

use model::SourceName;
use reconciler::Handle;
use warp::reply::Response;

use crate::convert;
use crate::failure::Failure;
use crate::page::Window;
use crate::reply;
use crate::request::Request;

/// The configured sources by name.
pub(super) fn list(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let window = Window::of(&request.query)?;
    Ok(reply::ok(&handle.state().read(|world| {
        window.cut(
            world.sources().filter(|source| source.configured),
            |source| source.name.to_string(),
            |source| convert::source(world, source, handle.source_checked_at(&source.name)),
        )
    })))
}

/// One source.
pub(super) fn show(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    Ok(reply::ok(&find(handle, &name(request)?)?))
}

/// Looks at the repository now. With `wait=true` the answer comes after that look.
pub(super) async fn sync(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let name = name(request)?;
    handle
        .sync_source(&name, request.query.flag("wait")?)
        .await?;
    Ok(reply::ok(&find(handle, &name)?))
}

fn name(request: &Request) -> Result<SourceName, Failure> {
    let text = request.parameter(0);
    text.parse().map_err(|_| Failure::not_found("source", text))
}

fn find(handle: &Handle, name: &SourceName) -> Result<wire::Source, Failure> {
    let found = handle.state().read(|world| {
        let source = world.source(name).filter(|source| source.configured)?;
        Some(convert::source(
            world,
            source,
            handle.source_checked_at(name),
        ))
    });
    found.ok_or_else(|| Failure::not_found("source", name.as_str()))
}
