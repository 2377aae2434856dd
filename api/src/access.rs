//! Authentication and authorization.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use model::{JobId, PlainToken, Scope, Token, TokenKind};
use reconciler::{RunnerSession, Worker};
use state::AuditEntry;
use wire::ErrorCode;

use crate::failure::{Failure, shorten, unauthorized};
use crate::limits::AUDITED_CHARS;
use crate::routes::{Access, LocalRoute, PublicRoute, Route, RunnerRoute, UserRoute, WorkerRoute};
use crate::service::{Head, Service};
use crate::visible::Visible;

/// The caller of a request, with the route that the caller may use.
pub(crate) enum Caller {
    Public(PublicRoute),
    /// Somebody on this machine, or the holder of a personal access token.
    Local(LocalRoute),
    /// The holder of a personal access token.
    User(UserRoute, Box<Visible>),
    /// A runner, with its session token.
    Runner(RunnerRoute, RunnerSession),
    Worker(WorkerRoute, Box<Worker>),
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
        Access::Local(route, _) if head.peer.is_local => Ok(Caller::Local(route)),
        Access::Local(route, scope) => {
            user(service, scope, head)?;
            Ok(Caller::Local(route))
        }
        Access::User(route, scope) => {
            let me = user(service, scope, head)?;
            Ok(Caller::User(route, Box::new(me)))
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

fn user(service: &Service, scope: Scope, head: &Head) -> Result<Visible, Failure> {
    let handle = &service.handle;
    let secret = PlainToken::parse(TokenKind::Personal, bearer(&head.headers)?)
        .map_err(|_| unauthorized())?
        .hash();
    // One look: a token's end moves together with what it is compared with.
    let (token, now) = handle
        .state()
        .read(|world| (world.token_of(&secret).cloned(), handle.time(world)));
    let token = token
        .filter(|token| token.accepts(&secret, now))
        .ok_or_else(unauthorized)?;
    service.count_request(token.id, head.peer)?;
    if !token.scopes.allow(scope) {
        return Err(Failure::new(
            ErrorCode::Forbidden,
            format!("this needs a token with the scope `{scope}`"),
        ));
    }
    handle.note_use(&token);
    let handle = if head.method.is_safe() {
        handle.clone()
    } else {
        handle.audited(audit_entry(&token, head))
    };
    Ok(Visible::new(&handle, &service.events, token, secret))
}

/// What the audit log says of the request, if it changes something.
fn audit_entry(token: &Token, head: &Head) -> AuditEntry {
    AuditEntry {
        token: token.id,
        name: token.name.clone(),
        address: head.peer.address,
        method: shorten(head.method.as_str()),
        path: head.path.chars().take(AUDITED_CHARS).collect(),
        request: head.id,
    }
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
