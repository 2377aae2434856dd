//! Authentication and authorization.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use model::{Actor, JobId, PlainToken, Scope, Token, TokenKind};
use reconciler::{Handle, RunnerSession, Worker};
use wire::ErrorCode;

use crate::failure::{Failure, unauthorized};
use crate::routes::{Access, Route};

/// The caller of a request.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    Anyone,
    /// The holder of a personal access token.
    User(Arc<Token>),
    /// A runner, with its session token.
    Runner(RunnerSession),
    Worker(Box<Worker>),
}

impl Caller {
    /// The caller of a user's route.
    pub(crate) fn user(&self) -> Result<&Arc<Token>, Failure> {
        match self {
            Self::User(token) => Ok(token),
            Self::Anyone | Self::Runner(_) | Self::Worker(_) => Err(unauthorized()),
        }
    }

    /// The caller of a runner's route.
    pub(crate) fn runner(&self) -> Result<RunnerSession, Failure> {
        match self {
            Self::Runner(runner) => Ok(*runner),
            Self::Anyone | Self::User(_) | Self::Worker(_) => Err(unauthorized()),
        }
    }

    /// The caller of a worker's route.
    pub(crate) fn worker(&self) -> Result<&Worker, Failure> {
        match self {
            Self::Worker(worker) => Ok(worker),
            Self::Anyone | Self::User(_) | Self::Runner(_) => Err(unauthorized()),
        }
    }
}

/// The actor of changes made with this token.
pub(crate) fn actor(token: &Token) -> Actor {
    Actor::Token {
        id: token.id,
        name: token.name.clone(),
    }
}

/// Authenticates a call to `route`, before its body is read.
pub(crate) async fn authenticate(
    handle: &Handle,
    route: &Route,
    parameters: &[String],
    headers: &HeaderMap,
) -> Result<Caller, Failure> {
    match route.access {
        Access::Public => Ok(Caller::Anyone),
        Access::User(scope) => user(handle, scope, bearer(headers)?),
        Access::Runner => {
            let token = PlainToken::parse_session(bearer(headers)?).map_err(|_| unauthorized())?;
            handle
                .runner(token.hash())
                .map(Caller::Runner)
                .ok_or_else(unauthorized)
        }
        Access::Worker => {
            let token = PlainToken::parse_session(bearer(headers)?).map_err(|_| unauthorized())?;
            let job: JobId = parameters
                .first()
                .and_then(|job| job.parse().ok())
                .ok_or_else(unauthorized)?;
            Ok(Caller::Worker(Box::new(
                handle.worker(job, token.hash()).await?,
            )))
        }
    }
}

fn user(handle: &Handle, scope: Scope, token: &str) -> Result<Caller, Failure> {
    let hash = PlainToken::parse(TokenKind::Personal, token)
        .map_err(|_| unauthorized())?
        .hash();
    // One look: a token's end moves together with what it is compared with.
    let (token, now) = handle
        .state()
        .read(|world| (world.token(&hash).cloned(), handle.time(world)));
    let token = token
        .filter(|token| token.is_valid(now))
        .ok_or_else(unauthorized)?;
    if token.scopes.allow(scope) {
        Ok(Caller::User(token))
    } else {
        Err(Failure::new(
            ErrorCode::Forbidden,
            format!("this needs a token with the scope `{scope}`"),
        ))
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
