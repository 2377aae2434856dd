//! Signing in and out, with a password, a token or a link. A link may also set a password.

use http::StatusCode;
use model::UserState;
use model::decide::InitialToken;
use ui::form::Refused;
use ui::links;
use ui::pages::{self, Login, SignInLink, Welcome};
use ui::shell::problem_page;
use warp::reply::Response;
use wire::ErrorCode;

use super::frame::{Frame, visit};
use super::html::{html, see_other};
use super::typed::Typed;
use crate::access::signed_in;
use crate::failure::{Failure, no_such_user_link, unauthorized};
use crate::handlers::sessions;
use crate::handlers::sign_in::{self, NewSession};
use crate::reply;
use crate::request::Request;
use crate::service::Service;
use crate::session;

/// The file of the first token. Before the sign-in, a page must not show paths of the machine.
const FIRST_TOKEN: &str = "<state folder>/initial-admin-token";

pub(crate) fn login_page(service: &Service, request: &Request) -> Response {
    let next = request.query.get("next").unwrap_or("");
    let page = form(service, next, &Refused::default());
    html(&request.arrival.base, StatusCode::OK, page)
}

/// The page of a sign-in link. Showing the page does not consume the link, because programs fetch it for previews.
pub(crate) fn link_page(service: &Service, request: &Request) -> Response {
    let link = request.parameter(0);
    let Some(actor) = sign_in::actor_of_link(&service.handle, link) else {
        return link_is_over(service, request, no_such_link());
    };
    let page = pages::sign_in_link(
        &visit(None, service.handle.now()),
        &SignInLink {
            user: actor.user.as_deref().unwrap_or_default(),
            token: actor.token.map(|_| actor.name.as_str()),
            link,
        },
    );
    html(&request.arrival.base, StatusCode::OK, page.into_string())
}

/// The page of an invitation, or of a link that resets a password.
pub(crate) fn welcome_page(service: &Service, request: &Request) -> Response {
    let link = request.parameter(0);
    match welcome(service, link, &Refused::default()) {
        Some(page) => html(&request.arrival.base, StatusCode::OK, page),
        None => link_is_over(service, request, no_such_user_link()),
    }
}

fn welcome(service: &Service, link: &str, refused: &Refused) -> Option<String> {
    let user = sign_in::user_of_link(&service.handle, link)?;
    let page = Welcome {
        user: user.name.as_str(),
        link,
        is_invitation: user.state == UserState::Invited || user.password().is_none(),
        refused,
    };
    Some(pages::welcome(&visit(None, service.handle.now()), &page).into_string())
}

fn link_is_over(service: &Service, request: &Request, over: Failure) -> Response {
    let failure = match service.slow_down(request.arrival.peer, unauthorized()) {
        failure if failure.code == ErrorCode::Unauthorized => over,
        failure => failure,
    };
    let (headers, arrival) = (&request.headers, &request.arrival);
    if let Some(reader) = signed_in(&service.handle, headers, arrival) {
        let visit = visit(Some(&reader), service.handle.now());
        let status = failure.status();
        let (problem, _) = failure.problem(&arrival.id.to_string());
        let page = problem_page(&visit, &problem, None, None);
        return html(&arrival.base, status, page.into_string());
    }
    again(service, request, &Typed::default(), failure)
}

fn form(service: &Service, next: &str, refused: &Refused) -> String {
    let state = service.handle.state();
    let page = Login {
        next: links::local(next).unwrap_or(""),
        passwords: state.read(|world| world.users().any(|user| user.password().is_some())),
        first_token: is_new(service).then_some(FIRST_TOKEN),
        refused,
    };
    pages::login(&visit(None, service.handle.now()), &page).into_string()
}

/// Whether the daemon still has its first token and no browser is signed in.
fn is_new(service: &Service) -> bool {
    let state = service.handle.state();
    state.read(|world| {
        let has_session = world.sessions().next().is_some();
        !has_session && world.tokens().any(|it| it.name == InitialToken::NAME)
    })
}

