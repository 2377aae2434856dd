//! `/v0/sources`

use std::sync::Arc;

use model::{Seen, Source, SourceName};
use warp::reply::Response;
use wire::{ErrorCode, Page};

use crate::convert;
use crate::failure::Failure;
use crate::page::Window;
use crate::reply;
use crate::request::Request;
use crate::visible::{Shown, Visible};

pub(crate) fn list(user: &Visible, window: &Window) -> Page<wire::Source> {
    user.read(|seen| {
        window.cut(
            seen.sources().filter(|source| source.configured),
            |source| source.name.to_string(),
            |source| convert::sources::source(seen, source, user.poll_status(source)),
        )
    })
}

pub(crate) async fn show(user: &Visible, named: &str) -> Result<wire::Source, Failure> {
    let source = user.find(|seen| Ok(find(seen, named)?.clone()))?;
    let mut shown =
        user.read(|seen| convert::sources::source(seen, &source, user.poll_status(&source)));
    if let (Some(tip), Some(record)) = (&mut shown.tip, user.tip_record(&source).await) {
        tip.passed_over = record.skipped;
        tip.more_passed_over = record.more_skipped;
    }
    Ok(shown)
}

/// Polls the repository now. With `wait`, it answers after the poll.
pub(crate) async fn sync(
    user: &Visible,
    name: &Shown<SourceName>,
    wait: bool,
) -> Result<wire::Source, Failure> {
    user.sync_source(name, wait).await?;
    show(user, name.as_str()).await
}

pub(super) async fn approve(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let name = name(user, request.parameter(0))?;
    let wire::ApproveSource { commit } = request.body.json(&request.headers).await?;
    let wait = request.query.flag("wait")?;
    user.approve_source(&name, commit, wait).await?;
    Ok(reply::ok(&show(user, request.parameter(0)).await?))
}

pub(crate) fn name(user: &Visible, named: &str) -> Result<Shown<SourceName>, Failure> {
    user.find(|seen| Ok(find(seen, named)?.name.clone()))
}

fn find<'w>(seen: Seen<'w>, text: &str) -> Result<&'w Arc<Source>, Failure> {
    let source = text.parse().ok().and_then(|name| seen.source(&name));
    source.filter(|source| source.configured).ok_or_else(|| {
        Failure::not_found("source", text)
            .coded(ErrorCode::SourceNotFound)
            .hint("`everscan source list` shows the sources")
    })
}
