//! Signing in and out, and the sessions of the reader.

use http::StatusCode;
use model::decide::InitialToken;
use ui::form::Refused;
use ui::links;
use ui::pages::{self, Login};
use warp::reply::Response;
use wire::ErrorCode;

use super::frame::{Frame, html, local, see_other, visit};
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::sessions;
use crate::request::Request;
use crate::service::Service;

/// Where the daemon puts its first token. Who reads the page before the sign-in learns no path of the machine.
const FIRST_TOKEN: &str = "<state folder>/initial-admin-token";

pub(crate) fn login_page(service: &Service, request: &Request) -> Response {
    let next = request.query.get("next").unwrap_or("");
    let page = form(service, next, &Refused::default());
    html(StatusCode::OK, page)
}

fn form(service: &Service, next: &str, refused: &Refused) -> String {
    let page = Login {
        next: local(next).unwrap_or(""),
        first_token: is_new(service).then_some(FIRST_TOKEN),
        refused,
    };
    pages::login(&visit(None, service.handle.now()), &page).into_string()
}

/// Whether the daemon still has its first token, and no browser is signed in.
fn is_new(service: &Service) -> bool {
    let state = service.handle.state();
    state.read(|world| {
        let has_first = world.tokens().any(|it| it.name == InitialToken::NAME);
        has_first && world.tokens().all(|it| it.sessions.is_empty())
    })
}

/// Signs a browser in. A token that is refused is answered by the form, without the token.
pub(crate) async fn login(service: &Service, mut request: Request) -> Result<Response, Failure> {
    let typed = Typed::read(&mut request).await?;
    let next = typed.text("next");
    // What is copied often ends with a line end.
    let token = typed.text("token").trim();
    let failure = match sessions::sign_in(&service.handle, &request, token).await {
        Ok(made) => {
            let mut response = see_other(local(next).unwrap_or(links::OVERVIEW));
            sessions::remember(&mut response, &request, &made.cookie);
            return Ok(response);
        }
        Err(failure) => service.slow_down(request.arrival.peer, failure),
    };
    let failure = match failure.code {
        ErrorCode::Unauthorized => Failure::invalid(
            "token",
            "This token is not valid, has expired or was revoked.",
        ),
        _ => failure,
    };
    let status = match failure.status() {
        StatusCode::BAD_REQUEST => StatusCode::UNPROCESSABLE_ENTITY,
        status if status.is_client_error() => status,
        _ => return Err(failure),
    };
    let (problem, _) = failure.problem(&request.arrival.id.to_string());
    let refused = Refused {
        problem: Some(problem),
        ..Refused::default()
    };
    Ok(html(status, form(service, next, &refused)))
}

pub(super) async fn logout(frame: &Frame<'_>) -> Result<Response, Failure> {
    if let Some(session) = frame.me.session() {
        frame.me.sign_out(session).await?;
    }
    Ok(forgotten(frame))
}

/// The way out: no cookie, and nothing that the browser has kept.
fn forgotten(frame: &Frame<'_>) -> Response {
    let mut response = see_other(links::LOGIN);
    sessions::forget(&mut response, frame.request);
    response
}

pub(super) fn settings(frame: &Frame<'_>) -> Response {
    frame.page(pages::settings(
        &frame.visit,
        &sessions::load_list(frame.me),
    ))
}

pub(super) async fn end_session(frame: &Frame<'_>) -> Result<Response, Failure> {
    let is_own = frame
        .me
        .session()
        .is_some_and(|session| session.to_string() == frame.parameter(0));
    sessions::end(frame.me, frame.request).await?;
    Ok(match is_own {
        true => forgotten(frame),
        false => see_other(links::SETTINGS),
    })
}

pub(super) async fn end_sessions(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    if typed.text("tokens") == "true" {
        frame.me.revoke_token(frame.me.token().id).await?;
    } else {
        frame.me.sign_out_everywhere().await?;
    }
    Ok(forgotten(frame))
}
