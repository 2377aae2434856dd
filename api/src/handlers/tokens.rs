//! `/v0/tokens`

use std::sync::Arc;

use chrono::TimeDelta;
use http::StatusCode;
use model::decide::{self, NewToken, Once};
use model::limits::TOKEN_LIFE;
use model::{Projects, Scopes, Token, TokenId, User, UserId};
use warp::reply::Response;
use wire::{CreateToken, CreatedToken, Page, RegenerateToken};

use super::projects;
use crate::body;
use crate::convert;
use crate::failure::Failure;
use crate::idempotency::Attempt;
use crate::page::Window;
use crate::reply;
use crate::request::Request;
use crate::visible::Visible;

/// The tokens of a user, of `all`, or else of the caller.
pub(crate) fn list(
    user: &Visible,
    owner: Option<&str>,
    window: &Window,
) -> Result<Page<wire::Token>, Failure> {
    let now = user.steady();
    let owner = match owner {
        Some("all") => None,
        Some(named) => Some(owner_named(user, named)?),
        None => Some(user.own_user()?),
    };
    Ok(user.managed_tokens(|seen, tokens| {
        window.cut(
            tokens.filter(|token| owner.is_none_or(|owner| token.owner == owner)),
            |token| format!("{:020}-{}", token.created_at.timestamp_micros(), token.id),
            |token| convert::token(seen, token, now),
        )
    }))
}

fn owner_named(user: &Visible, named: &str) -> Result<UserId, Failure> {
    let is_own = |own: &User| (own.name.as_str() == named).then_some(own.id);
    let own = user.own(|_, own| is_own(own)).flatten();
    let found = own.or_else(|| user.read(|seen| Some(seen.user(named)?.id)));
    found.ok_or_else(|| Failure::not_found("user", named))
}

pub(super) async fn create(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    body::is_json(&request.headers)?;
    let attempt = Attempt::of(&mut request).await?;
    let created = make(user, body::parse(&attempt.body)?, &attempt).await?;
    Ok(reply::json(StatusCode::CREATED, &created))
}

/// Makes a token. The token may not have more rights than the token of the caller, and ends no later. A repeat with the same `Idempotency-Key` is
/// refused, because the secret is shown once.
pub(crate) async fn make(
    user: &Visible,
    asked: CreateToken,
    attempt: &Attempt,
) -> Result<CreatedToken, Failure> {
    let key = attempt.key(user, "create token")?;
    let scopes = Scopes::parse(asked.scopes.iter().map(String::as_str));
    let scopes = scopes.map_err(|error| Failure::invalid("scopes", error.to_string()))?;
    let owner = match &asked.user {
        Some(named) => owner_named(user, named)?,
        None => user.own_user()?,
    };
    let projects = match asked.projects {
        // By default the projects of the caller's token.
        None => user.own_projects()?,
        Some(names) => Projects::Only(user.read(|seen| projects::named(seen, &names))?),
    };
    let life = match (life(asked.expires_in_seconds)?, asked.never_expires) {
        (Some(_), true) => {
            let problem = "cannot be combined with `expires_in_seconds`";
            return Err(Failure::invalid("never_expires", problem));
        }
        (None, true) => None,
        (life, false) => Some(life.unwrap_or(TOKEN_LIFE)),
    };
    let create = |by, granted_by, latest_end| {
        let command = decide::CreateToken {
            name: asked.name,
            scopes,
            projects,
            owner,
            by,
            life,
            granted_by,
            ends_by: latest_end,
        };
        Once { command, key }
    };
    let created = user.create_token(create);
    Ok(with_secret(user, &created.await?))
}

pub(super) async fn regenerate(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    body::is_json(&request.headers)?;
    let attempt = Attempt::of(&mut request).await?;
    let asked = body::parse(&attempt.body)?;
    let created = renew(user, request.parameter(0), &asked, &attempt).await?;
    Ok(reply::ok(&created))
}

/// Gives a token a new secret. The old secret stays valid for `overlap_seconds`. A repeat with the same `Idempotency-Key` is
/// refused, because it would end the overlap.
pub(crate) async fn renew(
    user: &Visible,
    named: &str,
    asked: &RegenerateToken,
    attempt: &Attempt,
) -> Result<CreatedToken, Failure> {
    user.check_recent()?;
    let token = user.managed_tokens(|_, tokens| find(tokens, named))?;
    let key = attempt.key(user, &format!("regenerate token\0{token}"))?;
    let overlap = seconds(asked.overlap_seconds)
        .ok_or_else(|| Failure::invalid("overlap_seconds", "is too large"))?;
    let life = life(asked.expires_in_seconds)?;
    let regenerate = |by, ends_by| {
        let command = decide::RegenerateToken {
            token,
            overlap,
            life,
            by,
            ends_by,
        };
        Once { command, key }
    };
    let made = user.end_secret(token, regenerate);
    Ok(with_secret(user, &made.await?))
}

pub(crate) async fn revoke(user: &Visible, named: &str) -> Result<(), Failure> {
    let token = user.managed_tokens(|_, tokens| find(tokens, named))?;
    user.revoke_token(token).await
}

pub(super) async fn change_owner(
    user: &Visible,
    mut request: Request,
) -> Result<Response, Failure> {
    let asked: wire::MoveToken = request.body.json(&request.headers).await?;
    Ok(reply::ok(
        &give(user, request.parameter(0), &asked.user).await?,
    ))
}

/// Gives a token to another user.
pub(crate) async fn give(user: &Visible, named: &str, to: &str) -> Result<wire::Token, Failure> {
    let token = user.managed_tokens(|_, tokens| find(tokens, named))?;
    let to = owner_named(user, to)?;
    let moved = user.move_token(token, to).await?;
    let now = user.steady();
    Ok(user.read(|seen| convert::token(seen, &moved, now)))
}

/// Finds a token by its id, or by a unique name.
fn find(tokens: &mut dyn Iterator<Item = &Arc<Token>>, text: &str) -> Result<TokenId, Failure> {
    let tokens: Vec<&Arc<Token>> = tokens.collect();
    if let Ok(id) = text.parse::<TokenId>()
        && tokens.iter().any(|token| token.id == id)
    {
        return Ok(id);
    }
    let mut named = tokens.into_iter().filter(|token| token.name == text);
    match (named.next(), named.next()) {
        (Some(only), None) => Ok(only.id),
        (Some(_), Some(_)) => Err(Failure::new(
            wire::ErrorCode::AmbiguousName,
            format!(
                "several tokens are named `{}`",
                crate::failure::shorten(text)
            ),
        )
        .hint("name it by its id, which `everscan token list` shows")),
        (None, _) => Err(Failure::not_found("token", text)
            .hint("`everscan token list` shows the tokens that you can manage")),
    }
}

fn seconds(seconds: u64) -> Option<TimeDelta> {
    i64::try_from(seconds).ok().and_then(TimeDelta::try_seconds)
}

fn life(asked: Option<u64>) -> Result<Option<TimeDelta>, Failure> {
    asked
        .map(|asked| {
            seconds(asked)
                .filter(|life| !life.is_zero())
                .ok_or_else(|| Failure::invalid("expires_in_seconds", "must be at least 1 second"))
        })
        .transpose()
}

fn with_secret(user: &Visible, made: &NewToken) -> CreatedToken {
    let now = user.steady();
    CreatedToken {
        token: user.read(|seen| convert::token(seen, &made.token, now)),
        secret: made.secret.reveal().to_owned(),
    }
}
