//! The card of the overview that lists what needs the reader: the open conditions.

use maud::{Markup, html};
use wire::{Job, JobState, OpenCondition, Scope, Source};

use super::{Overview, of_state};
use crate::form::{self, Field, Refused};
use crate::links;
use crate::list::{card, empty};
use crate::pages::sources::shape_of;
use crate::shell::Visit;
use crate::words::{ago, condition, in_future, job_link, linked, retry_sentence};

/// The most characters of a note.
const NOTE_CHARS: u64 = 500;

/// The silences that a reader can choose.
const SILENCES: [(&str, &str); 3] = [("3600", "1 hour"), ("86400", "1 day"), ("604800", "1 week")];

pub(super) fn needs(visit: &Visit, page: &Overview<'_>) -> Markup {
    let retries = of_state(page.unfinished, JobState::Scheduled);
    let retries: Vec<&Job> = retries.filter(|job| job.retry_of.is_some()).collect();
    let (noted, new): (Vec<_>, Vec<_>) = page
        .conditions
        .iter()
        .partition(|open| open.acknowledged.is_some() || open.silenced_until.is_some());
    html! {
        (card("needs", "Needs you", &html! { (new.len()) }, &html! {
            @if new.is_empty() { (empty(&html! { p { (nothing_needed(visit, !retries.is_empty())) } })) }
            ul.feed {
                @for open in &new { (row(visit, open)) }
            }
            @if !noted.is_empty() {
                details.body {
                    summary { (noted.len()) " acknowledged or silenced" }
                    ul.feed { @for open in &noted { (row(visit, open)) } }
                }
            }
            @if page.conditions_cut { p.body.small.muted { "These are the oldest. " code { "everscan condition list" } " lists all." } }
            // These need no action, and are not counted.
            @for job in retries { p.body.small.muted { (retry(job)) } }
        }))
    }
}

/// Says that nothing needs the viewer, limited to what the viewer may see.
fn nothing_needed(visit: &Visit, is_retrying: bool) -> &'static str {
    match (visit.may(Scope::WorkflowRead), is_retrying) {
        (false, _) => "Nothing that you may see.",
        (true, true) => "Nothing: all failed scans are being retried.",
        (true, false) => "Nothing.",
    }
}

fn row(visit: &Visit, open: &OpenCondition) -> Markup {
    let shape = match open.code.as_str() {
        "suspended" => "skipped",
        _ => "failed",
    };
    html! {
        li {
            (condition(shape, &open.code.replace('_', " ")))
            span {
                (about(open)) ": " (linked(&open.message, open.job.as_slice()))
                @if let Some(noted) = &open.acknowledged {
                    span.muted {
                        "; acknowledged by " (noted.by) " " (ago(noted.at, visit.now))
                        @if let Some(note) = &noted.note { ": " (note) }
                    }
                }
                @if let Some(until) = open.silenced_until { span.muted { "; silenced, which ends " (in_future(until, visit.now)) } }
                (forms(visit, open))
            }
            span.muted { (ago(open.since, visit.now)) }
        }
    }
}

/// What the condition is about.
fn about(open: &OpenCondition) -> Markup {
    let workflow = open.workflow.as_ref().map(links::workflow_name);
    html! {
        @match (&workflow, &open.scan) {
            (Some(workflow), Some(scan)) => { a href=(links::scan(workflow, scan)) { (scan) } " of " (workflow) }
            (Some(workflow), None) => { "workflow " a href=(links::workflow(workflow)) { (workflow) } }
            (None, _) => {
                @if let Some(runner) = &open.runner { "runner " a href=(links::runner(runner.id)) { (runner.name) } }
                @else if let Some(token) = &open.token { "token " a href=(links::TOKENS) { (token.name) } }
                @else if let Some(source) = &open.source { "source " a href=(links::source(source)) { (source) } }
                @else if let Some(project) = &open.project { "project " a href=(links::project(project)) { (project) } }
                @else { "everscand" }
            }
        }
    }
}

fn forms(visit: &Visit, open: &OpenCondition) -> Markup {
    let may = match &open.project {
        Some(project) => visit.may_in(project, Scope::ConditionWrite),
        None => visit.may(Scope::Admin),
    };
    let refused = Refused::default();
    let id = open.id.to_string();
    let note = Field::new("note", "A note for others")
        .of(&id)
        .at_most(NOTE_CHARS);
    let seconds = Field::new("seconds", "For how long").of(&id);
    let silences = SILENCES.map(|(value, label)| (value.to_owned(), label.to_owned()));
    html! {
        @if may {
            @if open.acknowledged.is_none() {
                (form::disclosed(visit, &links::acknowledge(open.id), "Acknowledge",
                    "Others see that somebody knows. It ends when the condition closes.",
                    &note.input("text", "", &refused)))
            }
            @if open.silenced_until.is_none() {
                (form::disclosed(visit, &links::silence(open.id), "Silence",
                    "It is folded away until then.",
                    &seconds.select(&silences, "", &refused)))
            }
        }
    }
}

/// A failure that is being retried.
fn retry(job: &Job) -> Markup {
    let workflow = links::workflow_name(&job.workflow);
    html! {
        a href=(links::scan(&workflow, &job.scan)) { (job.scan) } " of " (workflow) ": " (job_link(job.id))
        (retry_sentence(job)) "."
    }
}

pub(super) fn is_bad(source: &Source) -> bool {
    source
        .conditions
        .iter()
        .any(|one| shape_of(one) == "failed")
        || !source.stale_files.is_empty()
}
