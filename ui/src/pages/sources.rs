//! The list of sources, and the page of one source.

use maud::{Markup, html};
use wire::{Condition, Page, Scope, Source, SourceAccess, StaleFile, Tip};

use crate::list::{card, diagnostics, empty, excerpt, facts, more, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading, region};
use crate::words::{
    ago, at, condition, count, running_for, seconds, sentence, short_commit, with_code,
};
use crate::{form, links, topics, words};

pub fn sources(visit: &Visit, page: &Page<Source>) -> Markup {
    let heads = [
        "source",
        "state",
        "tip",
        "last poll",
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
            td { (last_poll(visit, source)) }
            td.num { (source.active_workflows) }
            td.num { @if !source.stale_files.is_empty() { (source.stale_files.len()) } }
        }
    }
}

/// The last successful poll, and since when polls have failed.
pub(super) fn last_poll(visit: &Visit, source: &Source) -> Markup {
    let mut conditions = source.conditions.iter();
    let failed = conditions.find(|one| one.kind == "Fetched" && one.status == "false");
    html! {
        @if let Some(checked) = source.checked_at { (ago(checked, visit.now)) }
        @match failed {
            Some(failed) => {
                @if source.checked_at.is_some() { ", " }
                @else if source.tip.is_none() { "no poll has succeeded, " }
                "failing for " (running_for(failed.changed_at, visit.now))
            }
            None if source.checked_at.is_none() => { span.muted { "never" } }
            None => {}
        }
    }
}

/// The most important condition of a source.
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
        condition("running", "polling")
    } else if is("Active", "true") && source.active_workflows == 0 {
        condition("skipped", "no workflows")
    } else if is("Active", "true") {
        condition("succeeded", "active")
    } else {
        condition("skipped", "unknown")
    }
}

/// The shape of a condition. `Stalled` and `Reconciling` are good when false.
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

pub fn source(visit: &Visit, source: &Source) -> Markup {
    let topic = topics::source(&source.name);
    let actions = html! {
        @if visit.may_in(&source.name, Scope::ProjectWrite) { (form::button(visit, &links::sync_source(&source.name), "Look now")) }
        @if let Some(tip) = source.tip.as_ref().filter(|_| source.is_held() && visit.may_in(&source.name, Scope::ProjectWrite)) {
            (approval(visit, source, &tip.commit))
        }
        a.button href=(links::project(&source.name)) { "Vars and secrets" }
    };
    let mut known = vec![
        ("repository", html! { code { (source.url) } }),
        (
            "reference",
            html! { @match &source.reference { Some(name) => code { (name) }, None => "the default branch" } },
        ),
        ("folder", html! { code { (source.path) } }),
        ("polled every", html! { (seconds(source.interval_seconds)) }),
        ("last poll", last_poll(visit, source)),
        ("workflows", html! { (source.active_workflows) " active" }),
    ];
    if source.access != SourceAccess::default() {
        known.push(("access", access(&source.access)));
    }
    let content = html! {
        (region("head", &[&topic], &html! {
            (heading(&source.name, &source_state(source), &actions))
            (facts(&known))
        }))
        (region("conditions", &[&topic], &card("conditions", "Conditions", &html! {}, &html! {
            ul.feed { @for condition in &source.conditions { (condition_row(visit, condition)) } }
        })))
        (region("tip", &[&topic], &tip(source)))
        (region("files", &[&topic], &files(source)))
    };
    Shell::new(visit, &source.name, Some(Menu::Sources))
        .under([Crumb::new("Sources", links::SOURCES)])
        .page(&content)
}

/// The button that approves a held tip. The form names the commit, so that no later commit is approved unseen.
fn approval(visit: &Visit, source: &Source, commit: &str) -> Markup {
    form::guarded_with(
        visit,
        &links::approve_source(&source.name),
        "Let them retire",
        "The condition below names the workflows. They start no new jobs then, and their waiting jobs are cancelled.",
        &html! { input type="hidden" name="commit" value=(commit); },
    )
}

/// The places of the token and the certificates. `wire` has no value of a token.
fn access(access: &SourceAccess) -> Markup {
    let token = access.token_file.as_ref().or(access.token_command.as_ref());
    html! {
        @match token {
            Some(place) => {
                @match &access.token_file { Some(_) => "token in ", None => "token from " }
                code { (place) }
                @if let Some(name) = &access.username { " as " code { (name) } }
            }
            None => { "no token" }
        }
        @if let Some(path) = &access.ca_file { ", authorities in " code { (path) } }
    }
}

fn condition_row(visit: &Visit, one: &Condition) -> Markup {
    html! {
        li {
            (condition(shape_of(one), &one.kind))
            span { (with_code(&sentence(&one.message))) }
            span.muted { "for " (running_for(one.changed_at, visit.now)) }
        }
    }
}

/// Commits that were never the tip of a poll.
fn passed_over(tip: &Tip) -> Markup {
    html! {
        @if !tip.passed_over.is_empty() {
            details {
                summary {
                    @if tip.more_passed_over { "More than " }
                    (count(tip.passed_over.len() as u64, "commit", "commits")) " skipped since the previous tip; never active"
                }
                p { @for commit in &tip.passed_over { (short_commit(commit)) " " } }
            }
        }
    }
}

fn tip(source: &Source) -> Markup {
    html! {
        (card("tip", "Tip", &html! {}, &html! {
            div.body {
                @match &source.tip {
                    Some(tip) => {
                        p { (short_commit(&tip.commit)) " " b { (tip.summary) } }
                        p.muted { "By " (tip.author) ", seen " (at(tip.seen_at)) ". Tip number " (tip.number) "." }
                        (passed_over(tip))
                        @if tip.history_rewritten { p.note { "The history was rewritten: the previous tip is not an ancestor of this one." } }
                    }
                    None => { p { "No tip was read completely yet. The conditions say why." } }
                }
            }
        }))
    }
}

fn files(source: &Source) -> Markup {
    let invalid = source.stale_files.len();
    html! {
        @if invalid > 0 {
            (card("files", "Invalid files", &html! { (count(invalid as u64, "file", "files")) }, &html! {
                @for file in &source.stale_files { (stale(source, file)) }
            }))
        }
        @if !source.warnings.is_empty() {
            (card("warnings", "Warnings", &html! { (source.warnings.len()) }, &diagnostics(&source.warnings)))
        }
    }
}

fn stale(source: &Source, file: &StaleFile) -> Markup {
    html! {
        div.body {
            h3 { code { (file.file) } }
            p.muted {
                "Since " (at(file.since)) ", " (short_commit(&file.commit)) ". "
                @match &file.last_good {
                    Some(good) => { "Revision " (good.number) " stays active." }
                    None if file.file == words::SETTINGS_FILE => { "The rules of its last valid version go on." }
                    None => { "It has never been valid, so it runs no jobs in " (source.name) "." }
                }
            }
        }
        (diagnostics(&file.diagnostics))
        @if let Some(lines) = &file.excerpt { (excerpt(lines, &file.diagnostics)) }
    }
}
