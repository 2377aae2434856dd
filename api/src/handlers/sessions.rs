//! `/v0/sessions`

use http::StatusCode;
use http::header::{HeaderName, SET_COOKIE, USER_AGENT};
use model::decide::{SignIn, SignedIn, SignedInBy};
use model::{PlainToken, Principal, SessionCookie, SessionId, TokenHash, TokenKind, World};
use reconciler::Handle;
use warp::reply::Response;
use wire::{CreateSession, CreateSignInLink, ErrorCode, SignInLink};

use crate::access::{SIGN_IN_LINKS, audit_entry, note_refused, of_secret};
use crate::failure::{Failure, unauthorized};
use crate::reply;
use crate::request::Request;
use crate::session;
use crate::visible::Visible;

pub(crate) async fn create(handle: &Handle, mut request: Request) -> Result<Response, Failure> {
    check_sign_in(&request)?;
    let asked: CreateSession = request.body.json(&request.headers).await?;
    let CreateSession::Token { token } = asked else {
        return Err(Failure::invalid("token", "is required"));
    };
    let made = sign_in(handle, &request, &token).await?;
    let session = handle
        .state()
        .read(|world| shown(world, &made.session, true));
    let mut response = reply::json(StatusCode::CREATED, &session);
    remember(&mut response, &request, &made.cookie);
    Ok(response)
}

/// Checks that a browser may sign in over this connection.
fn check_sign_in(request: &Request) -> Result<(), Failure> {
    let arrival = request.arrival.clone();
    if !arrival.peer.is_https && !arrival.peer.is_local {
        return Err(Failure::new(
            ErrorCode::Forbidden,
            "sessions need https, except on the daemon's own machine",
        )
        .hint("behind a proxy with TLS, start the daemon with `--trust-proxy` and the proxy's address; in a container, start it with `--local-from` and the address of the bridge"));
    }
    // A page of another site must not sign its visitors in with its own token.
    if request.headers.contains_key("sec-fetch-site") || request.headers.contains_key("origin") {
        session::check_origin(&arrival.method, &request.headers, arrival.peer)?;
    }
    Ok(())
}

/// Makes a session for the browser that sent the request, with the secret of a token.
pub(crate) async fn sign_in(
    handle: &Handle,
    request: &Request,
    token: &str,
) -> Result<SignedIn, Failure> {
    check_sign_in(request)?;
    let found = of_secret(handle, token).ok();
    begin(handle, request, found.map(|(principal, _)| principal)).await
}

/// The same with a link, which is consumed.
pub(crate) async fn sign_in_by_link(
    handle: &Handle,
    request: &Request,
    link: &str,
) -> Result<SignedIn, Failure> {
    check_sign_in(request)?;
    let linked = hash_of_link(link).and_then(|link| handle.sign_ins().take_link(&link));
    let valid = linked.filter(|principal| handle.rights(principal).is_some());
    begin(handle, request, valid).await
}

/// The token of a sign-in link, if both are valid. The link is not consumed.
pub(crate) fn principal_of_link(handle: &Handle, link: &str) -> Option<Principal> {
    let linked = handle.sign_ins().link(&hash_of_link(link)?)?;
    handle.rights(&linked).is_some().then_some(linked)
}

fn hash_of_link(link: &str) -> Option<TokenHash> {
    let secret = PlainToken::parse(TokenKind::SignInLink, link).ok()?;
    Some(secret.hash())
}

async fn begin(
    handle: &Handle,
    request: &Request,
    principal: Option<Principal>,
) -> Result<SignedIn, Failure> {
    let arrival = &request.arrival;
    let found = principal.and_then(|principal| {
        let used = principal.used()?;
        let token = handle
            .state()
            .read(|world| world.token(used.token).cloned());
        Some((principal, used, token?))
    });
    let Some((principal, used, token)) = found else {
        note_refused(handle, arrival);
        return Err(unauthorized());
    };
    handle.sign_ins().note_use(&token);
    let device = request.header(USER_AGENT).unwrap_or("unknown").to_owned();
    let sign_in = SignIn {
        by: SignedInBy::Token(used),
        is_device: false,
        device,
        address: arrival.peer.address,
    };
    let handle = handle.audited(audit_entry(handle, &principal, arrival, ""));
    Ok(handle.state().submit(sign_in).await?)
}

pub fn sign_in_path(secret: &PlainToken) -> String {
    format!("{SIGN_IN_LINKS}{}", secret.reveal())
}

pub(super) async fn create_link(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let CreateSignInLink {} = request.body.json_or_default(&request.headers).await?;
    let made = user.make_sign_in_link().await?;
    let body = SignInLink {
        url_path: sign_in_path(&made.secret),
        expires_at: made.expires_at,
    };
    Ok(reply::json(StatusCode::CREATED, &body))
}

pub(crate) fn remember(response: &mut Response, request: &Request, cookie: &SessionCookie) {
    let cookie = session::set(&request.headers, &request.arrival, cookie);
    reply::set(response, SET_COOKIE, &cookie);
}

/// The browsers that are signed in with the same token, the newest first.
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

/// Signs all browsers out. Also revokes the tokens if the request says so.
pub(super) async fn end_all(user: &Visible, request: &Request) -> Result<Response, Failure> {
    if request.query.flag("tokens")? {
        user.end_tokens().await?;
    } else {
        user.sign_out_everywhere().await?;
    }
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

fn shown(world: &World, session: &model::BrowserSession, current: bool) -> wire::Session {
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
