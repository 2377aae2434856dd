//! The ways of signing in: with a token, a password, a link, or the code of a device. Each makes a new session, whatever cookie
//! the browser had before.

use std::sync::Arc;

use http::StatusCode;
use http::header::{SET_COOKIE, USER_AGENT};
use identity::{Guess, KnownBrowser, Password, PasswordHash, Refused};
use model::decide::{SignIn, SignOut, SignedIn, SignedInBy, UseUserLink};
use model::limits::SESSION_DEVICE_CHARS;
use model::{PlainToken, SessionId, TokenHash, TokenKind, User, UserId, UserName, World};
use reconciler::{DEVICE_LOGIN, Handle, NewDeviceLogin, TooManyDevices, WaitingDevice};
use state::{AuditActor, AuditEntry};
use tokio::time::Instant;
use uuid::Uuid;
use warp::reply::Response;
use wire::{
    ChangePassword, CreateDeviceLogin, CreateSession, CreatedSession, DeviceLogin, ErrorCode,
};

use super::sessions::shown;
use crate::access::{self, SIGN_IN_LINKS, note_refused, note_refused_user, of_secret, signed_in};
use crate::failure::{Failure, no_such_user_link, unauthorized};
use crate::limits::{DEVICE_REST, DEVICE_WAIT};
use crate::reply;
use crate::request::Request;
use crate::service::Service;
use crate::session;
use crate::visible::Visible;

/// The path of the page that sets a password with a link, without the secret that follows.
pub(crate) const USER_LINKS: &str = "/welcome/";

/// A new session, and what its browser keeps.
pub(crate) struct NewSession {
    signed_in: SignedIn,
    /// The value of the cookie that says that its user has signed in from this browser.
    known_browser: Option<String>,
}

impl NewSession {
    /// Gives the browser its cookies.
    pub(crate) fn remember(&self, response: &mut Response, request: &Request) {
        let (headers, arrival) = (&request.headers, &request.arrival);
        let cookie = session::set(headers, arrival, &self.signed_in.cookie);
        reply::add(response, SET_COOKIE, &cookie);
        if let Some(value) = &self.known_browser {
            let cookie = session::set_known_browser(headers, arrival, value);
            reply::add(response, SET_COOKIE, &cookie);
        }
    }
}

/// `POST /v0/sessions`
pub(crate) async fn create(service: &Service, mut request: Request) -> Result<Response, Failure> {
    let asked: CreateSession = request.body.json(&request.headers).await?;
    let made = match asked {
        CreateSession::Token { token } => with_token(service, &request, &token).await?,
        CreateSession::Password { user, password } => {
            with_password(service, &request, &user, password).await?
        }
        CreateSession::Link { link, password } => {
            with_user_link(service, &request, &link, password).await?
        }
        CreateSession::Device { device_code } => {
            let made = with_device_code(&service.handle, &request, &device_code).await?;
            let secret = made.cookie.secret.reveal().to_owned();
            return Ok(created(&service.handle, &made, Some(secret)));
        }
    };
    let mut response = created(&service.handle, &made.signed_in, None);
    made.remember(&mut response, &request);
    Ok(response)
}

fn created(handle: &Handle, made: &SignedIn, secret: Option<String>) -> Response {
    let session = handle
        .state()
        .read(|world| shown(world, &made.session, true));
    let body = CreatedSession { session, secret };
    reply::json(StatusCode::CREATED, &body)
}

/// Checks that a browser may sign in over this connection.
fn check_connection(request: &Request) -> Result<(), Failure> {
    let arrival = request.arrival.clone();
    if !arrival.peer.is_https && !arrival.peer.is_local {
        return Err(Failure::new(
            ErrorCode::Forbidden,
            "sessions need https, except on the daemon's own machine",
        )
        .hint("behind a proxy with TLS, start the daemon with `--trust-proxy` and the proxy's address; in a container, start it with `--local-from` and the address of the bridge"));
    }
    // A page of another site must not sign its visitors in as somebody else.
    if request.headers.contains_key("sec-fetch-site") || request.headers.contains_key("origin") {
        session::check_origin(&arrival.method, &request.headers, arrival.peer)?;
    }
    Ok(())
}

