//! The users, and one user. Both pages are for administrators.

use maud::{Markup, html};
use wire::{Page, User, UserKind, UserLink, UserState};

use crate::form::{Field, Refused};
use crate::list::{card, empty, facts, more, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading};
use crate::words::{ago, at, condition, copy_button, date};
use crate::{form, links};

/// Of one user, the list shows at most this many roles.
const SHOWN_ROLES: usize = 5;

pub struct Users<'a> {
    pub users: &'a Page<User>,
    pub refused: &'a Refused,
}

pub fn users(visit: &Visit, page: &Users<'_>) -> Markup {
    let heads = ["user", "state", "roles", "last seen", "since"];
    let content = html! {
        (heading("Users", &html! {}, &html! {}))
        (card("users", "Users", &html! { (page.users.items.len()) }, &table("Users", &heads, &html! {
            @for user in &page.users.items { (row(visit, user)) }
        })))
        (more(links::USERS, &[], page.users.next_cursor.as_deref()))
        (create(visit, page.refused))
    };
    Shell::new(visit, "Users", Some(Menu::Users)).page(&content)
}

fn row(visit: &Visit, user: &User) -> Markup {
    html! {
        tr {
            td { a href=(links::user(&user.name)) { (user.name) } }
            td { (state(user)) " " (tags(user)) }
            td.wide {
                @for (project, role) in user.roles.iter().take(SHOWN_ROLES) { span.tag { (project) ": " (role.as_str()) } " " }
                @if user.roles.len() > SHOWN_ROLES { span.muted { "and " (user.roles.len() - SHOWN_ROLES) " more" } }
            }
            td { (last_seen(user)) }
            td { (ago(user.created_at, visit.now)) }
        }
    }
}

fn tags(user: &User) -> Markup {
    html! {
        @if user.kind == UserKind::Service { " " span.tag { "service" } }
        @if user.administrator { " " span.tag { "administrator" } }
    }
}

pub(super) fn state(user: &User) -> Markup {
    shape(user.state)
}

pub(super) fn shape(state: UserState) -> Markup {
    let shape = match state {
        UserState::Invited => "scheduled",
        UserState::Active => "succeeded",
        UserState::Deactivated => "cancelled",
    };
    condition(shape, state.as_str())
}

fn last_seen(user: &User) -> Markup {
    html! { @match user.last_seen_on { Some(day) => (date(day)), None => span.muted { "never" } } }
}

pub(super) const NAME_HINT: &str = "`a-z`, `0-9`, `.`, `_` and `-`, beginning with a letter or digit. No other user ever gets this name.";

fn create(visit: &Visit, refused: &Refused) -> Markup {
    let kinds = UserKind::ALL.iter().map(|kind| kind.as_str().to_owned());
    let kinds: Vec<_> = kinds.map(|kind| (kind.clone(), kind)).collect();
    html! {
        (card("create", "A new user", &html! {}, &html! {
            div.body.fields {
                (refused.summary(&["name", "kind", "roles", "administrator"]))
                (form::post(visit, "user", links::USERS, &html! {
                    (Field::new("name", "Name").required().at_most(64).hint(NAME_HINT).input("text", "", refused))
                    (Field::new("kind", "Kind").hint("A person gets an invitation. A service is a program: it has only tokens.")
                        .select(&kinds, "person", refused))
                    (Field::new("roles", "Roles").hint("Such as `infra=viewer web=maintainer`. The roles are viewer, operator and maintainer.")
                        .input("text", "", refused))
                    (Field::new("administrator", "Administrator, who may do everything in all projects").switch(false, refused))
                    button.button.first type="submit" { "Make the user" }
                }))
            }
        }))
    }
}

pub struct UserPage<'a> {
    pub user: &'a User,
    /// A new link. Only the response to its form shows it.
    pub link: Option<&'a UserLink>,
    /// The address of the daemon, with which the link begins.
    pub server: &'a str,
}

pub fn user(visit: &Visit, page: &UserPage<'_>) -> Markup {
    let user = page.user;
    let mut known = vec![
        ("state", state(user)),
        ("kind", html! { (user.kind.as_str()) }),
        ("last seen", last_seen(user)),
        ("since", at(user.created_at)),
    ];
    if user.kind == UserKind::Person {
        let password = if user.has_password { "set" } else { "none" };
        known.push(("password", html! { (password) }));
    }
    if let Some(end) = user.link_expires_at {
        known.push(("open link ends", at(end)));
    }
    let content = html! {
        (heading(&user.name, &html! { @if user.administrator { span.tag { "administrator" } } }, &acts(visit, user)))
        @if let Some(link) = page.link { (new_link(&user.name, link, page.server)) }
        (facts(&known))
        (card("roles", "Roles", &html! { (user.roles.len()) }, &roles(user)))
    };
    Shell::new(visit, &user.name, Some(Menu::Users))
        .under([Crumb::new("Users", links::USERS)])
        .page(&content)
}

fn roles(user: &User) -> Markup {
    html! {
        @if user.roles.is_empty() {
            (empty(&html! { p {
                @if user.administrator { "No role is needed: an administrator may do everything." }
                @else { "No role in any project. The page of a project's members gives one." }
            } }))
        } @else {
            (table("Roles", &["project", "role"], &html! {
                @for (project, role) in &user.roles {
                    tr { td { a href=(links::members(project)) { (project) } } td { (role.as_str()) } }
                }
            }))
        }
    }
}

/// The card of a new invitation or reset link.
pub(super) fn new_link(user: &str, link: &UserLink, server: &str) -> Markup {
    let address = format!("{server}{}", link.url_path);
    card(
        "link",
        "A link for the user",
        &html! { "ends " (at(link.expires_at)) },
        &html! {
            div.body {
                p { "Send this link to " b { (user) } ". It is shown once. With it, a person sets a password, once." }
                pre.once { code { (address) } }
                p { (copy_button(&address, "Copy the link")) }
            }
        },
    )
}

fn acts(visit: &Visit, user: &User) -> Markup {
    let (name, change) = (&user.name, links::user(&user.name));
    let set = |member: &str, to: &str| html! { input type="hidden" name=(member) value=(to); };
    let link = match user.state {
        UserState::Invited => "New invitation",
        UserState::Active | UserState::Deactivated => "Reset the password",
    };
    html! {
        a.button href=(links::tokens_of(name)) { "Tokens" }
        @if user.kind == UserKind::Person && user.state != UserState::Deactivated {
            (form::disclosed(visit, &links::user_link(name), link,
                "Makes a link with which the user sets a new password. An earlier link ends. Sessions go on until the link is used.", &html! {}))
        }
        @if user.administrator {
            (form::guarded_with(visit, &change, "End administration", "The user keeps the roles in projects.", &set("administrator", "false")))
        } @else {
            (form::guarded_with(visit, &change, "Make administrator", "The user may do everything, in all projects.", &set("administrator", "true")))
        }
        @if user.state == UserState::Deactivated {
            (form::disclosed(visit, &change, "Activate", "The user may sign in again. Ended tokens and sessions do not come back.", &set("active", "true")))
        } @else {
            (form::guarded_with(visit, &change, "Deactivate",
                "Sessions, tokens, links and open registrations of the user end at once. Jobs and runners go on.", &set("active", "false")))
        }
        (form::guarded(visit, &links::delete_user(name), "Delete", "Like a deactivation, for ever. No other user gets the name."))
    }
}
