//! Signing in and out, and the sessions of the reader.

use http::StatusCode;
use model::decide::InitialToken;
use ui::form::Refused;
use ui::links;
use ui::pages::{self, Login, SignInLink};
use ui::shell::problem_page;
use warp::reply::Response;
use wire::ErrorCode;

use super::frame::{Frame, visit};
use super::html::{html, see_other};
use super::typed::Typed;
use crate::access::signed_in;
use crate::failure::{Failure, unauthorized};
use crate::handlers::sign_in::NewSession;
use crate::handlers::{sessions, sign_in};
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
    if let Some(name) = sign_in::name_of_link(&service.handle, link) {
        let page = SignInLink { token: &name, link };
        let page = pages::sign_in_link(&visit(None, service.handle.now()), &page);
        return html(&request.arrival.base, StatusCode::OK, page.into_string());
    }
    let failure = match service.slow_down(request.arrival.peer, unauthorized()) {
        failure if failure.code == ErrorCode::Unauthorized => no_such_link(),
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
    again(service, request, "", failure)
}

fn form(service: &Service, next: &str, refused: &Refused) -> String {
    let page = Login {
        next: links::local(next).unwrap_or(""),
        passwords: false,
        first_token: is_new(service).then_some(FIRST_TOKEN),
        refused,
    };
    pages::login(&visit(None, service.handle.now()), &page).into_string()
}

/// Whether the daemon still has its first token and no browser is signed in.
fn is_new(service: &Service) -> bool {
    let state = service.handle.state();
    state.read(|world| {
        let has_first = world.tokens().any(|it| it.name == InitialToken::NAME);
        has_first && world.sessions().next().is_none()
    })
}

/// Shows the form again with the problem. It does not repeat the token.
fn again(service: &Service, request: &Request, next: &str, failure: Failure) -> Response {
    let status = match failure.status() {
        StatusCode::BAD_REQUEST => StatusCode::UNPROCESSABLE_ENTITY,
        status => status,
    };
    let (problem, headers) = failure.problem(&request.arrival.id.to_string());
    let refused = Refused {
        problem: Some(problem),
        ..Refused::default()
    };
    let mut response = html(&request.arrival.base, status, form(service, next, &refused));
    for (name, value) in headers {
        reply::set(&mut response, name, &value);
    }
    response
}

fn no_such_link() -> Failure {
    Failure::new(
        ErrorCode::NotFound,
        "This link was used or has expired. A restart of the daemon also ends a link.",
    )
    .hint("`everscan session link` makes a new link.")
}

/// Signs a browser in, with a token or a link. A refusal is shown in the form.
pub(crate) async fn login(service: &Service, mut request: Request) -> Result<Response, Failure> {
    let typed = Typed::read(&mut request).await?;
    let next = typed.text("next");
    let failure = match begin(service, &request, &typed).await {
        Ok(made) => {
            let mut response = see_other(next);
            made.remember(&mut response, &request);
            return Ok(response);
        }
        Err(failure) => service.slow_down(request.arrival.peer, failure),
    };
    let failure = match failure.code {
        ErrorCode::Unauthorized if typed.get("link").is_some() => no_such_link(),
        ErrorCode::Unauthorized => Failure::invalid(
            "token",
            "This token is not valid, has expired or was revoked.",
        ),
        _ => failure,
    };
    match failure.status().is_client_error() {
        true => Ok(again(service, &request, next, failure)),
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
    match typed.get("link") {
        Some(link) => sign_in::with_link(service, request, link).await,
        // Copied tokens often end with a line break.
        None => sign_in::with_token(service, request, typed.text("token").trim()).await,
    }
}

pub(super) async fn logout(frame: &Frame<'_>) -> Result<Response, Failure> {
    if let Some(session) = frame.user.principal().session() {
        frame.user.sign_out(session).await?;
    }
    Ok(forgotten(frame))
}

/// The answer to a sign-out: it removes the cookie and the browser's cache.
fn forgotten(frame: &Frame<'_>) -> Response {
    let mut response = see_other(links::LOGIN);
    sessions::forget(&mut response, frame.request);
    response
}

pub(super) fn settings(frame: &Frame<'_>) -> Response {
    frame.page(pages::settings(&frame.visit, &sessions::list(frame.user)))
}

pub(super) async fn end_session(frame: &Frame<'_>) -> Result<Response, Failure> {
    let is_own = sessions::end_named(frame.user, frame.parameter(0)).await?;
    Ok(match is_own {
        true => forgotten(frame),
        false => see_other(links::SETTINGS),
    })
}

pub(super) async fn end_sessions(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let tokens = typed.text("tokens") == "true";
    frame.user.sign_out_everywhere(tokens).await?;
    Ok(forgotten(frame))
}
