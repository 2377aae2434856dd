//! Authentication and authorization.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use model::blob::LinkUse;
use model::{
    BlobLink, BrowserSession, JobId, PlainToken, Scope, SessionCookie, SessionId, Token, TokenHash,
    TokenKind,
};
use reconciler::{Handle, RunnerSession, Worker};
use state::AuditEntry;
use wire::ErrorCode;

use crate::failure::{Failure, shorten, unauthorized};
use crate::handlers::{LINKED_BLOBS, no_such_link};
use crate::limits::AUDITED_CHARS;
use crate::request::Arrival;
use crate::routes::{
    Access, LinkRoute, LocalRoute, PublicRoute, Route, RunnerRoute, SessionRoute, UserRoute,
    WorkerRoute,
};
use crate::service::{Head, Service};
use crate::session;
use crate::visible::Visible;

/// The caller of a request, with the route that the caller may use.
pub(crate) enum Caller {
    Public(PublicRoute),
    /// Somebody on this machine, or the holder of a personal access token.
    Local(LocalRoute),
    /// The holder of a personal access token.
    User(UserRoute, Box<Visible>),
    /// A browser that is signed in, or the holder of a personal access token.
    Session(SessionRoute, Box<Visible>),
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
    service: &Service,
    route: &Route,
    parameters: &[String],
    head: &Head,
) -> Result<Caller, Failure> {
    let (handle, headers) = (&service.handle, &head.headers);
    match route.access {
        Access::Public(route) => Ok(Caller::Public(route)),
        Access::Local(route, _)
            if head.arrival.peer.is_local && session::names_this_machine(headers) =>
        {
            Ok(Caller::Local(route))
        }
        Access::Local(route, scope) => {
            user(service, Some(scope), false, head)?;
            Ok(Caller::Local(route))
        }
        Access::User(route, scope) => {
            let me = user(service, Some(scope), route.takes_sessions(), head)?;
            Ok(Caller::User(route, Box::new(me)))
        }
        Access::Session(route) => {
            let me = user(service, None, true, head)?;
            Ok(Caller::Session(route, Box::new(me)))
        }
        Access::Link(route) => {
            let secret = parameters.first().map_or("", String::as_str);
            let linked = linked(service, route, secret, head).ok_or_else(no_such_link)?;
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

/// Somebody with a personal access token, or with a session if that is enough. A route without a scope takes any token.
fn user(
    service: &Service,
    scope: Option<Scope>,
    takes_sessions: bool,
    head: &Head,
) -> Result<Visible, Failure> {
    let (handle, peer) = (&service.handle, head.arrival.peer);
    let cookie = session::cookie(&head.headers, peer).filter(|_| takes_sessions);
    let (token, secret, session) = match cookie {
        None => {
            let (token, secret) = of_bearer(handle, &head.headers)?;
            (token, secret, None)
        }
        Some(_) if head.headers.contains_key(AUTHORIZATION) => {
            return Err(Failure::new(
                ErrorCode::InvalidRequest,
                "a request has a session or an access token, not both",
            ));
        }
        Some(cookie) => {
            let (token, session) = of_cookie(handle, &cookie)?;
            session::check_origin(&head.arrival.method, &head.headers, peer)?;
            handle.note_session(token.id, &session);
            (token, session.made_with, Some(session.id))
        }
    };
    service.count_request(token.id, peer)?;
    if let Some(scope) = scope.filter(|scope| !token.scopes.allow(*scope)) {
        return Err(Failure::new(
            ErrorCode::Forbidden,
            format!("this needs a token with the scope `{scope}`"),
        ));
    }
    handle.note_use(&token);
    let handle = if head.arrival.method.is_safe() {
        handle.clone()
    } else {
        handle.audited(audit_entry(&token, session, &head.arrival, &head.query))
    };
    Ok(Visible::new(
        &handle,
        &service.events,
        token,
        secret,
        session,
    ))
}

/// The token with the secret in the header.
fn of_bearer(handle: &Handle, headers: &HeaderMap) -> Result<(Arc<Token>, TokenHash), Failure> {
    let secret = PlainToken::parse(TokenKind::Personal, bearer(headers)?)
        .map_err(|_| unauthorized())?
        .hash();
    // One look: a token's end moves together with what it is compared with.
    let (token, now) = handle
        .state()
        .read(|world| (world.token_of(&secret).cloned(), handle.time(world)));
    let token = token.filter(|token| token.accepts(&secret, now));
    Ok((token.ok_or_else(unauthorized)?, secret))
}

/// The session of the cookie, with its token.
fn of_cookie(
    handle: &Handle,
    cookie: &SessionCookie,
) -> Result<(Arc<Token>, BrowserSession), Failure> {
    let hash = cookie.secret.hash();
    let found = handle.state().read(|world| {
        let token = world.token(cookie.token)?;
        let mut sessions = token.valid_sessions(handle.time(world));
        let session = sessions.find(|session| session.hash == hash)?.clone();
        Some((token.clone(), session))
    });
    found.ok_or_else(unauthorized)
}

/// What the audit log says of the request, if it changes something.
pub(crate) fn audit_entry(
    token: &Token,
    session: Option<SessionId>,
    arrival: &Arrival,
    query: &str,
) -> AuditEntry {
    let path = match query {
        "" => arrival.path.clone(),
        query => format!("{}?{query}", arrival.path),
    };
    AuditEntry {
        token: token.id,
        name: token.name.clone(),
        session,
        address: arrival.peer.address,
        method: shorten(arrival.method.as_str()),
        path: path.chars().take(AUDITED_CHARS).collect(),
        request: arrival.id,
    }
}

/// A link is good as long as its token could do the same.
fn linked(service: &Service, route: LinkRoute, secret: &str, head: &Head) -> Option<Linked> {
    let handle = &service.handle;
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
    // The path has the secret of the link; its id says which one it is.
    let arrival = Arrival {
        path: format!("{LINKED_BLOBS}{}", link.id),
        ..Arrival::clone(&head.arrival)
    };
    let handle = handle.audited(audit_entry(&token, None, &arrival, ""));
    let me = Visible::new(&handle, &service.events, token, hash, None).through(link.id);
    Some(Linked { me, link })
}

pub(crate) fn bearer(headers: &HeaderMap) -> Result<&str, Failure> {
    let value = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .ok_or_else(unauthorized)?;
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        Some(_) | None => Err(unauthorized()),
    }
}
