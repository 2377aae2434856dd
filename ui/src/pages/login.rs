//! Sign-in with a token or a link.

use maud::{Markup, html};

use crate::form::{Field, Refused};
use crate::links;
use crate::shell::{Shell, Visit};

pub struct Login<'a> {
    /// The path to open after the sign-in.
    pub next: &'a str,
    /// The file with the daemon's first token, while no browser is signed in.
    pub first_token: Option<&'a str>,
    pub refused: &'a Refused,
}

pub fn login(visit: &Visit, page: &Login<'_>) -> Markup {
    let content = html! {
        section.card.login {
            div.body {
                h1 { "Sign in to Everscan" }
                @if !page.refused.concerns_only(&["token"]) { (page.refused.summary(&["token"])) }
                form method="post" action=(links::LOGIN) {
                    input type="hidden" name="next" value=(page.next);
                    (Field::new("token", "Access token").required()
                        .hint("The session is only in this browser. It ends after 30 days, or after a week without use.")
                        .input("password", "", page.refused))
                    button.button.first type="submit" { "Sign in" }
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
    /// The name of the token that created it.
    pub token: &'a str,
    pub link: &'a str,
}

/// Asks for a click before it consumes the link, because other programs open the link for a preview.
pub fn sign_in_link(visit: &Visit, page: &SignInLink<'_>) -> Markup {
    let content = html! {
        section.card.login {
            div.body {
                h1 { "Sign in to Everscan" }
                p {
                    "This link signs this browser in once, with the rights of the access token "
                    b { (page.token) } "."
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
