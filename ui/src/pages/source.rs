//! One source.

use maud::{Markup, html};
use wire::{Condition, Source, SourceAccess, StaleFile, Tip};

use super::sources::{looked_at, shape_of, source_state};
use crate::list::{card, diagnostics, excerpt, facts};
use crate::shell::{Crumb, Menu, Shell, Visit, heading, region};
use crate::words::{at, condition, count, running_for, seconds, sentence, short_commit, with_code};
use crate::{form, links, topics};

pub fn source(visit: &Visit, source: &Source) -> Markup {
    let topic = topics::source(&source.name);
    let actions = html! {
        @if visit.may("project:write") { (form::button(visit, &links::sync_source(&source.name), "Look now")) }
        @if let Some(tip) = source.tip.as_ref().filter(|_| source.is_held() && visit.may("project:write")) {
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
        ("looks every", html! { (seconds(source.interval_seconds)) }),
        ("looked at", looked_at(visit, source)),
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

/// The button that lets a held tip be applied. The form names the commit, so that no later one is approved unseen.
fn approval(visit: &Visit, source: &Source, commit: &str) -> Markup {
    form::guarded_with(
        visit,
        &links::approve_source(&source.name),
        "Let them retire",
        "The condition below names the workflows. Nothing new of them starts then, and what waits is cancelled.",
        &html! { input type="hidden" name="commit" value=(commit); },
    )
}

/// Where the token and the authorities come from. The page has no value of a token, so it can show none.
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

/// The commits that came and went between two looks.
fn passed_over(tip: &Tip) -> Markup {
    html! {
        @if !tip.passed_over.is_empty() {
            details {
                summary {
                    @if tip.more_passed_over { "More than " }
                    (count(tip.passed_over.len() as u64, "commit", "commits")) " passed over since the tip before: never active"
                }
                p { @for commit in &tip.passed_over { (short_commit(commit)) " " } }
            }
        }
    }
}

fn tip(source: &Source) -> Markup {
    card(
        "tip",
        "Tip",
        &html! {},
        &html! {
            div.body {
                @match &source.tip {
                    Some(tip) => {
                        p { (short_commit(&tip.commit)) " " b { (tip.summary) } }
                        p.muted { "By " (tip.author) ", seen " (at(tip.seen_at)) ". Tip number " (tip.number) "." }
                        (passed_over(tip))
                        @if tip.history_rewritten { p.note { "The history was rewritten: the tip before it is not among its ancestors." } }
                    }
                    None => { p { "No tip was read completely yet. The conditions say why." } }
                }
            }
        },
    )
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
                    Some(good) => { "Revision " (good.number) " goes on." }
                    None => { "It has never been valid, so nothing of it runs in " (source.name) "." }
                }
            }
        }
        (diagnostics(&file.diagnostics))
        @if let Some(lines) = &file.excerpt { (excerpt(lines, &file.diagnostics)) }
    }
}
