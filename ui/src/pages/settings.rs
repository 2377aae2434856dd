//! The viewer's own settings and sessions.

use maud::{Markup, html};
use wire::Session;

use crate::list::{card, facts, table};
use crate::shell::{Menu, Shell, Theme, Visit, heading};
use crate::words::{ago, at};
use crate::{form, links};

/// `sessions` are the sessions of the viewer's token.
pub fn settings(visit: &Visit, sessions: &[Session]) -> Markup {
    let content = html! {
        (heading("Settings", &html! {}, &html! {}))
        (you(visit))
        (card("browser", "This browser", &html! {}, &browser()))
        (card("sessions", "Sessions", &html! { (sessions.len()) }, &html! {
            (table("Sessions", &["device", "address", "since", "last seen", "ends", ""], &html! {
                @for session in sessions { (row(visit, session)) }
            }))
            div.body {
                (form::guarded_with(visit, links::END_SESSIONS, "Sign out of all devices",
                    "Every browser with this token is signed out at once, this one too.", &html! {
                        label.check {
                            input type="checkbox" name="tokens" value="true";
                            " Also revoke the token, so that programs cannot use it"
                        }
                    }))
            }
        }))
    };
    Shell::new(visit, "Settings", Some(Menu::Settings)).page(&content)
}

fn you(visit: &Visit) -> Markup {
    let Some(viewer) = &visit.viewer else {
        return html! {};
    };
    let scopes = html! { @for scope in &viewer.scopes { span.tag { (scope.as_str()) } " " } };
    html! {
        (card("you", "You", &html! {}, &html! {
            div.body { (facts(&[("token", html! { (viewer.name) }), ("scopes", scopes)])) }
        }))
    }
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

fn row(visit: &Visit, session: &Session) -> Markup {
    html! {
        tr {
            td.wide { (session.device) @if session.current { " " span.tag { "this one" } } }
            td { (session.address) }
            td { (at(session.created_at)) }
            td { @if session.current { "now" } @else { (ago(session.seen_at, visit.now)) } }
            td { (at(session.expires_at)) }
            td.end { (form::button(visit, &links::end_session(session.id), "End")) }
        }
    }
}
