//! Authentication and authorization.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use model::blob::LinkUse;
use model::{BlobLink, JobId, PlainToken, Scope, TokenKind};
use reconciler::{Handle, RunnerSession, Worker};
use wire::ErrorCode;

use crate::events::Hub;
use crate::failure::{Failure, unauthorized};
use crate::handlers::no_such_link;
use crate::routes::{Access, LinkRoute, PublicRoute, Route, RunnerRoute, UserRoute, WorkerRoute};
use crate::visible::Visible;

/// The caller of a request, with the route that the caller may use.
pub(crate) enum Caller {
    Public(PublicRoute),
    /// The holder of a personal access token.
    User(UserRoute, Box<Visible>),
    /// Whoever has a link to a blob.
    Link(LinkRoute, Box<Linked>),
    /// A runner, with its session token.
    Runner(RunnerRoute, RunnerSession),
    Worker(WorkerRoute, Box<Worker>),
}

/// A link to a blob, and the daemon as the token that made it sees it.
pub(crate) struct Linked {
    pub(crate) me: Visible,
    pub(crate) link: Arc<BlobLink>,
}

/// Authenticates a call to `route`, before its body is read.
pub(crate) async fn authenticate(
    handle: &Handle,
    events: &Arc<Hub>,
    route: &Route,
    parameters: &[String],
    headers: &HeaderMap,
) -> Result<Caller, Failure> {
    match route.access {
        Access::Public(route) => Ok(Caller::Public(route)),
        Access::User(route, scope) => {
            let me = user(handle, events, scope, bearer(headers)?)?;
            Ok(Caller::User(route, Box::new(me)))
        }
        Access::Link(route) => {
            let secret = parameters.first().map_or("", String::as_str);
            let linked = linked(handle, events, route, secret).ok_or_else(no_such_link)?;
            Ok(Caller::Link(route, Box::new(linked)))
        }
        Access::Runner(route) => {
            let token = PlainToken::parse_session(bearer(headers)?).map_err(|_| unauthorized())?;
            let runner = handle.runner(token.hash()).ok_or_else(unauthorized)?;
            Ok(Caller::Runner(route, runner))
        }
        Access::Worker(route) => {
            let token = PlainToken::parse_session(bearer(headers)?).map_err(|_| unauthorized())?;
            let job: JobId = parameters
                .first()
                .and_then(|job| job.parse().ok())
                .ok_or_else(unauthorized)?;
            let worker = handle.worker(job, token.hash()).await?;
            Ok(Caller::Worker(route, Box::new(worker)))
        }
    }
}

fn user(handle: &Handle, events: &Arc<Hub>, scope: Scope, token: &str) -> Result<Visible, Failure> {
    let secret = PlainToken::parse(TokenKind::Personal, token)
        .map_err(|_| unauthorized())?
        .hash();
    // One look: a token's end moves together with what it is compared with.
    let (token, now) = handle
        .state()
        .read(|world| (world.token_of(&secret).cloned(), handle.time(world)));
    let token = token
        .filter(|token| token.accepts(&secret, now))
        .ok_or_else(unauthorized)?;
    if !token.scopes.allow(scope) {
        return Err(Failure::new(
            ErrorCode::Forbidden,
            format!("this needs a token with the scope `{scope}`"),
        ));
    }
    handle.note_use(&token);
    Ok(Visible::new(handle, events, token, secret))
}

/// A link is good as long as its token could do the same.
fn linked(handle: &Handle, events: &Arc<Hub>, route: LinkRoute, secret: &str) -> Option<Linked> {
    let secret = PlainToken::parse(TokenKind::BlobLink, secret).ok()?.hash();
    let use_for = match route {
        LinkRoute::Download | LinkRoute::Inspect => LinkUse::Get,
        LinkRoute::Upload => LinkUse::Put,
    };
    let (link, token) = handle.state().read(|world| {
        let now = handle.time(world);
        let link = world.blob_link_of(&secret)?;
        let token = world.token(link.token)?;
        let is_good = link.use_for == use_for
            && !link.is_over(now)
            && token.is_valid(now)
            && token.scopes.allow(use_for.scope());
        is_good.then(|| (link.clone(), token.clone()))
    })?;
    let hash = token.hash;
    let me = Visible::new(handle, events, token, hash);
    Some(Linked { me, link })
}

fn bearer(headers: &HeaderMap) -> Result<&str, Failure> {
    let value = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .ok_or_else(unauthorized)?;
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        Some(_) | None => Err(unauthorized()),
    }
}
