//! The members of a project.

use maud::{Markup, html};
use wire::{Member, Page, Role, Scope, UserKind, UserLink, UserState};

use super::users::{NAME_HINT, new_link, shape};
use crate::form::{Field, Refused};
use crate::list::{card, empty, more, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading};
use crate::{form, links};

pub struct Members<'a> {
    pub project: &'a str,
    pub members: &'a Page<Member>,
    /// A new user and the invitation. Only the response to the form shows it.
    pub invited: Option<(&'a str, &'a UserLink)>,
    /// The address of the daemon, with which the link begins.
    pub server: &'a str,
    pub refused: &'a Refused,
}

pub fn members(visit: &Visit, page: &Members<'_>) -> Markup {
    let (project, members) = (page.project, &page.members.items);
    let content = html! {
        (heading("Members", &html! { span.tag { (project) } }, &html! {}))
        @if let Some((user, link)) = page.invited { (new_link(user, link, page.server)) }
        (card("members", "Members", &html! { (members.len()) }, &html! {
            @if members.is_empty() {
                (empty(&html! { p { "Nobody has a role here. Administrators may do everything without one." } }))
            } @else {
                (table("Members", &["user", "state", "role", ""], &html! {
                    @for member in members { (row(visit, page, member)) }
                }))
            }
        }))
        (more(&links::members(project), &[], page.members.next_cursor.as_deref()))
        @if visit.may_in(project, Scope::MemberWrite) { (add(visit, page)) }
    };
    Shell::new(visit, "Members", Some(Menu::Variables))
        .under([
            Crumb::new("Vars and secrets", links::PROJECTS),
            Crumb::new(project, links::project(project)),
        ])
        .page(&content)
}

fn row(visit: &Visit, page: &Members<'_>, member: &Member) -> Markup {
    html! {
        tr {
            td { (member.user) @if member.kind == UserKind::Service { " " span.tag { "service" } } }
            td { (shape(member.state)) }
            td { (member.role.as_str()) }
            td.end {
                @if visit.may_in(page.project, Scope::MemberWrite) {
                    @if member.state == UserState::Invited { (invite_again(visit, page.project, &member.user)) }
                    (form::guarded(visit, &links::remove_member(page.project, &member.user), "Remove",
                        "The user no longer sees the project. What the user follows there ends at once."))
                }
            }
        }
    }
}

fn invite_again(visit: &Visit, project: &str, user: &str) -> Markup {
    let fields = html! {
        input type="hidden" name="name" value=(user);
        input type="hidden" name="invite" value="again";
    };
    let label = format!("Invite {user} again");
    let note = "Makes a new link, which is good for 72 hours. An earlier link ends.";
    form::disclosed(visit, &links::members(project), &label, note, &fields)
}

fn add(visit: &Visit, page: &Members<'_>) -> Markup {
    let refused = page.refused;
    let roles = Role::ALL.iter().map(|role| role.as_str().to_owned());
    let roles: Vec<_> = roles.map(|role| (role.clone(), role)).collect();
    html! {
        (card("add", "Add a member", &html! {}, &html! {
            div.body.fields {
                (refused.summary(&["name", "role", "invite"]))
                (form::post(visit, "member", &links::members(page.project), &html! {
                    (Field::new("name", "User").required().at_most(64).hint("A member with this name gets the new role.").input("text", "", refused))
                    (Field::new("role", "Role").hint("A viewer reads everything but secrets. An operator also starts and cancels jobs. A maintainer also changes the project.")
                        .select(&roles, Role::Viewer.as_str(), refused))
                    (Field::new("invite", "A new person: make the user, and a link that invites").hint(NAME_HINT).switch(false, refused))
                    button.button.first type="submit" { "Add" }
                }))
            }
        }))
    }
}