/// Makes a session that may do what a token may.
pub(crate) async fn with_token(
    service: &Service,
    request: &Request,
    token: &str,
) -> Result<NewSession, Failure> {
    check_connection(request)?;
    let found = of_secret(&service.handle, token).ok();
    let used = found.and_then(|(principal, _)| principal.used());
    begin(&service.handle, request, used.map(SignedInBy::token)).await
}

/// The same with a link for browsers, which is consumed.
pub(crate) async fn with_link(
    service: &Service,
    request: &Request,
    link: &str,
) -> Result<NewSession, Failure> {
    check_connection(request)?;
    let handle = &service.handle;
    let by = hash_of_link(link).and_then(|link| handle.sign_ins().take_link(&link));
    begin(handle, request, by).await
}

/// Who a link for browsers signs in. The link is not consumed.
pub(crate) fn actor_of_link(handle: &Handle, link: &str) -> Option<AuditActor> {
    actor_of(handle, &handle.sign_ins().link(&hash_of_link(link)?)?)
}

fn hash_of_link(link: &str) -> Option<TokenHash> {
    let secret = PlainToken::parse(TokenKind::SignInLink, link).ok()?;
    Some(secret.hash())
}

/// The path of the page where a browser follows a link.
pub fn sign_in_path(secret: &PlainToken) -> String {
    format!("{SIGN_IN_LINKS}{}", secret.reveal())
}

/// The path of the page where a person sets a password.
pub fn user_link_path(secret: &PlainToken) -> String {
    format!("{USER_LINKS}{}", secret.reveal())
}

/// Makes a session of the whole person. Unknown names and wrong passwords get the same answer, after the same time.
pub(crate) async fn with_password(
    service: &Service,
    request: &Request,
    name: &str,
    password: String,
) -> Result<NewSession, Failure> {
    check_connection(request)?;
    let (handle, arrival) = (&service.handle, &request.arrival);
    let parsed = name.parse::<UserName>().ok();
    let known = parsed.and_then(|name| {
        let found = |world: &World| world.user_named(&name).cloned();
        handle.state().read(found)
    });
    let user = known.clone().filter(|user| user.is_active());
    let hash = user.as_deref().and_then(hash_of);
    let guess = Guess {
        name,
        hash: hash.as_ref(),
        password,
        network: arrival.peer.network(),
        browser: session::known_browser(&request.headers, arrival),
    };
    let checked = service
        .passwords
        .check(guess, Instant::now().into_std())
        .await;
    let (user, hash, browser) = match (user, hash, checked) {
        (Some(user), Some(hash), Ok(browser)) => (user, hash, browser),
        (_, _, checked) => {
            note_refused_user(handle, arrival, known.map(|user| user.name.clone()));
            return Err(refused(checked.err().unwrap_or(Refused::Wrong)));
        }
    };
    let browser = browser.unwrap_or_else(|| KnownBrowser::new(Uuid::new_v4()));
    let made = begin(handle, request, Some(person(&user))).await?;
    Ok(NewSession {
        known_browser: Some(browser.cookie(&hash)),
        ..made
    })
}

fn hash_of(user: &User) -> Option<PasswordHash> {
    let hash = user.password()?;
    Some(PasswordHash::stored(hash.as_str().to_owned()))
}

fn person(user: &User) -> SignedInBy {
    SignedInBy::Person {
        user: user.id,
        epoch: user.epoch,
        signed_in_at: None,
    }
}

fn refused(refused: Refused) -> Failure {
    let text = refused.to_string();
    match refused {
        Refused::Wrong => Failure::new(ErrorCode::Unauthorized, text).hint(
            "an administrator can make a link for a new password; on the daemon's machine, `everscand user reset` does",
        ),
        Refused::Delayed(wait) | Refused::NoPlace(wait) => Failure::rate_limited(&text, wait),
    }
}

/// The user of an invitation or reset. The link is not consumed.
pub(crate) fn user_of_link(handle: &Handle, link: &str) -> Option<Arc<User>> {
    let secret = PlainToken::parse(TokenKind::UserLink, link).ok()?.hash();
    handle
        .state()
        .read(|world| world.user_of_link(&secret, handle.time(world)).cloned())
}

