//! `/v0/sessions`

use http::StatusCode;
use http::header::{HeaderName, SET_COOKIE};
use model::{SessionId, World};
use warp::reply::Response;
use wire::{CreateSignInLink, SignInLink};

use super::sign_in::sign_in_path;
use crate::failure::Failure;
use crate::reply;
use crate::request::Request;
use crate::session;
use crate::visible::Visible;

pub(super) async fn create_link(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let CreateSignInLink {} = request.body.json_or_default(&request.headers).await?;
    let made = user.make_sign_in_link().await?;
    let body = SignInLink {
        url_path: sign_in_path(&made.secret),
        expires_at: made.expires_at,
    };
    Ok(reply::json(StatusCode::CREATED, &body))
}

/// The sessions that the caller may end, the newest first.
pub(crate) fn list(user: &Visible) -> Vec<wire::Session> {
    let current = user.principal().session();
    user.sessions(|world, session| shown(world, session, current == Some(session.id)))
}

pub(super) async fn end(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let mut response = reply::empty();
    if end_named(user, request.parameter(0)).await? {
        forget(&mut response, request);
    }
    Ok(response)
}

/// Signs a browser out. True if it is the caller's.
pub(crate) async fn end_named(user: &Visible, id: &str) -> Result<bool, Failure> {
    let not_found = |_| Failure::not_found("session", id);
    let id: SessionId = id.parse().map_err(not_found)?;
    user.sign_out(id).await?;
    Ok(user.principal().session() == Some(id))
}

/// Signs out everywhere. Also revokes the tokens if the request says so.
pub(super) async fn end_all(user: &Visible, request: &Request) -> Result<Response, Failure> {
    user.sign_out_everywhere(request.query.flag("tokens")?)
        .await?;
    let mut response = reply::empty();
    forget(&mut response, request);
    Ok(response)
}

pub(crate) fn forget(response: &mut Response, request: &Request) {
    let cookie = session::unset(&request.headers, &request.arrival);
    reply::set(response, SET_COOKIE, &cookie);
    // The pages in the browser's cache show what the signed-out user could see.
    reply::set(
        response,
        HeaderName::from_static("clear-site-data"),
        "\"cache\"",
    );
}

pub(super) fn shown(
    world: &World,
    session: &model::BrowserSession,
    current: bool,
) -> wire::Session {
    let token = session.with.and_then(|with| world.token(with.token));
    wire::Session {
        id: session.id.uuid(),
        device: session.device.clone(),
        token: token.map(|token| token.name.clone()),
        address: session.address,
        created_at: session.created_at,
        seen_at: session.seen_at,
        expires_at: session.expires_at(),
        current,
    }
}
