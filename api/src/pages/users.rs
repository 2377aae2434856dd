//! Users, and the members of a project.

use std::collections::BTreeMap;

use http::StatusCode;
use maud::Markup;
use ui::form::Refused;
use ui::{links, pages};
use warp::reply::Response;
use wire::{CreateUser, ErrorCode, Role, UpdateUser, User, UserKind, UserLink};

use super::frame::Frame;
use super::html::see_other;
use super::runners::server;
use super::typed::Typed;
use crate::convert::Convert;
use crate::failure::Failure;
use crate::handlers::users;

const FIELDS: [&str; 4] = ["name", "kind", "roles", "administrator"];
const MEMBER_FIELDS: [&str; 3] = ["name", "role", "invite"];

pub(super) fn list(frame: &Frame<'_>) -> Result<Response, Failure> {
    Ok(frame.page(all(frame, &Refused::default())?))
}

fn all(frame: &Frame<'_>, refused: &Refused) -> Result<Markup, Failure> {
    let users = &users::list(frame.user, &frame.window()?);
    Ok(pages::users(&frame.visit, &pages::Users { users, refused }))
}

pub(super) fn show(frame: &Frame<'_>) -> Result<Response, Failure> {
    let user = users::show(frame.user, frame.parameter(0))?;
    Ok(frame.page(one(frame, &user, None)))
}

fn one(frame: &Frame<'_>, user: &User, link: Option<&UserLink>) -> Markup {
    let server = &server(frame);
    pages::user(&frame.visit, &pages::UserPage { user, link, server })
}

/// Makes a user. Only this answer has the invitation, so the answer is the page itself.
pub(super) async fn create(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let made = match asked(typed) {
        Ok(asked) => users::invite(frame.user, asked).await,
        Err(failure) => Err(failure),
    };
    match made {
        Ok(made) => {
            let page = one(frame, &made.user, made.link.as_ref());
            Ok(frame.html(StatusCode::OK, page))
        }
        Err(failure) => {
            let (status, refused) = frame.refused(failure, typed, &FIELDS)?;
            Ok(frame.html(status, all(frame, &refused)?))
        }
    }
}

fn asked(typed: &Typed) -> Result<CreateUser, Failure> {
    let given = typed.text("roles").split_whitespace();
    let roles: Result<BTreeMap<String, Role>, Failure> = given
        .map(|given| {
            let (project, role) = given.split_once('=').unwrap_or((given, ""));
            Ok((project.to_owned(), parse_role("roles", role)?))
        })
        .collect();
    Ok(CreateUser {
        name: typed.text("name").trim().to_owned(),
        service: typed.text("kind") == UserKind::Service.as_str(),
        administrator: typed.text("administrator") == "true",
        roles: roles?,
    })
}

fn parse_role(field: &str, name: &str) -> Result<Role, Failure> {
    let found = Role::ALL.iter().find(|role| role.as_str() == name);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
        Failure::invalid(
            field,
            format!("`{name}` is not a role ({})", names.join(", ")),
        )
    })
}

pub(super) async fn update(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let set = |name| typed.get(name).map(|value| value == "true");
    let asked = UpdateUser {
        active: set("active"),
        administrator: set("administrator"),
    };
    let user = frame.parameter(0);
    users::update(frame.user, user, asked).await?;
    // A user who is no longer an administrator cannot see this page.
    Ok(frame.done(model::Scope::Admin, &links::user(user)))
}

/// Makes a link with which a user sets a password. For the own user, the browser follows it.
pub(super) async fn link(frame: &Frame<'_>) -> Result<Response, Failure> {
    let named = frame.parameter(0);
    let link = users::make_link(frame.user, named).await?;
    if frame.user.name() == named {
        return Ok(see_other(&link.url_path));
    }
    let user = users::show(frame.user, named)?;
    Ok(frame.html(StatusCode::OK, one(frame, &user, Some(&link))))
}

pub(super) async fn delete(frame: &Frame<'_>) -> Result<Response, Failure> {
    users::delete(frame.user, frame.parameter(0)).await?;
    Ok(see_other(links::USERS))
}

pub(super) fn members(frame: &Frame<'_>) -> Result<Response, Failure> {
    Ok(frame.page(members_page(frame, None, &Refused::default())?))
}

fn members_page(
    frame: &Frame<'_>,
    invited: Option<(&str, &UserLink)>,
    refused: &Refused,
) -> Result<Markup, Failure> {
    let project = frame.parameter(0);
    let page = pages::Members {
        project,
        members: &users::members(frame.user, project, &frame.window()?)?,
        invited,
        server: &server(frame),
        refused,
    };
    Ok(pages::members(&frame.visit, &page))
}

/// Gives a user a role, makes a user who has it, or invites a user again.
pub(super) async fn set_member(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let project = frame.parameter(0);
    match given(frame, typed, project).await {
        Ok(Some(link)) => {
            let invited = Some((typed.text("name").trim(), &link));
            let page = members_page(frame, invited, &Refused::default())?;
            Ok(frame.html(StatusCode::OK, page))
        }
        Ok(None) => Ok(see_other(&links::members(project))),
        Err(failure) => {
            let (status, refused) = frame.refused(failure, typed, &MEMBER_FIELDS)?;
            Ok(frame.html(status, members_page(frame, None, &refused)?))
        }
    }
}

async fn given(
    frame: &Frame<'_>,
    typed: &Typed,
    project: &str,
) -> Result<Option<UserLink>, Failure> {
    let name = typed.text("name").trim();
    if typed.text("invite") == "again" {
        return users::make_link(frame.user, name).await.map(Some);
    }
    let role = parse_role("role", typed.text("role"))?;
    if typed.text("invite") == "true" {
        let asked = CreateUser {
            name: name.to_owned(),
            roles: BTreeMap::from([(project.to_owned(), role)]),
            ..CreateUser::default()
        };
        return Ok(users::invite(frame.user, asked).await?.link);
    }
    let set = users::give_role(frame.user, project, name, Some(role.converted())).await;
    set.map(|_| None).map_err(|failure| match failure.code {
        ErrorCode::NotFound => Failure::invalid("name", "there is no user with this name"),
        _ => failure,
    })
}

pub(super) async fn remove_member(frame: &Frame<'_>) -> Result<Response, Failure> {
    let (project, user) = (frame.parameter(0), frame.parameter(1));
    users::remove_member(frame.user, project, user).await?;
    // A user who has left the project cannot see this page.
    match frame.user.name() == user {
        true => Ok(see_other(links::OVERVIEW)),
        false => Ok(see_other(&links::members(project))),
    }
}