/// Sets the password of an invited or locked out person, and signs them in. The link is consumed.
pub(crate) async fn with_user_link(
    service: &Service,
    request: &Request,
    link: &str,
    password: String,
) -> Result<NewSession, Failure> {
    check_connection(request)?;
    let handle = &service.handle;
    let found = user_of_link(handle, link).and_then(|user| {
        let link = user.link.as_ref()?.hash;
        Some((user, link))
    });
    let Some((user, link)) = found else {
        note_refused(handle, &request.arrival);
        return Err(no_such_user_link());
    };
    let hash = hashed(service, &user, password).await?;
    let used = UseUserLink {
        link,
        password: model::PasswordHash::new(hash.as_str().to_owned()),
    };
    let audited = handle.audited(entry(actor_of_person(&user), request));
    let user = audited.state().submit(used).await?;
    with_new_password(service, request, &user, &hash).await
}

async fn with_new_password(
    service: &Service,
    request: &Request,
    user: &User,
    hash: &PasswordHash,
) -> Result<NewSession, Failure> {
    let made = begin(&service.handle, request, Some(person(user))).await?;
    let browser = KnownBrowser::new(Uuid::new_v4());
    Ok(NewSession {
        known_browser: Some(browser.cookie(hash)),
        ..made
    })
}

/// The hash of a new password.
pub(crate) async fn hashed(
    service: &Service,
    user: &User,
    password: String,
) -> Result<PasswordHash, Failure> {
    let password = Password::parse(password)
        .map_err(|problem| Failure::invalid("password", problem.to_string()))?;
    let salt = service.handle.sign_ins().random();
    let hash = service.passwords.hash(user.name.as_str(), password, salt);
    hash.await.map_err(refused)
}

/// `PUT /v0/me/password`
pub(super) async fn change_password(
    service: &Service,
    user: &Visible,
    mut request: Request,
) -> Result<Response, Failure> {
    let ChangePassword { password } = request.body.json(&request.headers).await?;
    let made = set_password(service, user, &request, password).await?;
    let mut response = reply::empty();
    if let Some(made) = made {
        made.remember(&mut response, &request);
    }
    Ok(response)
}

/// Sets the caller's password, and signs the browser in again, because all sessions end with the former password. A device gets
/// no session: it has no cookies, and begins again with a code.
pub(crate) async fn set_password(
    service: &Service,
    user: &Visible,
    request: &Request,
    password: String,
) -> Result<Option<NewSession>, Failure> {
    let person = user.person()?;
    user.check_recent()?;
    let hash = hashed(service, &person, password).await?;
    let password = model::PasswordHash::new(hash.as_str().to_owned());
    let person = user.set_password(password).await?;
    if session::cookie(&request.headers, &request.arrival).is_none() {
        return Ok(None);
    }
    with_new_password(service, request, &person, &hash)
        .await
        .map(Some)
}

/// Lets a device wait for a person.
pub(crate) async fn begin_device(
    handle: &Handle,
    mut request: Request,
) -> Result<Response, Failure> {
    let CreateDeviceLogin { device } = request.body.json(&request.headers).await?;
    let is_text = !device.contains(char::is_control);
    // A name that joins, hides or reverses text could forge the page that confirms the device.
    let device = device.replace(model::decide::is_invisible, "");
    let device = device.trim();
    if !is_text || device.is_empty() || device.chars().count() > SESSION_DEVICE_CHARS {
        let problem = format!("must have 1 to {SESSION_DEVICE_CHARS} printable characters");
        return Err(Failure::invalid("device", problem));
    }
    let waiting = WaitingDevice {
        device: device.to_owned(),
        address: request.arrival.peer.address,
    };
    let begun = handle
        .sign_ins()
        .begin_device(waiting, request.arrival.peer.network());
    let NewDeviceLogin {
        device_code,
        user_code,
    } = begun.map_err(|TooManyDevices| {
        Failure::rate_limited("too many devices wait to be signed in", DEVICE_REST)
    })?;
    let body = DeviceLogin {
        device_code: device_code.reveal().to_owned(),
        url_path: format!("/device?code={user_code}"),
        user_code,
        expires_in_seconds: DEVICE_LOGIN.num_seconds().unsigned_abs(),
    };
    Ok(reply::json(StatusCode::CREATED, &body))
}