/// Shows the form again with the problem. It repeats no secret except the link of the page.
fn again(service: &Service, request: &Request, typed: &Typed, failure: Failure) -> Response {
    let status = match failure.status() {
        StatusCode::BAD_REQUEST => StatusCode::UNPROCESSABLE_ENTITY,
        status => status,
    };
    let (problem, headers) = failure.problem(&request.arrival.id.to_string());
    let user = typed
        .get("user")
        .map(|user| ("user".to_owned(), user.to_owned()));
    let refused = Refused {
        typed: user.into_iter().collect(),
        problem: Some(problem),
    };
    let page = user_link(typed).and_then(|link| welcome(service, link, &refused));
    let page = page.unwrap_or_else(|| form(service, typed.text("next"), &refused));
    let mut response = html(&request.arrival.base, status, page);
    for (name, value) in headers {
        reply::set(&mut response, name, &value);
    }
    response
}

/// The link of the form, if it sets a password.
fn user_link(typed: &Typed) -> Option<&str> {
    typed
        .get("link")
        .filter(|_| typed.get("password").is_some())
}

fn no_such_link() -> Failure {
    Failure::new(
        ErrorCode::NotFound,
        "This link was used or has expired. A restart of the daemon also ends a link.",
    )
    .hint("`everscan session link` makes a new link.")
}

/// Signs a browser in. A refusal is shown in the form.
pub(crate) async fn login(service: &Service, mut request: Request) -> Result<Response, Failure> {
    let typed = Typed::read(&mut request).await?;
    let failure = match begin(service, &request, &typed).await {
        Ok(made) => {
            let mut response = see_other(typed.text("next"));
            made.remember(&mut response, &request);
            return Ok(response);
        }
        Err(failure) => service.slow_down(request.arrival.peer, failure),
    };
    let failure = match failure.code {
        ErrorCode::Unauthorized if typed.get("link").is_some() => no_such_link(),
        ErrorCode::Unauthorized if typed.get("user").is_some() => failure,
        ErrorCode::Unauthorized => Failure::invalid(
            "token",
            "This token is not valid, has expired or was revoked.",
        ),
        _ => failure,
    };
    match failure.status().is_client_error() {
        true => Ok(again(service, &request, &typed, failure)),
        false => Err(failure),
    }
}

/// Pages of other sites must not sign their visitors in, so browsers must send the origin of the form.
async fn begin(service: &Service, request: &Request, typed: &Typed) -> Result<NewSession, Failure> {
    let arrival = &request.arrival;
    let from_here = session::check_origin(&arrival.method, &request.headers, arrival.peer);
    from_here.map_err(|_| {
        Failure::new(
            ErrorCode::Forbidden,
            "This form counts only if it is sent from a page of this daemon.",
        )
    })?;
    match (typed.get("link"), typed.get("user")) {
        (Some(link), _) if user_link(typed).is_some() => {
            let password = new_password(typed)?;
            sign_in::with_user_link(service, request, link, password).await
        }
        (Some(link), _) => sign_in::with_link(service, request, link).await,
        (None, Some(user)) => {
            let password = typed.text("password").to_owned();
            sign_in::with_password(service, request, user.trim(), password).await
        }
        // Copied tokens often end with a line break.
        (None, None) => sign_in::with_token(service, request, typed.text("token").trim()).await,
    }
}

/// A new password, which is typed twice.
pub(super) fn new_password(typed: &Typed) -> Result<String, Failure> {
    let password = typed.text("password");
    if password == typed.text("again") {
        return Ok(password.to_owned());
    }
    Err(Failure::invalid("again", "must be the same password"))
}

pub(super) async fn logout(frame: &Frame<'_>) -> Result<Response, Failure> {
    if let Some(session) = frame.user.principal().session() {
        frame.user.sign_out(session).await?;
    }
    Ok(forgotten(frame))
}

/// The answer to a sign-out: it removes the cookie and the browser's cache.
pub(super) fn forgotten(frame: &Frame<'_>) -> Response {
    let mut response = see_other(links::LOGIN);
    sessions::forget(&mut response, frame.request);
    response
}
