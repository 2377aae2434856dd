//! What belongs to the reader: settings, password, sessions, and the sign-in of a device.

use http::StatusCode;
use maud::Markup;
use ui::form::Refused;
use ui::links;
use ui::pages::{self, Device, DevicePage, PasswordForm, Settings};
use warp::reply::Response;

use super::frame::Frame;
use super::html::see_other;
use super::sign_in::{forgotten, new_password};
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::{sessions, sign_in, tokens, users};

pub(super) fn settings(frame: &Frame<'_>) -> Result<Response, Failure> {
    Ok(frame.page(page(frame, &Refused::default())?))
}

fn page(frame: &Frame<'_>, refused: &Refused) -> Result<Markup, Failure> {
    let user = users::show_own(frame.user, &frame.user.name())?;
    let page = Settings {
        password: match (frame.user.principal().is_person(), user.has_password) {
            (true, _) if frame.user.check_recent().is_ok() => PasswordForm::Open,
            (true, _) => PasswordForm::SignInFirst,
            (false, true) => PasswordForm::NotWithToken,
            (false, false) => PasswordForm::ByLink,
        },
        user: &user,
        sessions: &sessions::list(frame.user),
        tokens: &tokens::list(frame.user, None, &frame.window()?)?.items,
        refused,
    };
    Ok(pages::settings(&frame.visit, &page))
}

pub(super) async fn change_password(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let set = match new_password(typed) {
        Ok(password) => {
            sign_in::set_password(frame.service, frame.user, frame.request, password).await
        }
        Err(failure) => Err(failure),
    };
    match set {
        Ok(made) => {
            let mut response = see_other(links::SETTINGS);
            if let Some(made) = made {
                made.remember(&mut response, frame.request);
            }
            Ok(response)
        }
        Err(failure) => {
            let (status, refused) = frame.refused(failure, typed, &[])?;
            Ok(frame.html(status, page(frame, &refused)?))
        }
    }
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

/// Shows the device that waits with the code of the request, or asks for a code.
pub(super) fn device(frame: &Frame<'_>) -> Response {
    let code = frame.query("code").trim();
    let devices = frame.service.handle.sign_ins();
    if let Some(waiting) = devices.waiting_device(code) {
        let device = Device {
            code,
            name: &waiting.device,
            address: waiting.address,
        };
        return frame.page(pages::device(&frame.visit, &DevicePage::Found(device)));
    }
    let refused = match code {
        "" => Refused::default(),
        _ => no_device(frame),
    };
    frame.page(pages::device(
        &frame.visit,
        &DevicePage::Asks { refused: &refused },
    ))
}

fn no_device(frame: &Frame<'_>) -> Refused {
    let failure = Failure::invalid(
        "code",
        "No device waits with this code. A code ends after 10 minutes.",
    );
    let (problem, _) = failure.problem(&frame.request.arrival.id.to_string());
    Refused {
        problem: Some(problem),
        ..Refused::default()
    }
}

/// Signs a device in, with what this browser may do. The device can do more than a stolen cookie, so the person must have
/// signed in just now.
pub(super) fn confirm_device(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    frame.user.check_recent()?;
    let code = typed.text("code");
    let devices = frame.service.handle.sign_ins();
    let waiting = devices.waiting_device(code);
    let session = frame.user.principal().session();
    let confirmed = session.is_some_and(|session| devices.confirm_device(code, session));
    Ok(match waiting.filter(|_| confirmed) {
        Some(waiting) => {
            let page = DevicePage::Confirmed {
                name: &waiting.device,
            };
            frame.html(StatusCode::OK, pages::device(&frame.visit, &page))
        }
        None => {
            let refused = &no_device(frame);
            let page = pages::device(&frame.visit, &DevicePage::Asks { refused });
            frame.html(StatusCode::UNPROCESSABLE_ENTITY, page)
        }
    })
}