/// Waits until a person has confirmed the device, and signs it in as that person.
async fn with_device_code(
    handle: &Handle,
    request: &Request,
    code: &str,
) -> Result<SignedIn, Failure> {
    let code = PlainToken::parse_browser(code).map(|code| code.hash()).ok();
    let waiting = code.and_then(|code| Some((code, handle.sign_ins().follow_device(&code)?)));
    let Some((code, mut confirmed)) = waiting else {
        note_refused(handle, &request.arrival);
        return Err(no_such_code());
    };
    let is_over = tokio::select! {
        found = confirmed.wait_for(Option::is_some) => found.is_err(),
        () = tokio::time::sleep(DEVICE_WAIT) => return Err(pending()),
        () = handle.stopping() => return Err(pending()),
    };
    let taken = handle.sign_ins().take_device(&code);
    let (session, device) = taken.filter(|_| !is_over).ok_or_else(no_such_code)?;
    let by = handle.state().read(|world| {
        let session = world.session(session)?;
        world
            .is_signed_in(session, handle.time(world))
            .then(|| SignedInBy::of_session(session))
    });
    let by = by.ok_or_else(no_such_code)?;
    let sign_in = SignIn {
        by,
        is_device: true,
        device,
        address: request.arrival.peer.address,
    };
    let actor = actor_of(handle, &by).ok_or_else(no_such_code)?;
    let audited = handle.audited(entry(actor, request));
    Ok(audited.state().submit(sign_in).await?)
}

fn pending() -> Failure {
    Failure::new(
        ErrorCode::LoginPending,
        "nobody has confirmed the device yet",
    )
    .hint("send the request again until the code ends")
}

fn no_such_code() -> Failure {
    Failure::new(ErrorCode::NotFound, "this code was used or has expired")
        .hint("`everscan login` begins again")
}

/// Signs a browser in, unless what it presented is invalid.
async fn begin(
    handle: &Handle,
    request: &Request,
    by: Option<SignedInBy>,
) -> Result<NewSession, Failure> {
    let Some((by, actor)) = by.and_then(|by| Some((by, actor_of(handle, &by)?))) else {
        note_refused(handle, &request.arrival);
        return Err(unauthorized());
    };
    if let SignedInBy::Token { used, .. } = by
        && let Some(token) = handle
            .state()
            .read(|world| world.token(used.token).cloned())
    {
        handle.sign_ins().note_use(&token);
    }
    let former = signed_in(handle, &request.headers, &request.arrival);
    let sign_in = SignIn {
        by,
        is_device: false,
        device: request.header(USER_AGENT).unwrap_or("unknown").to_owned(),
        address: request.arrival.peer.address,
    };
    let audited = handle.audited(entry(actor, request));
    let signed_in = audited.state().submit(sign_in).await?;
    let former = former.and_then(|(principal, _)| principal.user().zip(principal.session()));
    if let Some((user, session)) = former {
        end(&audited, user, session).await;
    }
    Ok(NewSession {
        signed_in,
        known_browser: None,
    })
}

/// Ends the session that the browser had before. Nobody could see that it still exists.
async fn end(handle: &Handle, user: UserId, session: SessionId) {
    if let Err(error) = handle.state().submit(SignOut { user, session }).await {
        tracing::debug!(%error, "a replaced session remains until it expires");
    }
}

/// Who signs in, for the audit log. None if this does not sign in any more.
fn actor_of(handle: &Handle, by: &SignedInBy) -> Option<AuditActor> {
    handle.state().read(|world| {
        let user = by.user(world, handle.time(world)).ok()?;
        match by {
            SignedInBy::Token { used, .. } => Some(AuditActor {
                token: Some(used.token),
                name: world.token(used.token)?.name.clone(),
                ..actor_of_person(user)
            }),
            SignedInBy::Person { .. } => Some(actor_of_person(user)),
        }
    })
}

fn actor_of_person(user: &User) -> AuditActor {
    AuditActor {
        user: Some(user.name.to_string()),
        token: None,
        name: user.name.to_string(),
        session: None,
        job: None,
        runner: None,
    }
}

fn entry(actor: AuditActor, request: &Request) -> AuditEntry {
    AuditEntry {
        actor: Some(actor),
        ..access::entry(&request.arrival, "")
    }
}
