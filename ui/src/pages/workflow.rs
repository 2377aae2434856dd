//! One workflow: its graph, its last day and its scans.

use maud::{Markup, html};
use wire::{Revision, Scan, ScanStatus, StaleFile, Workflow};

use super::workflows::workflow_state;
use crate::list::{card, diagnostics, empty, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading, region};
use crate::words::{ago, at, count, grouped, in_future, short_commit, state};
use crate::{links, topics};

pub struct WorkflowPage<'a> {
    pub workflow: &'a Workflow,
    pub scans: &'a [ScanStatus],
    /// Its newest revisions.
    pub revisions: &'a [Revision],
    /// Who starts whom. The table of scans says the same in words.
    pub graph: Markup,
    /// The jobs of the last day, a lane for each scan.
    pub lanes: Markup,
    /// The bars of the last jobs of each scan, in the order of `scans`.
    pub histories: Vec<Markup>,
}

pub fn workflow(visit: &Visit, page: &WorkflowPage<'_>) -> Markup {
    let workflow = page.workflow;
    let name = format!("{}/{}", workflow.source, workflow.name);
    let topic = topics::workflow(workflow.id);
    let title = workflow.title.as_deref().unwrap_or(&workflow.name);
    let revisions = html! { a.button href=(links::revisions(&name)) { "File and revisions" } };
    let content = html! {
        (region("head", &[&topic, &topics::source(&workflow.source)], &html! {
            (heading(title, &html! {
                (workflow_state(workflow))
                span.tag { "revision " (workflow.revision.number) " · " (short_commit(&workflow.revision.commit)) }
            }, &revisions))
            p.lead { (lead(page)) }
            (banners(workflow, &name))
        }))
        @if !page.graph.0.is_empty() {
            (region("graph", &[&topic], &card("graph", "Who starts whom", &html! {}, &page.graph)))
        }
        @if !page.lanes.0.is_empty() {
            (region("lanes", &[&topic], &card("lanes", "Last 24 hours", &html! {}, &page.lanes)))
        }
        (region("scans", &[&topic], &scans(visit, page, &name)))
        (newest_revisions(visit, page, &name))
    };
    Shell::new(visit, title, Some(Menu::Workflows))
        .under([
            Crumb::new("Workflows", links::WORKFLOWS),
            Crumb::new(&workflow.source, links::source(&workflow.source)),
        ])
        .page(&content)
}

fn lead(page: &WorkflowPage<'_>) -> Markup {
    let unfinished: u64 = page.scans.iter().map(|scan| scan.unfinished).sum();
    html! {
        @if let Some(description) = &page.workflow.description { (description) " " }
        b { (count(unfinished, "job", "jobs")) } " not over."
    }
}

fn banners(workflow: &Workflow, name: &str) -> Markup {
    html! {
        @if let Some(retired) = &workflow.retired {
            div.banner role="note" { p { b { "Retired: " } (retired.message) ". Nothing of it starts." } }
        }
        @if let Some(stale) = &workflow.stale { (stale_banner(stale, name)) }
        @if !workflow.warnings.is_empty() {
            details.card { summary { (count(workflow.warnings.len() as u64, "warning", "warnings")) " about the file" }
                (diagnostics(&workflow.warnings))
            }
        }
    }
}

fn stale_banner(stale: &StaleFile, name: &str) -> Markup {
    html! {
        div.banner.bad role="note" {
            p {
                b { "The file at the tip is invalid" } " since " (at(stale.since)) " (" (short_commit(&stale.commit)) ")"
                @match &stale.last_good {
                    Some(good) => { "; " a href=(links::revision(name, good.number)) { "revision " (good.number) } " goes on." }
                    None => { ". It has never been valid." }
                }
            }
            (diagnostics(&stale.diagnostics))
        }
    }
}

fn scans(visit: &Visit, page: &WorkflowPage<'_>, name: &str) -> Markup {
    let heads = [
        "scan", "starts", "last job", "when", "history", "jobs", "next", "",
    ];
    card(
        "scans",
        "Scans",
        &html! { (page.scans.len()) },
        &html! {
            @if page.scans.is_empty() {
                (empty(&html! { p { "No scan of this workflow is active." } }))
            } @else {
                (table("Scans", &heads, &html! {
                    @for (place, scan) in page.scans.iter().enumerate() {
                        (scan_row(visit, scan, page.histories.get(place), name))
                    }
                }))
            }
        },
    )
}

fn scan_row(visit: &Visit, status: &ScanStatus, history: Option<&Markup>, name: &str) -> Markup {
    let scan = &status.scan;
    let ended = &status.finished;
    html! {
        tr {
            td { a href=(links::scan(name, &scan.name)) { (scan.name) } }
            td.wide { (starts(scan)) }
            td {
                @if let Some(job) = &status.last_job { a.quiet href=(links::job(job.id)) { (state(job.state)) } }
                @else { span.muted { "never ran" } }
            }
            td {
                @if let Some(job) = &status.last_job {
                    (ago(job.finished_at.or(job.started_at).unwrap_or(job.created_at), visit.now))
                }
            }
            td { @if let Some(history) = history { (history) } }
            td.num {
                (grouped(ended.succeeded))
                @if ended.failed > 0 { span.failed-text { ", " (grouped(ended.failed)) " failed" } }
            }
            td { @if let Some(next) = status.next_slot { (in_future(next, visit.now)) } }
            td.end { @if visit.may("dispatch") { a.button.small href=(links::dispatch(name, &scan.name)) { "Dispatch" } } }
        }
    }
}

/// What starts a scan, in words.
pub(super) fn starts(scan: &Scan) -> Markup {
    html! {
        @if let Some(cron) = &scan.cron { "schedule " code { (cron) } }
        @if let Some(expr) = &scan.expr {
            @if scan.cron.is_some() { " or " }
            code { (expr) }
        }
        @match (&scan.inputs, scan.cron.is_none() && scan.expr.is_none()) {
            (Some(inputs), true) if inputs.is_empty() => { "by hand" }
            (Some(inputs), true) => { "by hand, " (count(inputs.len() as u64, "input", "inputs")) }
            _ => {}
        }
    }
}

fn newest_revisions(visit: &Visit, page: &WorkflowPage<'_>, name: &str) -> Markup {
    let all = html! { a href=(links::revisions(name)) { "all" } };
    card(
        "revisions",
        "Revisions",
        &all,
        &html! {
            (table("Revisions", &["revision", "commit", "active since"], &html! {
                @for revision in page.revisions {
                    tr {
                        td { a href=(links::revision(name, revision.number)) { (revision.number) } }
                        td { (short_commit(&revision.commit)) }
                        td {
                            @if let Some(since) = revision.activated_at { (ago(since, visit.now)) }
                            @else { "cannot be read" }
                            @if revision.id == page.workflow.revision.id { " " span.tag { "runs" } }
                        }
                    }
                }
            }))
        },
    )
}
