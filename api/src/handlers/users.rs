//! `/v0/users`, the members of projects, and `/v0/me`.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use model::decide::{CreateUser, DeleteUser, MakeUserLink, NewUser, SetMember, UpdateUser};
use model::{
    Credential, PlainToken, Projects, Role, Roles, Seen, Timestamp, User, UserId, UserName,
    UserState,
};
use warp::reply::Response;
use wire::{CreatedUser, CredentialKind, Me, Member, Page, UserLink};

use super::projects;
use crate::convert::Convert;
use crate::failure::Failure;
use crate::handlers::sign_in::user_link_path;
use crate::page::Window;
use crate::reply;
use crate::request::Request;
use crate::visible::{Shown, Visible};

pub(crate) fn list(user: &Visible, window: &Window) -> Page<wire::User> {
    let now = user.steady();
    user.read(|seen| {
        window.cut(
            seen.users(),
            |found| found.name.to_string(),
            |found| shown(seen, found, now),
        )
    })
}

fn shown(seen: Seen<'_>, user: &User, now: Timestamp) -> wire::User {
    wire::User {
        name: user.name.to_string(),
        kind: kind(user),
        state: state(user),
        administrator: user.is_administrator,
        has_password: user.password().is_some(),
        roles: roles(seen, user),
        created_at: user.created_at,
        last_seen_on: user.last_seen,
        link_expires_at: seen.open_link(user, now).map(|link| link.expires_at),
    }
}

fn kind(user: &User) -> wire::UserKind {
    match user.is_person() {
        true => wire::UserKind::Person,
        false => wire::UserKind::Service,
    }
}

fn state(user: &User) -> wire::UserState {
    match user.state {
        UserState::Invited => wire::UserState::Invited,
        UserState::Active => wire::UserState::Active,
        UserState::Deactivated | UserState::Deleted => wire::UserState::Deactivated,
    }
}

/// The roles by the names of the projects. A project that is not configured any more has no name.
fn roles(seen: Seen<'_>, user: &User) -> BTreeMap<String, wire::Role> {
    let roles = user.roles.iter().filter_map(|(project, role)| {
        let source = seen.source_of(project)?;
        Some((source.name.to_string(), role.converted()))
    });
    roles.collect()
}

pub(crate) fn show(user: &Visible, named: &str) -> Result<wire::User, Failure> {
    let now = user.steady();
    user.read(|seen| {
        let found = seen.user(named).ok_or_else(|| no_such_user(named))?;
        Ok(shown(seen, found, now))
    })
}

/// Shows a user to administrators, and to the user.
pub(crate) fn show_own(user: &Visible, named: &str) -> Result<wire::User, Failure> {
    if user.rights().is_administrator() {
        return show(user, named);
    }
    let now = user.steady();
    let own = user.own(|seen, own| (own.name.as_str() == named).then(|| shown(seen, own, now)));
    own.flatten().ok_or_else(|| no_such_user(named))
}

fn no_such_user(named: &str) -> Failure {
    Failure::not_found("user", named)
}

pub(super) async fn create(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let asked: wire::CreateUser = request.body.json(&request.headers).await?;
    let created = invite(user, asked).await?;
    Ok(reply::json(StatusCode::CREATED, &created))
}

pub(crate) async fn invite(
    user: &Visible,
    asked: wire::CreateUser,
) -> Result<CreatedUser, Failure> {
    user.check_recent()?;
    let name: UserName = asked
        .name
        .parse()
        .map_err(|error| Failure::invalid("name", format!("{error}")))?;
    let mut roles = Roles::default();
    for (project, role) in &asked.roles {
        roles.set(*projects::project(user, project)?, Some(role.converted()));
    }
    let by = user.giver()?;
    let create = user.find(|_| {
        Ok(CreateUser {
            name,
            is_service: asked.service,
            is_administrator: asked.administrator,
            roles,
            by,
        })
    })?;
    let NewUser { user: made, secret } = user.submit(create).await?;
    let now = user.steady();
    Ok(user.read(|seen| CreatedUser {
        user: shown(seen, &made, now),
        link: secret.and_then(|secret| link(&made, &secret)),
    }))
}

fn link(user: &User, secret: &PlainToken) -> Option<UserLink> {
    let expires_at = user.link.as_ref()?.expires_at;
    let url_path = user_link_path(secret);
    Some(UserLink {
        url_path,
        expires_at,
    })
}

/// A user whom the caller may change, with administrators' rights or as a maintainer.
fn found(user: &Visible, named: &str) -> Result<Shown<UserId>, Failure> {
    user.find(|seen| Ok(seen.user(named).ok_or_else(|| no_such_user(named))?.id))
}

/// Makes a link with which the user sets a password.
pub(crate) async fn make_link(user: &Visible, named: &str) -> Result<UserLink, Failure> {
    user.check_recent()?;
    let by = user.giver()?;
    let make = found(user, named)?.map(|found| MakeUserLink {
        user: *found,
        by: Some(by.clone()),
    });
    let NewUser { user: made, secret } = user.submit(make).await?;
    let link = secret.and_then(|secret| link(&made, &secret));
    link.ok_or_else(Failure::defect)
}

