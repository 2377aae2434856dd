//! The version, health and licences of the daemon.

use std::collections::BTreeMap;

use maud::{Markup, html};
use wire::{Health, HealthStatus, Readiness, ReadyStatus};

use crate::list::{card, facts};
use crate::shell::{Menu, Shell, Visit, heading};
use crate::words::{bytes, condition, count, percent_of};

pub struct About<'a> {
    pub health: &'a Health,
    pub readiness: &'a Readiness,
    /// Only for viewers who may see it.
    pub state_folder: Option<&'a str>,
    /// Only for viewers who may see it.
    pub disk: Option<Disk>,
    /// Names and licences of the crates in the program.
    pub licences: &'a [(&'a str, &'a str)],
}

/// The disk of the state folder, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Disk {
    pub total: u64,
    pub free: u64,
}

pub fn about(visit: &Visit, page: &About<'_>) -> Markup {
    let ready = match page.readiness.status {
        ReadyStatus::Ready => condition("succeeded", "ready"),
        ReadyStatus::NotReady => condition("failed", "not ready"),
    };
    let mut lines = vec![
        ("version", html! { (visit.version) }),
        ("health", health(page.health.status)),
        ("takes jobs", ready),
    ];
    if let Some(folder) = page.state_folder {
        lines.push(("state folder", html! { code { (folder) } }));
    }
    if let Some(Disk { total, free }) = page.disk {
        let used = total.saturating_sub(free);
        lines.push((
            "its disk",
            html! {
                (bytes(free)) " free of " (bytes(total)) ", " (percent_of(used, total)) " % used"
            },
        ));
    }
    let content = html! {
        (heading("About", &html! {}, &html! {}))
        (card("daemon", "This daemon", &html! {}, &html! {
            div.body {
                (facts(&lines))
                @if let Some(reason) = &page.health.reason { p.note { (reason) } }
                @for reason in &page.readiness.reasons { p.note { (reason) } }
            }
        }))
        (card("api", "For programs", &html! {}, &html! {
            div.body {
                p { "Programs use the HTTP API with an access token: " a href="/v0/docs" { "its documentation" } ", " a href="/v0/openapi.json" { "its description as OpenAPI" } "." }
                p { "Editors check workflow files with " a href="/v0/schema/workflow.json" { "their schema" } "." }
            }
        }))
        @if !page.licences.is_empty() {
            (card("licences", "Licences", &html! { (page.licences.len()) " crates" }, &html! {
                p.body { "Each crate in this program with its version, by the licence that it names. Everscan itself is under the Apache License 2.0." }
                @for (licence, crates) in by_licence(page.licences) {
                    details.body {
                        summary { (licence) ", " (count(crates.len() as u64, "crate", "crates")) }
                        p.small { (crates.join(", ")) }
                    }
                }
            }))
        }
    };
    Shell::new(visit, "About", Some(Menu::About)).page(&content)
}

fn by_licence<'a>(crates: &[(&'a str, &'a str)]) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, licence) in crates {
        found.entry(licence).or_default().push(name);
    }
    found
}

pub(super) fn health(status: HealthStatus) -> Markup {
    match status {
        HealthStatus::Ok => condition("succeeded", "ok"),
        HealthStatus::DiskLow => condition("scheduled", "the disk is getting full"),
        HealthStatus::DiskFull => condition("failed", "the disk is full"),
        HealthStatus::ClockJumped => condition("scheduled", "the clock jumped"),
        HealthStatus::SchedulesAhead => condition("scheduled", "schedules wait for the clock"),
        HealthStatus::Other => condition("skipped", "a status of a newer daemon"),
    }
}
