//! The viewer's own settings, password, sessions and tokens.

use maud::{Markup, html};
use wire::{Session, Token, User, UserKind};

use crate::form::{Field, Refused};
use crate::list::{card, empty, facts, table};
use crate::shell::{Menu, Shell, Theme, Visit, heading};
use crate::words::{ago, at, date};
use crate::{form, links};

/// How the viewer can set a new password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasswordForm {
    Open,
    /// The last sign-in was too long ago.
    SignInFirst,
    /// The session was made with a token, and there is a password.
    NotWithToken,
    /// The session was made with a token, and there is no password yet.
    ByLink,
}

pub struct Settings<'a> {
    pub user: &'a User,
    pub password: PasswordForm,
    /// The sessions of the user.
    pub sessions: &'a [Session],
    /// The newest tokens of the user.
    pub tokens: &'a [Token],
    pub refused: &'a Refused,
}

pub fn settings(visit: &Visit, page: &Settings<'_>) -> Markup {
    let content = html! {
        (heading("Settings", &html! {}, &html! {}))
        (card("you", "You", &html! {}, &who(visit, page.user)))
        (card("browser", "This browser", &html! {}, &browser()))
        @if page.user.kind == UserKind::Person { (card("password", "Password", &html! {}, &password(visit, page))) }
        (card("sessions", "Sessions", &html! { (page.sessions.len()) }, &sessions(visit, page)))
        (card("tokens", "Tokens", &html! { a href=(links::TOKENS) { "make and change" } }, &tokens(page.tokens)))
    };
    Shell::new(visit, "Settings", Some(Menu::Settings)).page(&content)
}

fn who(visit: &Visit, user: &User) -> Markup {
    let roles = html! {
        @if user.administrator { span.tag { "administrator" } " " }
        @for (project, role) in &user.roles { span.tag { (project) ": " (role.as_str()) } " " }
    };
    let scopes = visit.viewer.iter().flat_map(|viewer| &viewer.scopes);
    let scopes = html! { @for scope in scopes { span.tag { (scope.as_str()) } " " } };
    html! {
        div.body { (facts(&[("user", html! { (user.name) }), ("roles", roles), ("scopes of this session", scopes)])) }
    }
}

fn password(visit: &Visit, page: &Settings<'_>) -> Markup {
    let again = links::with_query(links::LOGIN, &[("next", links::SETTINGS)]);
    html! {
        div.body.fields {
            @match page.password {
                PasswordForm::Open => {
                    (page.refused.summary(&["password", "again"]))
                    (form::post(visit, "password", links::PASSWORD, &html! {
                        (new_password(&page.user.name, page.refused))
                        button.button type="submit" { "Set the password" }
                    }))
                    p.muted { "Your other browsers and devices are signed out." }
                }
                PasswordForm::SignInFirst => (sign_in_again("A new password needs", links::SETTINGS)),
                PasswordForm::NotWithToken => {
                    p { "This browser is signed in with a token, which cannot change the password." }
                    p { a.button href=(again) { "Sign in with the password" } }
                }
                PasswordForm::ByLink => {
                    p { "You have no password yet." }
                    (form::button(visit, &links::user_link(&page.user.name), "Set one"))
                }
            }
        }
    }
}

/// `next` is the page that needs a newer sign-in.
pub(super) fn sign_in_again(what_needs: &str, next: &str) -> Markup {
    html! {
        p { (what_needs) " a sign-in of the last 10 minutes." }
        p { a.button href=(links::with_query(links::LOGIN, &[("next", next)])) { "Sign in again" } }
    }
}

/// The fields of a new password. The name of the user is for password managers.
pub(super) fn new_password(user: &str, refused: &Refused) -> Markup {
    html! {
        div.field {
            label for="whose" { "User" }
            input #whose name="user" type="text" value=(user) autocomplete="username" readonly;
        }
        (Field::new("password", "New password").required().filled("new-password")
            .hint("15 to 256 characters, such as a sentence of five words.").input("password", "", refused))
        (Field::new("again", "The same again").required().filled("new-password").input("password", "", refused))
    }
}

fn sessions(visit: &Visit, page: &Settings<'_>) -> Markup {
    html! {
        (table("Sessions", &["device", "signed in with", "address", "since", "last seen", "ends", ""], &html! {
            @for session in page.sessions { (session_row(visit, session)) }
        }))
        div.body {
            (form::guarded_with(visit, links::END_SESSIONS, "Sign out everywhere",
                "All your browsers and devices are signed out at once, this one too.", &html! {
                    label.check {
                        input type="checkbox" name="tokens" value="true";
                        " Also revoke your tokens, which programs use"
                    }
                }))
        }
    }
}

fn session_row(visit: &Visit, session: &Session) -> Markup {
    html! {
        tr {
            td.wide { (session.device) @if session.current { " " span.tag { "this one" } } }
            td { @match &session.token { Some(token) => { "token " (token) }, None => "you" } }
            td { (session.address) }
            td { (at(session.created_at)) }
            td { @if session.current { "now" } @else { (ago(session.seen_at, visit.now)) } }
            td { (at(session.expires_at)) }
            td.end { (form::button(visit, &links::end_session(session.id), "End")) }
        }
    }
}

fn tokens(tokens: &[Token]) -> Markup {
    html! {
        @if tokens.is_empty() {
            (empty(&html! { p { "You have no tokens. Programs use them, and " code { "everscan" } " on machines without a browser." } }))
        } @else {
            (table("Tokens", &["name", "expires", "last used"], &html! {
                @for token in tokens {
                    tr {
                        td { (token.name) }
                        td { (expiry(token)) }
                        td { (last_used(token)) }
                    }
                }
            }))
        }
    }
}

pub(super) fn expiry(token: &Token) -> Markup {
    html! {
        @match token.expires_at { Some(expires) => (at(expires)), None => "never" }
        @if token.expires_soon { " " span.tag { "soon" } }
    }
}

pub(super) fn last_used(token: &Token) -> Markup {
    html! { @match token.last_used { Some(day) => (date(day)), None => span.muted { "never" } } }
}

/// Settings that a script keeps in this browser. Without scripts they cannot work and are hidden.
fn browser() -> Markup {
    html! {
        noscript { p.body { "Theme, times and shortcuts need a script. The theme is that of the system." } }
        div.body.fields data-scripted {
            div.field {
                label for="theme" { "Theme" }
                select #theme data-setting="theme" {
                    @for theme in Theme::ALL { option value=(theme.as_str()) { (theme.as_str()) } }
                }
            }
            div.field {
                label for="times" { "Times" }
                select #times data-setting="times" {
                    option value="local" { "in my time zone" }
                    option value="utc" { "in UTC" }
                }
            }
            div.field {
                label for="keys" { "Keyboard shortcuts" }
                select #keys data-setting="keys" {
                    option value="on" { "on" }
                    option value="off" { "off" }
                }
            }
            p { button.button type="button" data-opens="shortcuts" { "Show the shortcuts" } }
        }
    }
}
