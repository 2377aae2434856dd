//! `/v0/tokens`

use chrono::TimeDelta;
use http::StatusCode;
use model::decide;
use model::{Scope, Scopes};
use reconciler::Handle;
use warp::reply::Response;
use wire::{CreateToken, CreatedToken};

use crate::convert;
use crate::failure::Failure;
use crate::page::Window;
use crate::reply;
use crate::request::Request;

/// The tokens without their secrets, oldest first.
pub(super) fn list(handle: &Handle, request: &Request) -> Result<Response, Failure> {
    let window = Window::of(&request.query)?;
    Ok(reply::ok(&handle.state().read(|world| {
        window.cut(
            world.tokens(),
            |token| format!("{:020}-{}", token.created_at.timestamp_micros(), token.id),
            |token| convert::token(token),
        )
    })))
}

/// Makes a token. It cannot have more scopes than the token of this request.
pub(super) async fn create(handle: &Handle, mut request: Request) -> Result<Response, Failure> {
    let asked: CreateToken = request.body.json(&request.headers).await?;
    let scopes: Result<Scopes, _> = asked
        .scopes
        .iter()
        .map(|name| name.parse::<Scope>())
        .collect();
    let scopes = scopes.map_err(|error| Failure::invalid("scopes", error.to_string()))?;
    let life = match asked.expires_in_seconds {
        None => None,
        Some(seconds) => {
            let life = i64::try_from(seconds)
                .ok()
                .filter(|seconds| *seconds > 0)
                .and_then(TimeDelta::try_seconds);
            Some(life.ok_or_else(|| {
                Failure::invalid(
                    "expires_in_seconds",
                    "must be a number of seconds in the future",
                )
            })?)
        }
    };
    let granted_by = request.caller.user()?.scopes.clone();
    let created = handle
        .create_token(decide::CreateToken {
            name: asked.name,
            scopes,
            life,
            granted_by,
        })
        .await?;
    let body = CreatedToken {
        token: convert::token(&created.token),
        secret: created.secret.reveal().to_owned(),
    };
    Ok(reply::json(StatusCode::CREATED, &body))
}
