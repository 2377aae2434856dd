//! `/v0/sources`

use std::sync::Arc;

use model::{Seen, Source};
use warp::reply::Response;
use wire::Page;

use crate::convert_source;
use crate::failure::Failure;
use crate::page::Window;
use crate::reply;
use crate::request::Request;
use crate::visible::Visible;

/// The configured sources by name.
pub(super) fn list(me: &Visible, request: &Request) -> Result<Response, Failure> {
    Ok(reply::ok(&load_list(me, request)?))
}

pub(crate) fn load_list(me: &Visible, request: &Request) -> Result<Page<wire::Source>, Failure> {
    let window = Window::of(&request.query)?;
    Ok(me.read(|seen| {
        window.cut(
            seen.sources().filter(|source| source.configured),
            |source| source.name.to_string(),
            |source| convert_source::source(seen, source, me.looked_at(source)),
        )
    }))
}

/// One source.
pub(super) async fn show(me: &Visible, request: &Request) -> Result<Response, Failure> {
    Ok(reply::ok(&load_show(me, request).await?))
}

pub(crate) async fn load_show(me: &Visible, request: &Request) -> Result<wire::Source, Failure> {
    let source = me.find(|seen| Ok(find(seen, request.parameter(0))?.clone()))?;
    let mut shown = me.read(|seen| convert_source::source(seen, &source, me.looked_at(&source)));
    if let (Some(tip), Some(record)) = (&mut shown.tip, me.tip_record(&source).await) {
        tip.passed_over = record.skipped;
        tip.more_passed_over = record.more_skipped;
    }
    Ok(shown)
}

/// Looks at the repository now. With `wait=true` the answer comes after that look.
pub(crate) async fn sync(me: &Visible, request: &Request) -> Result<Response, Failure> {
    let name = me.find(|seen| Ok(find(seen, request.parameter(0))?.name.clone()))?;
    me.sync_source(&name, request.query.flag("wait")?).await?;
    show(me, request).await
}

/// Lets a tip be applied that is held. With `wait=true` the answer comes after the look that applies it.
pub(crate) async fn approve(me: &Visible, mut request: Request) -> Result<Response, Failure> {
    let name = me.find(|seen| Ok(find(seen, request.parameter(0))?.name.clone()))?;
    let wire::ApproveSource { commit } = request.body.json(&request.headers).await?;
    me.approve_source(&name, commit, request.query.flag("wait")?)
        .await?;
    show(me, &request).await
}

fn find<'w>(seen: Seen<'w>, text: &str) -> Result<&'w Arc<Source>, Failure> {
    let source = text.parse().ok().and_then(|name| seen.source(&name));
    source
        .filter(|source| source.configured)
        .ok_or_else(|| Failure::not_found("source", text))
}