pub(super) async fn create_link(user: &Visible, request: Request) -> Result<Response, Failure> {
    let link = make_link(user, request.parameter(0)).await?;
    Ok(reply::json(StatusCode::CREATED, &link))
}

pub(super) async fn change(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let asked: wire::UpdateUser = request.body.json(&request.headers).await?;
    Ok(reply::ok(&update(user, request.parameter(0), asked).await?))
}

pub(crate) async fn update(
    user: &Visible,
    named: &str,
    asked: wire::UpdateUser,
) -> Result<wire::User, Failure> {
    if asked.active == Some(true) || asked.administrator == Some(true) {
        user.check_recent()?;
    }
    let update = found(user, named)?.map(|found| UpdateUser {
        user: *found,
        active: asked.active,
        administrator: asked.administrator,
    });
    // Not everything of a user with many tokens fits into one commit.
    let updated = loop {
        let updated = user.submit(update.clone()).await?;
        if !updated.is_unfinished {
            break updated.user;
        }
    };
    let now = user.steady();
    Ok(user.read(|seen| shown(seen, &updated, now)))
}

pub(crate) async fn delete(user: &Visible, named: &str) -> Result<(), Failure> {
    let delete = found(user, named)?.map(|found| DeleteUser { user: *found });
    while user.submit(delete.clone()).await?.is_unfinished {}
    Ok(())
}

pub(crate) fn members(
    user: &Visible,
    project: &str,
    window: &Window,
) -> Result<Page<Member>, Failure> {
    let project = projects::project(user, project)?;
    Ok(user.read(|seen| {
        window.cut(
            seen.members(*project),
            |(member, _)| member.name.to_string(),
            |(found, role)| member(found, *role),
        )
    }))
}

fn member(user: &User, role: Role) -> Member {
    Member {
        user: user.name.to_string(),
        kind: kind(user),
        state: state(user),
        role: role.converted(),
    }
}

pub(super) async fn set_member(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    // An unknown project is reported before a wrong body.
    projects::project(user, request.parameter(0))?;
    let asked: wire::SetMember = request.body.json(&request.headers).await?;
    let role = asked.role.converted();
    let changed = give_role(user, request.parameter(0), request.parameter(1), Some(role)).await?;
    Ok(reply::ok(&member(&changed, role)))
}

/// Gives a user a role in a project, or takes it.
pub(crate) async fn give_role(
    user: &Visible,
    project: &str,
    named: &str,
    role: Option<Role>,
) -> Result<Arc<User>, Failure> {
    let project = projects::project(user, project)?;
    let by = user.giver()?;
    let set = user.find(|seen| {
        let found = match role {
            Some(_) => seen.user(named),
            None => seen
                .user(named)
                .filter(|found| found.roles.get(*project).is_some()),
        };
        let found = found.ok_or_else(|| no_such_user(named))?;
        let set = SetMember {
            user: found.id,
            project: *project,
            role,
            by,
        };
        Ok((set, role > found.roles.get(*project)))
    })?;
    let (_, is_stronger) = *set;
    if is_stronger {
        user.check_recent()?;
    }
    let set = set.map(|(set, _)| set.clone());
    // Not everything that ends with a role fits into one commit.
    loop {
        let updated = user.submit(set.clone()).await?;
        if !updated.is_unfinished {
            return Ok(updated.user);
        }
    }
}

pub(crate) async fn remove_member(
    user: &Visible,
    project: &str,
    named: &str,
) -> Result<(), Failure> {
    give_role(user, project, named, None).await.map(drop)
}

/// Who the caller is, and what the credential may do.
pub(crate) fn me(user: &Visible) -> Me {
    let principal = user.principal();
    let credential = match principal.credential {
        Credential::Session(..) => CredentialKind::Session,
        Credential::Job(_) => CredentialKind::Job,
        Credential::Token(_) | Credential::Link(_) => CredentialKind::Token,
    };
    let rights = user.rights();
    let own = user.own(|seen, own| (own.name.to_string(), own.is_administrator, roles(seen, own)));
    let (name, administrator, roles) = match own {
        Some((name, administrator, roles)) => (Some(name), administrator, roles),
        None => (None, false, BTreeMap::new()),
    };
    let session = principal.session();
    let device = user.sessions(|_, it| (session == Some(it.id)).then(|| it.device.clone()));
    let device = device.into_iter().flatten().next();
    Me {
        user: name,
        administrator,
        roles,
        credential,
        name: device.unwrap_or_else(|| match principal.job() {
            Some(job) => job.to_string(),
            None => principal.name.clone(),
        }),
        scopes: rights
            .scopes
            .iter()
            .map(|scope| scope.name().to_owned())
            .collect(),
        projects: match &rights.projects {
            Projects::All => None,
            Projects::Only(projects) => Some(user.read(|seen| {
                let sources = projects
                    .iter()
                    .filter_map(|project| seen.source_of(*project));
                sources.map(|source| source.name.to_string()).collect()
            })),
        },
        expires_at: user.ends_at().map(|end| user.by_the_clock(end)),
    }
}
