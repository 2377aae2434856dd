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
use state::{AuditActor, AuditEntry};
use wire::ErrorCode;

use crate::failure::{Failure, no_such_link, shorten, unauthorized};
use crate::limits::AUDITED_CHARS;
use crate::peer::Peer;
use crate::request::Arrival;
use crate::routes::{
    Access, ActionRoute, LinkRoute, LocalRoute, PageRoute, PublicRoute, Route, RunnerRoute,
    SessionRoute, UserRoute, WorkerRoute,
};
use crate::service::{Head, Service};
use crate::session;
use crate::visible::Visible;

/// The path of links to blobs, before their secrets.
pub(crate) const LINKED_BLOBS: &str = "/v0/linked-blobs/";

/// The path of links that sign a browser in, before their secrets.
pub(crate) const SIGN_IN_LINKS: &str = "/login/";

/// The caller of a request, with the route that the caller may use.
pub(crate) enum Caller {
    Public(PublicRoute),
    /// A program on this machine, or the holder of a personal access token.
    Local(LocalRoute),
    /// The holder of a personal access token.
    User(UserRoute, Box<Visible>),
    /// The holder of a personal access token, or a browser that is signed in.
    Session(SessionRoute, Box<Visible>),
    /// The holder of a link to a blob.
    Link(LinkRoute, Box<Linked>),
    Runner(RunnerRoute, RunnerSession),
    Worker(WorkerRoute, Box<Worker>),
    Page(PageRoute, Box<Visible>),
    Action(ActionRoute, Box<Visible>),
}

/// A link to a blob, and the daemon as seen with the token that made the link.
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
            user(service, Some(scope), Credentials::Token, head)?;
            Ok(Caller::Local(route))
        }
        Access::User(route, scope) => {
            let credentials = Credentials::with_sessions(route.takes_sessions());
            let me = user(service, Some(scope), credentials, head)?;
            Ok(Caller::User(route, Box::new(me)))
        }
        Access::Session(route) => {
            let credentials = Credentials::with_sessions(route.takes_sessions());
            let me = user(service, None, credentials, head)?;
            Ok(Caller::Session(route, Box::new(me)))
        }
        Access::Page(route, scope) => {
            let me = user(service, scope, Credentials::Session, head)?;
            Ok(Caller::Page(route, Box::new(me)))
        }
        Access::Action(route, scope) => {
            let me = user(service, scope, Credentials::Session, head)?;
            Ok(Caller::Action(route, Box::new(me)))
        }
        Access::Link(route) => {
            let secret = parameters.first().map_or("", String::as_str);
            let linked = linked(service, route, secret, head).ok_or_else(no_such_link)?;
            Ok(Caller::Link(route, Box::new(linked)))
        }
        Access::Runner(route) => {
            let token = PlainToken::parse_session(bearer(headers)?).map_err(|_| unauthorized())?;
            let runner = handle
                .runners()
                .session(token.hash())
                .ok_or_else(unauthorized)?;
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

/// The kinds of credentials that a route accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Credentials {
    /// A personal access token.
    Token,
    /// The cookie of a session. A token beside it is refused, and one without it is not looked at.
    Session,
    Either,
}

impl Credentials {
    /// A personal access token, or also a session.
    const fn with_sessions(takes_sessions: bool) -> Self {
        match takes_sessions {
            true => Self::Either,
            false => Self::Token,
        }
    }
}

/// Authenticates a personal access token or a session. A route without a scope takes any token.
fn user(
    service: &Service,
    scope: Option<Scope>,
    credentials: Credentials,
    head: &Head,
) -> Result<Visible, Failure> {
    let (handle, peer) = (&service.handle, head.arrival.peer);
    let takes_sessions = credentials != Credentials::Token;
    let cookie = session::cookie(&head.headers, peer).filter(|_| takes_sessions);
    let (token, secret, session) = match cookie {
        None if credentials == Credentials::Session => return Err(unauthorized()),
        None => {
            let found = of_bearer(handle, &head.headers);
            if found.is_err() && head.headers.contains_key(AUTHORIZATION) {
                note_refused(handle, &head.arrival);
            }
            let (token, secret) = found?;
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
            handle.sign_ins().note_session(&session);
            (token, session.made_with, Some(session.id))
        }
    };
    service.count_request(token.id, peer)?;
    if let Some(scope) = scope.filter(|scope| !token.scopes.allow(*scope)) {
        return Err(Failure::without_scope(scope));
    }
    handle.sign_ins().note_use(&token);
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

/// The token of the request's session, if both are valid.
pub(crate) fn signed_in(handle: &Handle, headers: &HeaderMap, peer: Peer) -> Option<Arc<Token>> {
    let cookie = session::cookie(headers, peer)?;
    Some(of_cookie(handle, &cookie).ok()?.0)
}

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
) -> Result<(Arc<Token>, Arc<BrowserSession>), Failure> {
    let hash = cookie.secret.hash();
    let found = handle.state().read(|world| {
        let session = world.session(cookie.session)?;
        let is_valid = session.hash == hash && world.is_signed_in(session, handle.time(world));
        let token = world.token(session.token).filter(|_| is_valid)?;
        Some((token.clone(), session.clone()))
    });
    found.ok_or_else(unauthorized)
}

/// The line of the audit log for a request that changes something.
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
        actor: Some(AuditActor {
            token: token.id,
            name: token.name.clone(),
            session,
        }),
        address: Some(arrival.peer.address),
        method: shorten(arrival.method.as_str()),
        path: path.chars().take(AUDITED_CHARS).collect(),
        request: arrival.id,
    }
}

/// Counts an invalid credential of a person, for the audit log. A session that has ended does not count: pages that stay
/// open send it. Neither do the credentials of runners and workers.
pub(crate) fn note_refused(handle: &Handle, arrival: &Arrival) {
    let entry = AuditEntry {
        actor: None,
        address: None,
        method: shorten(arrival.method.as_str()),
        path: shorten(&arrival.path),
        request: arrival.id,
    };
    handle
        .sign_ins()
        .note_refused(arrival.peer.network(), entry);
}

/// A link is valid as long as its token could do the same.
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
