//! Access tokens.

use maud::{Markup, html};
use wire::{CreatedToken, Page, Scope, Token};

use super::settings::{expiry, last_used, sign_in_again};
use crate::form::{Field, Refused};
use crate::list::{card, empty, more, table};
use crate::shell::{Menu, Shell, Visit, heading};
use crate::words::{at, copy_button};
use crate::{form, links};

pub struct Tokens<'a> {
    pub tokens: &'a Page<Token>,
    /// The user whose tokens are listed, or `all`; empty for the viewer's own.
    pub of: &'a str,
    /// True if a new secret needs a newer sign-in.
    pub must_sign_in: bool,
    /// A new token. Only the response to its form shows it.
    pub created: Option<&'a CreatedToken>,
    pub refused: &'a Refused,
}

pub fn tokens(visit: &Visit, page: &Tokens<'_>) -> Markup {
    let heads = [
        "name",
        "owner",
        "scopes",
        "projects",
        "expires",
        "last used",
        "",
    ];
    let content = html! {
        (heading("Tokens", &html! {}, &html! {}))
        @if visit.may(Scope::Admin) { (filter(page)) }
        @if let Some(created) = page.created { (new(created)) }
        (card("tokens", "Tokens", &html! { (page.tokens.items.len()) }, &html! {
            @if page.tokens.items.is_empty() {
                (empty(&html! { p { "There are no tokens that you may see." } }))
            } @else {
                (table("Tokens", &heads, &html! { @for token in &page.tokens.items { (row(visit, page, token)) } }))
            }
        }))
        (more(links::TOKENS, &[("user", page.of)], page.tokens.next_cursor.as_deref()))
        (create(visit, page))
    };
    Shell::new(visit, "Tokens", Some(Menu::Tokens)).page(&content)
}

fn new(created: &CreatedToken) -> Markup {
    html! {
        (card("created", "The secret of the token", &html! { (created.token.name) }, &html! {
            div.body {
                p { "It is shown once. Copy it now; later you can only create a new one." }
                pre.once { code { (created.secret) } }
                p { (copy_button(&created.secret, "Copy the secret")) }
            }
        }))
    }
}

fn filter(page: &Tokens<'_>) -> Markup {
    html! {
        form.filters method="get" action=(links::TOKENS) role="search" aria-label="Tokens" {
            div.field {
                label for="filter-user" { "Owner" }
                input #filter-user name="user" value=(page.of) placeholder="you" aria-describedby="filter-hint" autocomplete="off" spellcheck="false";
                p.hint #filter-hint { "The name of a user, or " code { "all" } "." }
            }
            button.button type="submit" { "Filter" }
        }
    }
}

fn row(visit: &Visit, page: &Tokens<'_>, token: &Token) -> Markup {
    let viewer = visit.viewer.as_ref().map(|viewer| &viewer.name);
    let is_own = viewer == Some(&token.user);
    let to = token.id.simple().to_string();
    let owner = Field::new("user", "The new owner")
        .of(&to)
        .required()
        .at_most(64);
    html! {
        tr {
            td { (token.name) }
            td { (token.user) }
            td.wide { @for scope in &token.scopes { span.tag { (scope) } " " } }
            td.wide { @match &token.projects { Some(projects) => (projects.join(", ")), None => "all" } }
            td {
                (expiry(token))
                @if let Some(former) = token.former_expires_at { p.small.muted { "previous secret accepted until " (at(former)) } }
            }
            td { (last_used(token)) }
            td.end {
                // Only the owner gets the new secret.
                @if is_own && !page.must_sign_in {
                    (form::guarded_with(visit, &links::regenerate_token(token.id), "Regenerate",
                        "The token gets a new secret. The current one is accepted for the time you choose.", &overlap(token)))
                }
                @if visit.may(Scope::Admin) {
                    (form::guarded_with(visit, &links::move_token(token.id), "Move",
                        "The token may then do what its new owner may do, and no more than now.", &owner.input("text", "", &Refused::default())))
                }
                (form::guarded(visit, &links::revoke_token(token.id), "Revoke",
                    "Programs and browsers with this token are refused at once."))
            }
        }
    }
}

fn overlap(token: &Token) -> Markup {
    let id = format!("overlap-{}", token.id.simple());
    html! {
        label for=(id) { "The current secret is accepted for" }
        select id=(id) name="overlap_seconds" {
            option value="0" { "no time" }
            option value="3600" { "an hour" }
            option value="86400" { "a day" }
        }
    }
}

fn create(visit: &Visit, page: &Tokens<'_>) -> Markup {
    if page.must_sign_in {
        return card(
            "create",
            "A new token",
            &html! {},
            &html! { div.body { (sign_in_again("A new secret needs", links::TOKENS)) } },
        );
    }
    let lengths = [
        ("604800", "a week"),
        ("7776000", "90 days"),
        ("31536000", "a year"),
        ("", "for ever"),
    ];
    let lengths = lengths.map(|(value, label)| (value.to_owned(), label.to_owned()));
    let chosen: Vec<&str> = page
        .refused
        .value("scopes", "")
        .split_whitespace()
        .collect();
    let wrong = page.refused.error("scopes");
    html! {
        (card("create", "A new token", &html! {}, &html! {
            div.body.fields {
                (page.refused.summary(&["name", "scopes", "projects", "expires_in_seconds", "user"]))
                (form::post(visit, "token", links::TOKENS, &html! {
                    (Field::new("name", "Name").required().hint("The audit log shows it with each action of the token.")
                        .input("text", "", page.refused))
                    fieldset aria-invalid=[wrong.map(|_| "true")] aria-describedby=[wrong.map(|_| "scopes-error")] {
                        legend { "Scopes" }
                        @for scope in Scope::ALL.iter().filter(|scope| **scope != Scope::CallbackOwn).map(|scope| scope.as_str()) {
                            label.check {
                                input type="checkbox" name="scopes" value=(scope) checked[chosen.contains(&scope)];
                                " " code { (scope) }
                            }
                        }
                        @if let Some(wrong) = wrong { p.error #scopes-error { (wrong) } }
                    }
                    (Field::new("projects", "Projects").hint("Names, separated by spaces. Empty: all projects that you may see.")
                        .input("text", "", page.refused))
                    (Field::new("expires_in_seconds", "Valid for").select(&lengths, "7776000", page.refused))
                    @if visit.may(Scope::Admin) {
                        (Field::new("user", "Owner").hint("A service, which is a program. Empty: you.").input("text", "", page.refused))
                    }
                    button.button.first type="submit" { "Make the token" }
                }))
            }
        }))
    }
}
