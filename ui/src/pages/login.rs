//! Signing in: with a password, a token or a link. Setting a password with a link, and the confirmation of a device.

use std::net::IpAddr;

use maud::{Markup, html};

use super::settings::new_password;
use crate::form::{Field, Refused};
use crate::shell::{Shell, Visit, heading};
use crate::{form, links};

pub struct Login<'a> {
    /// The path to open after the sign-in.
    pub next: &'a str,
    /// True if a user has a password.
    pub passwords: bool,
    /// The file with the daemon's first token, while no browser is signed in.
    pub first_token: Option<&'a str>,
    pub refused: &'a Refused,
}

const FIELDS: [&str; 3] = ["user", "password", "token"];

pub fn login(visit: &Visit, page: &Login<'_>) -> Markup {
    let next = html! { input type="hidden" name="next" value=(page.next); };
    let content = html! {
        section.card.login {
            div.body {
                h1 { "Sign in to Everscan" }
                @if !page.refused.concerns_only(&FIELDS) { (page.refused.summary(&FIELDS)) }
                @if page.passwords {
                    form method="post" action=(links::LOGIN) {
                        (next)
                        (Field::new("user", "User").required().filled("username").input("text", "", page.refused))
                        (Field::new("password", "Password").required().filled("current-password").input("password", "", page.refused))
                        button.button.first type="submit" { "Sign in" }
                    }
                    h2 { "Or with an access token" }
                }
                form method="post" action=(links::LOGIN) {
                    (next)
                    (Field::new("token", "Access token").required()
                        .hint("The session is only in this browser. It ends after 30 days, or after a week without use.")
                        .input("password", "", page.refused))
                    button.button.first[!page.passwords] type="submit" { @if page.passwords { "Sign in with the token" } @else { "Sign in" } }
                }
                p.muted { "No token at hand? " code { "everscan session link" } " prints a link that signs you in." }
                @if let Some(path) = page.first_token {
                    p { "No browser is signed in. The daemon has written its first token to " code { (path) } "." }
                }
            }
        }
    };
    Shell::new(visit, "Sign in", None).page(&content)
}

/// A link that signs in one browser, once.
pub struct SignInLink<'a> {
    pub user: &'a str,
    /// The name of the token that made it. None for the whole person.
    pub token: Option<&'a str>,
    pub link: &'a str,
}

/// Asks for a click before it consumes the link, because other programs open the link for a preview.
pub fn sign_in_link(visit: &Visit, page: &SignInLink<'_>) -> Markup {
    let content = html! {
        section.card.login {
            div.body {
                h1 { "Sign in to Everscan" }
                p {
                    "This link signs this browser in once, as " b { (page.user) }
                    @if let Some(token) = page.token { ", with the rights of the access token " b { (token) } }
                    "."
                }
                form method="post" action=(links::LOGIN) {
                    input type="hidden" name="link" value=(page.link);
                    button.button.first type="submit" { "Sign in" }
                }
            }
        }
    };
    Shell::new(visit, "Sign in", None).page(&content)
}

/// An invitation, or a link that resets a password.
pub struct Welcome<'a> {
    pub user: &'a str,
    pub link: &'a str,
    pub is_invitation: bool,
    pub refused: &'a Refused,
}

/// Sets the password of a user, and signs the browser in.
pub fn welcome(visit: &Visit, page: &Welcome<'_>) -> Markup {
    let (title, note) = match page.is_invitation {
        true => ("Welcome to Everscan", "Choose a password to begin."),
        false => (
            "A new password",
            "Your other browsers and devices are signed out.",
        ),
    };
    let content = html! {
        section.card.login {
            div.body {
                h1 { (title) }
                p { "You are " b { (page.user) } ". " (note) }
                (page.refused.summary(&["password", "again"]))
                form method="post" action=(links::LOGIN) {
                    input type="hidden" name="link" value=(page.link);
                    (new_password(page.user, page.refused))
                    button.button.first type="submit" { "Set the password" }
                }
            }
        }
    };
    Shell::new(visit, title, None).page(&content)
}

/// A device that waits for somebody to confirm its sign-in.
pub struct Device<'a> {
    /// The code that the device shows.
    pub code: &'a str,
    pub name: &'a str,
    /// The address of the request.
    pub address: IpAddr,
}

pub enum DevicePage<'a> {
    /// Asks for the code.
    Asks {
        refused: &'a Refused,
    },
    Found(Device<'a>),
    /// Its user is signed in there.
    Confirmed {
        name: &'a str,
    },
}

pub fn device(visit: &Visit, page: &DevicePage<'_>) -> Markup {
    let content = html! {
        (heading("Sign in a device", &html! {}, &html! {}))
        section.card {
            div.body.fields {
                @match page {
                    DevicePage::Asks { refused } => {
                        (refused.summary(&["code"]))
                        form method="get" action=(links::DEVICE) {
                            (Field::new("code", "Code").required().hint("`everscan login` shows it, such as ABCD-EFGH.").input("text", "", refused))
                            button.button.first type="submit" { "Continue" }
                        }
                    }
                    DevicePage::Found(device) => (found(visit, device)),
                    DevicePage::Confirmed { name } => {
                        p { b { bdi { (name) } } " is signed in. You can close this page." }
                        p { a href=(links::SETTINGS) { "Your sessions" } }
                    }
                }
            }
        }
    };
    Shell::new(visit, "Sign in a device", None).page(&content)
}

fn found(visit: &Visit, device: &Device<'_>) -> Markup {
    let you = visit.viewer.as_ref().map_or("", |viewer| &viewer.name);
    html! {
        p { "The device " b { bdi { (device.name) } } " at " (device.address) " shows the code " b { code { (device.code) } } "." }
        p { "Confirm only if you have just run " code { "everscan login" } " there. It is then signed in as " b { (you) } ", and may do what this browser may do." }
        (form::post(visit, "device", links::DEVICE, &html! {
            input type="hidden" name="code" value=(device.code);
            button.button.first type="submit" { "Confirm the device" }
        }))
    }
}
