//! The sources.

use maud::{Markup, html};
use wire::{Condition, Page, Source};

use crate::list::{card, empty, more, table};
use crate::shell::{Menu, Shell, Visit, heading, region};
use crate::words::{ago, condition, count, running_for, short_commit};
use crate::{links, topics};

pub fn sources(visit: &Visit, page: &Page<Source>) -> Markup {
    let heads = [
        "source",
        "state",
        "tip",
        "looked at",
        "workflows",
        "invalid files",
    ];
    let content = html! {
        (heading("Sources", &html! {}, &html! {}))
        (region("sources", &[topics::SOURCES], &html! {
            @if page.items.is_empty() {
                (empty(&html! {
                    p { "No repository is followed. Name one in the daemon's configuration, below " code { "sources" } "." }
                }))
            } @else {
                (card("sources", "Followed", &html! { (count(page.items.len() as u64, "source", "sources")) }, &html! {
                    (table("Sources", &heads, &html! { @for source in &page.items { (row(visit, source)) } }))
                }))
            }
        }))
        (more(links::SOURCES, &[], page.next_cursor.as_deref()))
    };
    Shell::new(visit, "Sources", Some(Menu::Sources)).page(&content)
}

fn row(visit: &Visit, source: &Source) -> Markup {
    html! {
        tr {
            td {
                a href=(links::source(&source.name)) data-find="source" { (source.name) }
                p.small.muted.cut { (source.url) }
            }
            td { (source_state(source)) }
            td.wide {
                @if let Some(tip) = &source.tip { (short_commit(&tip.commit)) " " (tip.summary) } @else { span.muted { "none yet" } }
            }
            td { (looked_at(visit, source)) }
            td.num { (source.active_workflows) }
            td.num { @if !source.stale_files.is_empty() { (source.stale_files.len()) } }
        }
    }
}

/// When the repository was last read, and since when looks at it have failed.
pub(super) fn looked_at(visit: &Visit, source: &Source) -> Markup {
    let mut conditions = source.conditions.iter();
    let failed = conditions.find(|one| one.kind == "Fetched" && one.status == "false");
    html! {
        @if let Some(checked) = source.checked_at { (ago(checked, visit.now)) }
        @match failed {
            Some(failed) => {
                @if source.checked_at.is_some() { ", " }
                @else if source.tip.is_none() { "no look has succeeded, " }
                "failing for " (running_for(failed.changed_at, visit.now))
            }
            None if source.checked_at.is_none() => { span.muted { "never" } }
            None => {}
        }
    }
}

/// The most important condition of a source, in a word.
pub(super) fn source_state(source: &Source) -> Markup {
    let is = |kind: &str, status: &str| {
        source
            .conditions
            .iter()
            .any(|one| one.kind == kind && one.status == status)
    };
    if is("Stalled", "true") {
        condition("failed", "stalled")
    } else if is("Fetched", "false") {
        condition("failed", "not read")
    } else if source.is_held() {
        condition("failed", "held")
    } else if is("Valid", "false") {
        condition("scheduled", "invalid files")
    } else if is("Active", "false") {
        condition("failed", "not active")
    } else if is("Reconciling", "true") {
        condition("running", "looking")
    } else if is("Active", "true") && source.active_workflows == 0 {
        condition("skipped", "no workflows")
    } else if is("Active", "true") {
        condition("succeeded", "active")
    } else {
        condition("skipped", "unknown")
    }
}

/// Whether a condition is as it should be. `Stalled` and `Reconciling` are good when they are false.
pub(super) fn shape_of(condition: &Condition) -> &'static str {
    let is_good_when_true = !matches!(condition.kind.as_str(), "Stalled" | "Reconciling");
    match condition.status.as_str() {
        "true" if is_good_when_true => "succeeded",
        "false" if !is_good_when_true => "succeeded",
        "true" if condition.kind == "Reconciling" => "running",
        "true" | "false" => "failed",
        _ => "skipped",
    }
}
