//! The sign-in, with a token or with a link.

use maud::{Markup, html};

use crate::form::{Field, Refused};
use crate::links;
use crate::shell::{Shell, Visit};

pub struct Login<'a> {
    /// Where the reader wanted to go: a path of this daemon.
    pub next: &'a str,
    /// Where the daemon has written its first token, while no browser is signed in.
    pub first_token: Option<&'a str>,
    pub refused: &'a Refused,
}

pub fn login(visit: &Visit, page: &Login<'_>) -> Markup {
    let content = html! {
        section.card.login {
            div.body {
                h1 { "Sign in to Everscan" }
                @if !page.refused.is_beside(&["token"]) { (page.refused.summary(&["token"])) }
                form method="post" action=(links::LOGIN) {
                    input type="hidden" name="next" value=(page.next);
                    (Field::new("token", "Access token").required()
                        .hint("The session is in this browser alone. It ends after 30 days, or after a week without use.")
                        .input("password", "", page.refused))
                    button.button.first type="submit" { "Sign in" }
                }
                p.muted { "Without a token at hand: " code { "everscan session link" } " prints a link that signs you in." }
                @if let Some(path) = page.first_token {
                    p { "No browser is signed in. The daemon has written its first token to " code { (path) } "." }
                }
            }
        }
    };
    Shell::new(visit, "Sign in", None).page(&content)
}

/// A link that signs a browser in, once.
pub struct SignInLink<'a> {
    /// The name of the token that made it.
    pub token: &'a str,
    pub link: &'a str,
}

/// Asks before the link is used: programs that show a preview of it follow it, too.
pub fn sign_in_link(visit: &Visit, page: &SignInLink<'_>) -> Markup {
    let content = html! {
        section.card.login {
            div.body {
                h1 { "Sign in to Everscan" }
                p {
                    "This link signs this browser in once, with what the access token "
                    b { (page.token) } " may do."
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
