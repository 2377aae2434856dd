//! `/v0/sources`

use std::sync::Arc;

use model::{Seen, Source, SourceName};
use warp::reply::Response;
use wire::{ErrorCode, Page};

use super::revisions::RevisionsQuery;
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
    let source = shown(user, named)?;
    let mut shown =
        user.read(|seen| convert::sources::source(seen, &source, user.poll_status(&source)));
    if let (Some(tip), Some(record)) = (&mut shown.tip, user.tip_record(&source).await) {
        *tip = convert::sources::recorded_tip(record);
    }
    Ok(shown)
}

pub(crate) async fn tips(
    user: &Visible,
    source: &Shown<Arc<Source>>,
    query: &RevisionsQuery,
) -> Result<Page<wire::Tip>, Failure> {
    let newest = source.tip.as_ref().map_or(0, |tip| tip.number);
    let last = match query.before {
        Some(before) => before.saturating_sub(1).min(newest),
        None => newest,
    };
    let records = user.tips(source, last, query.limit).await?;
    let oldest = records.last().map(|oldest| oldest.tip.number);
    Ok(Page {
        next_cursor: oldest
            .filter(|number| *number > 1)
            .map(|number| number.to_string()),
        ..Page::all(
            records
                .into_iter()
                .map(convert::sources::recorded_tip)
                .collect(),
        )
    })
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

pub(crate) fn shown(user: &Visible, named: &str) -> Result<Shown<Arc<Source>>, Failure> {
    user.find(|seen| Ok(find(seen, named)?.clone()))
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
