//! The registered runners.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use wire::{Page, Registration, Runner};

use crate::list::{card, empty, more, table};
use crate::shell::{Menu, Shell, Visit, heading, region};
use crate::words::{ago, at, condition, copy_button, count, job_link};
use crate::{form, links, topics};

pub struct Runners<'a> {
    pub runners: &'a Page<Runner>,
    /// The bars of slots of each runner, in their order.
    pub slots: Vec<Markup>,
    /// A new registration. Only the answer to the form that made it has it.
    pub registration: Option<&'a Registration>,
    /// The address of the daemon, for the command that registers a runner.
    pub server: &'a str,
}

pub fn runners(visit: &Visit, page: &Runners<'_>) -> Markup {
    let runners = &page.runners.items;
    let connected = runners.iter().filter(|runner| runner.connected).count();
    let actions = html! {
        @if visit.may("runner:write") { (form::button(visit, links::REGISTRATIONS, "Register a runner")) }
    };
    let heads = ["runner", "state", "labels", "slots", "jobs now", "version"];
    let content = html! {
        (heading("Runners", &html! {}, &actions))
        @if let Some(registration) = page.registration { (registered(registration, page.server)) }
        (region("runners", &[topics::RUNNERS, topics::JOBS], &html! {
            @if runners.is_empty() {
                (empty(&html! {
                    p { "No runner is registered, so jobs wait. A runner is a program that executes them on its machine." }
                }))
            } @else {
                (card("runners", "Registered", &html! { (connected) " of " (runners.len()) " connected" }, &html! {
                    (table("Runners", &heads, &html! {
                        @for (place, runner) in runners.iter().enumerate() {
                            (row(visit, runner, page.slots.get(place)))
                        }
                    }))
                }))
            }
        }))
        (more(links::RUNNERS, &[], page.runners.next_cursor.as_deref()))
    };
    Shell::new(visit, "Runners", Some(Menu::Runners)).page(&content)
}

fn registered(registration: &Registration, server: &str) -> Markup {
    let command = format!(
        "SERVICE_REGISTRATION_TOKEN={} everscan-runner configure --url {server} && everscan-runner run",
        registration.token
    );
    card(
        "registration",
        "A new registration",
        &html! { "ends " (at(registration.expires_at)) },
        &html! {
            div.body {
                p { "Run this on the runner's machine. The token is shown once and is good for one runner." }
                pre.once { code { (command) } }
                p { (copy_button(&command, "Copy the command")) }
            }
        },
    )
}

fn row(visit: &Visit, runner: &Runner, slots: Option<&Markup>) -> Markup {
    html! {
        tr {
            td { a href=(links::runner(runner.id)) data-find="runner" { (runner.name) } }
            td { (heard(runner, visit.now)) }
            td { (labels(runner)) }
            td {
                @if let Some(slots) = slots { (slots) " " }
                (runner.taken) " of " (runner.capacity)
            }
            td {
                @for (place, job) in runner.running.iter().enumerate() {
                    @if place > 0 { ", " }
                    (job_link(*job))
                }
            }
            td { (runner.version) @if runner.version != visit.version { " " span.tag { "daemon: " (visit.version) } } }
        }
    }
}

pub(super) fn labels(runner: &Runner) -> Markup {
    html! {
        @if runner.labels.is_empty() { span.muted { "none" } }
        @for label in &runner.labels { span.tag { (label) } " " }
        @if runner.exclusive { span.muted { "only these" } }
    }
}

/// Whether a runner is connected, and when it was heard.
pub(super) fn heard(runner: &Runner, now: DateTime<Utc>) -> Markup {
    html! {
        (if runner.connected { condition("succeeded", "connected") } else { condition("failed", "not connected") })
        " "
        span.muted {
            @match runner.heard_at {
                Some(heard) => { "heard " (ago(heard, now)) }
                None => { "not heard since the daemon started" }
            }
        }
    }
}

/// How many slots are taken, in words.
pub(super) fn taken(runner: &Runner) -> String {
    format!(
        "{} of {}",
        runner.taken,
        count(u64::from(runner.capacity), "slot", "slots")
    )
}
