//! Authentication and authorization.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use model::blob::LinkUse;
use model::{
    BlobLink, Guard, JobId, PlainToken, Principal, Rights, Scope, TokenKind, UserName, World,
};
use reconciler::{Handle, RunnerSession, Worker};
use state::{AuditActor, AuditEntry};
use wire::ErrorCode;

use crate::failure::{Failure, job_token_over, no_such_link, not_for_jobs, shorten, unauthorized};
use crate::limits::AUDITED_CHARS;
use crate::request::Arrival;
use crate::routes::{
    Access, ActionRoute, LinkRoute, LocalRoute, PageRoute, PublicRoute, Route, RunnerRoute,
    SessionRoute, UserRoute, WorkerRoute,
};
use crate::service::{Head, Service};
use crate::session;
use crate::visible::Visible;

/// The path of links to blobs, without the secret that follows.
pub(crate) const LINKED_BLOBS: &str = "/v0/linked-blobs/";

/// The path of sign-in links for browsers, without the secret that follows.
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
    pub(crate) user: Visible,
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
        Access::Public(_) | Access::Link(_) => {}
        Access::Local(..)
        | Access::User(..)
        | Access::Session(_)
        | Access::Page(..)
        | Access::Action(..)
        | Access::Runner(_)
        | Access::Worker(_) => check_one_credential(head)?,
    }
    match route.access {
        Access::Public(route) => Ok(Caller::Public(route)),
        Access::Local(route, _)
            if head.arrival.peer.is_local && session::names_this_machine(headers) =>
        {
            Ok(Caller::Local(route))
        }
        Access::Local(route, scope) => {
            user(service, &[scope], Credentials::Token, head)?;
            Ok(Caller::Local(route))
        }
        Access::User(route, scope) => {
            let credentials = Credentials::with_sessions(route.takes_sessions());
            let user = user(service, route.scopes(&scope), credentials, head)?;
            Ok(Caller::User(route, Box::new(user)))
        }
        Access::Session(route) => {
            let credentials = Credentials::with_sessions(route.takes_sessions());
            let user = user(service, &[], credentials, head)?;
            if !route.takes_jobs() && user.principal().job().is_some() {
                return Err(not_for_jobs());
            }
            Ok(Caller::Session(route, Box::new(user)))
        }
        Access::Page(route, scope) => {
            let user = user(service, scope.as_slice(), Credentials::Session, head)?;
            Ok(Caller::Page(route, Box::new(user)))
        }
        Access::Action(route, scope) => {
            let user = user(service, scope.as_slice(), Credentials::Session, head)?;
            Ok(Caller::Action(route, Box::new(user)))
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

/// It would be unclear who acts, and a page must not act with a token that the browser adds.
fn check_one_credential(head: &Head) -> Result<(), Failure> {
    let has_cookie = session::cookie(&head.headers, &head.arrival).is_some();
    if has_cookie && bearer(&head.headers).is_ok() {
        let text = "a request has a session or an access token, not both";
        return Err(Failure::new(ErrorCode::InvalidRequest, text));
    }
    Ok(())
}

/// The kinds of credentials that a route accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Credentials {
    /// A personal access token.
    Token,
    /// The cookie of a session. A token is ignored.
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

/// Authenticates a personal access token or a session with one of these scopes. A route without a scope takes any token.
fn user(
    service: &Service,
    scopes: &[Scope],
    credentials: Credentials,
    head: &Head,
) -> Result<Visible, Failure> {
    let (handle, peer) = (&service.handle, head.arrival.peer);
    let takes_sessions = credentials != Credentials::Token;
    let cookie = session::cookie(&head.headers, &head.arrival).filter(|_| takes_sessions);
    let (principal, rights) = match cookie {
        None if credentials == Credentials::Session => return Err(unauthorized()),
        None => {
            let found = of_bearer(handle, &head.headers);
            if found.is_err() && head.headers.contains_key(AUTHORIZATION) {
                note_refused(handle, &head.arrival);
            }
            found?
        }
        Some(cookie) => {
            let found = valid(handle, |world| Principal::of_cookie(world, &cookie))?;
            session::check_origin(&head.arrival.method, &head.headers, peer)?;
            found
        }
    };
    service.count_request(principal.share(), peer)?;
    let mut allowed = scopes.iter().filter(|scope| rights.scopes.allow(**scope));
    // A job is told of a scope that a job can have.
    let is_possible = |scope: &&Scope| workflow::PERMISSIONS.contains(&scope.name());
    let possible = scopes.iter().find(is_possible);
    let possible = possible.filter(|_| principal.job().is_some());
    let lacking = possible.or(scopes.first());
    let scope = allowed.next().or(lacking).copied();
    if let Some(scope) = scope.filter(|scope| !rights.scopes.allow(*scope)) {
        return Err(match (principal.job(), principal.token()) {
            (Some(_), _) => Failure::without_permission(scope),
            (None, Some(_)) if !is_limited_by_role(handle, &principal, scope) => {
                Failure::without_scope(scope)
            }
            (None, _) => Failure::without_role(scope),
        });
    }
    let (session, token) = handle.state().read(|world| {
        let session = principal.session().and_then(|id| world.session(id));
        let token = principal.token().and_then(|id| world.token(id));
        (session.cloned(), token.cloned())
    });
    if let Some(session) = session {
        handle.sign_ins().note_session(&session);
    }
    if let Some(token) = token {
        handle.sign_ins().note_use(&token);
    }
    let handle = if head.arrival.method.is_safe() {
        handle.clone()
    } else {
        handle.audited(audit_entry(handle, &principal, &head.arrival, &head.query))
    };
    let guard = Guard::begin((principal, rights), scope);
    Ok(Visible::new(&handle, service, guard))
}

/// True if the caller's token has the scope, so that only the roles of its owner lack it.
fn is_limited_by_role(handle: &Handle, principal: &Principal, scope: Scope) -> bool {
    let has_scope = |world: &World| {
        let token = world.token(principal.token()?)?;
        Some(token.scopes.allow(scope))
    };
    handle.state().read(has_scope).unwrap_or(false)
}

/// The signed-in browser of the session in the request.
pub(crate) fn signed_in(
    handle: &Handle,
    headers: &HeaderMap,
    arrival: &Arrival,
) -> Option<(Principal, Rights)> {
    let cookie = session::cookie(headers, arrival)?;
    valid(handle, |world| Principal::of_cookie(world, &cookie)).ok()
}

/// The caller with this access token, or with the token of a job.
fn of_bearer(handle: &Handle, headers: &HeaderMap) -> Result<(Principal, Rights), Failure> {
    let secret = bearer(headers)?;
    if let Ok(secret) = PlainToken::parse(TokenKind::Device, secret) {
        let session =
            |world: &World| Principal::of_session(world, world.session_of(&secret.hash())?);
        return valid(handle, session);
    }
    match PlainToken::parse(TokenKind::Job, secret) {
        Ok(secret) => {
            let found = valid(handle, |world| Principal::of_job(world, secret.hash()));
            found.map_err(|_| job_token_over())
        }
        Err(_) => of_secret(handle, secret),
    }
}

/// The caller with this personal access token.
pub(crate) fn of_secret(handle: &Handle, secret: &str) -> Result<(Principal, Rights), Failure> {
    let secret = PlainToken::parse(TokenKind::Personal, secret);
    let secret = secret.map_err(|_| unauthorized())?.hash();
    valid(handle, |world| {
        let token = world.token_of(&secret)?;
        Some(Principal::of_token(token, secret))
    })
}

/// A caller with its rights, if its credential is valid.
fn valid(
    handle: &Handle,
    find: impl FnOnce(&World) -> Option<Principal>,
) -> Result<(Principal, Rights), Failure> {
    // Read both at once: a token's time of expiry and the steady time that it is compared with change together.
    let found = handle.state().read(|world| {
        let principal = find(world)?;
        let rights = principal.rights(world, handle.time(world))?;
        Some((principal, rights))
    });
    found.ok_or_else(unauthorized)
}

/// The line of the audit log for a request that changes something.
pub(crate) fn audit_entry(
    handle: &Handle,
    principal: &Principal,
    arrival: &Arrival,
    query: &str,
) -> AuditEntry {
    let name = |world: &World| Some(world.user(principal.user()?)?.name.to_string());
    let actor = AuditActor {
        user: handle.state().read(name),
        token: principal.token(),
        name: principal.name.clone(),
        session: principal.session(),
        job: principal.job(),
        runner: None,
    };
    AuditEntry {
        actor: Some(actor),
        ..entry(arrival, query)
    }
}

/// The same without its actor.
pub(crate) fn entry(arrival: &Arrival, query: &str) -> AuditEntry {
    let path = match query {
        "" => arrival.path.clone(),
        query => format!("{}?{query}", arrival.path),
    };
    AuditEntry {
        actor: None,
        address: Some(arrival.peer.address),
        method: shorten(arrival.method.as_str()),
        path: path.chars().take(AUDITED_CHARS).collect(),
        request: arrival.id,
    }
}

/// Counts an invalid credential of a person, for the audit log. An ended session does not count, because open pages still send
/// it. Credentials of runners and workers do not count either.
pub(crate) fn note_refused(handle: &Handle, arrival: &Arrival) {
    note_refused_user(handle, arrival, None);
}

/// The same with the user who was tried.
pub(crate) fn note_refused_user(handle: &Handle, arrival: &Arrival, user: Option<UserName>) {
    let entry = AuditEntry {
        actor: None,
        address: None,
        method: shorten(arrival.method.as_str()),
        path: shorten(&arrival.path),
        request: arrival.id,
    };
    handle
        .sign_ins()
        .note_refused(arrival.peer.network(), user, entry);
}

/// Finds a link. It is valid only while the token that made it may do the same.
fn linked(service: &Service, route: LinkRoute, secret: &str, head: &Head) -> Option<Linked> {
    let handle = &service.handle;
    let secret = PlainToken::parse(TokenKind::BlobLink, secret).ok()?.hash();
    let use_for = match route {
        LinkRoute::Download | LinkRoute::Inspect => LinkUse::Get,
        LinkRoute::Upload => LinkUse::Put,
    };
    let (link, principal, rights) = handle.state().read(|world| {
        let link = world.blob_link_of(&secret)?;
        let principal = Principal::of_link(world, link)?;
        let rights = principal.rights(world, handle.time(world))?;
        let may = link.use_for == use_for && rights.may(use_for.scope(), link.project);
        may.then(|| (link.clone(), principal, rights))
    })?;
    // The path contains the secret of the link, so log the link's id instead.
    let arrival = Arrival {
        path: format!("{LINKED_BLOBS}{}", link.id),
        ..Arrival::clone(&head.arrival)
    };
    let handle = handle.audited(audit_entry(handle, &principal, &arrival, ""));
    let guard = Guard::begin((principal, rights), Some(use_for.scope()));
    let user = Visible::new(&handle, service, guard);
    Some(Linked { user, link })
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
