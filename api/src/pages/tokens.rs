//! Access tokens.

use http::StatusCode;
use maud::Markup;
use ui::form::Refused;
use ui::{links, pages};
use warp::reply::Response;
use wire::{CreateToken, CreatedToken, RegenerateToken};

use super::frame::Frame;
use super::html::see_other;
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::tokens;
use crate::idempotency::Attempt;

const FIELDS: [&str; 5] = ["name", "scopes", "projects", "expires_in_seconds", "user"];

pub(super) fn list(frame: &Frame<'_>) -> Result<Response, Failure> {
    Ok(frame.page(page(frame, None, &Refused::default())?))
}

fn page(
    frame: &Frame<'_>,
    created: Option<&CreatedToken>,
    refused: &Refused,
) -> Result<Markup, Failure> {
    let of = frame.query("user");
    let owner = Some(of).filter(|of| !of.is_empty());
    let page = pages::Tokens {
        tokens: &tokens::list(frame.user, owner, &frame.window()?)?,
        of,
        must_sign_in: frame.user.check_recent().is_err(),
        created,
        refused,
    };
    Ok(pages::tokens(&frame.visit, &page))
}

/// Makes a token. Only this answer has its secret, so the answer is the page itself.
pub(super) async fn create(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let made = match asked(typed) {
        Ok(asked) => {
            let attempt = Attempt::of_form(typed.key(), &asked)?;
            tokens::make(frame.user, asked, &attempt).await
        }
        Err(failure) => Err(failure),
    };
    match made {
        Ok(created) => with_secret(frame, &created),
        Err(failure) => {
            let (status, refused) = frame.refused(failure, typed, &FIELDS)?;
            let page = page(frame, None, &refused)?;
            Ok(frame.html(status, page))
        }
    }
}

fn asked(typed: &Typed) -> Result<CreateToken, Failure> {
    let projects: Vec<String> = typed
        .text("projects")
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let user = typed.text("user").trim();
    let life = typed.text("expires_in_seconds");
    let seconds =
        match life {
            "" => None,
            life => Some(life.parse().map_err(|_| {
                Failure::invalid("expires_in_seconds", "must be a number of seconds")
            })?),
        };
    Ok(CreateToken {
        name: typed.text("name").trim().to_owned(),
        scopes: typed.all("scopes").map(str::to_owned).collect(),
        projects: (!projects.is_empty()).then_some(projects),
        expires_in_seconds: seconds,
        never_expires: seconds.is_none(),
        user: (!user.is_empty()).then(|| user.to_owned()),
    })
}

fn with_secret(frame: &Frame<'_>, created: &CreatedToken) -> Result<Response, Failure> {
    let page = page(frame, Some(created), &Refused::default())?;
    Ok(frame.html(StatusCode::OK, page))
}

pub(super) async fn regenerate(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let seconds = typed.text("overlap_seconds");
    let asked = RegenerateToken {
        overlap_seconds: seconds.parse().unwrap_or(0),
        expires_in_seconds: None,
    };
    let attempt = Attempt::of_form(typed.key(), &asked)?;
    let created = tokens::renew(frame.user, frame.parameter(0), &asked, &attempt).await?;
    // The reader's session may have ended together with the former secret.
    with_secret(frame, &created)
}

/// Gives a token to another user.
pub(super) async fn give(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let user = typed.text("user").trim();
    tokens::give(frame.user, frame.parameter(0), user).await?;
    Ok(see_other(&links::tokens_of(user)))
}

pub(super) async fn revoke(frame: &Frame<'_>) -> Result<Response, Failure> {
    tokens::revoke(frame.user, frame.parameter(0)).await?;
    Ok(see_other(links::TOKENS))
}
