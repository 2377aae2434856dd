//! One workflow: its graph, its last day and its scans.

use chrono::TimeDelta;
use maud::{Markup, html};
use wire::{JobState, Revision, Scan, ScanStatus, Scope, StaleFile, Trigger, Workflow};

use super::feed::{Past, feed};
use super::suspension::{banner, resumed, toggle};
use super::workflows::workflow_state;
use crate::list::{card, diagnostics, empty, excerpt, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading, region};
use crate::words::{ago, at, count, grouped, in_future, short_commit, state, trigger, with_code};
use crate::{links, topics};

pub struct WorkflowPage<'a> {
    pub workflow: &'a Workflow,
    pub scans: &'a [ScanStatus],
    /// Its newest revisions.
    pub revisions: &'a [Revision],
    /// The graph of scans. The table of scans has the same content as text.
    pub graph: Markup,
    /// If the graph shows only a scan and its neighbours: that scan.
    pub focus: Option<&'a str>,
    /// The jobs of the last day or week, with one lane for each scan.
    pub lanes: Option<Lanes>,
    /// The history of each scan, in the order of `scans`.
    pub pasts: Vec<ScanPast>,
    /// The events of each scan.
    pub feed: &'a [Past<'a>],
}

pub struct Lanes {
    /// Empty if no job ran.
    pub chart: Markup,
    /// True for a week, false for a day.
    pub is_week: bool,
    /// If some scans have more jobs: the number of jobs per scan that were read.
    pub cut: Option<u64>,
}

/// The history of a scan in its table row.
#[derive(Default)]
pub struct ScanPast {
    pub bars: Markup,
    /// The usual run time.
    pub usual: Option<TimeDelta>,
}

pub fn workflow(visit: &Visit, page: &WorkflowPage<'_>) -> Markup {
    let workflow = page.workflow;
    let name = format!("{}/{}", workflow.source, workflow.name);
    let topic = topics::workflow(workflow.id);
    let title = workflow.title.as_deref().unwrap_or(&workflow.name);
    let actions = html! {
        a.button href=(links::revisions(&name)) { "File and revisions" }
        @if workflow.retired.is_none() || workflow.suspended.is_some() {
            (toggle(visit, &workflow.source, &links::below_workflow(&name), workflow.suspended.is_some()))
        }
    };
    let content = html! {
        (region("head", &[&topic, &topics::source(&workflow.source)], &html! {
            (heading(title, &html! {
                (workflow_state(workflow))
                span.tag { "revision " (workflow.revision.number) " · " (short_commit(&workflow.revision.commit)) }
            }, &actions))
            p.lead { (lead(page, &name)) }
            (banners(workflow, &name))
        }))
        (region("graph", &[&topic], &html! {
            @if !page.graph.0.is_empty() { (graph_card(page, &name)) }
        }))
        (region("lanes", &[&topic], &html! {
            @if let Some(lanes) = &page.lanes { (lanes_card(lanes, page.focus, &name)) }
        }))
        (region("scans", &[&topic], &scans(visit, page, &name)))
        div.two {
            (region("feed", &[&topic], &card("feed", "What happened, and what did not", &html! {}, &feed(visit, &name, workflow, page.scans, page.feed))))
            (newest_revisions(visit, page, &name))
        }
    };
    Shell::new(visit, title, Some(Menu::Workflows))
        .under([
            Crumb::new("Workflows", links::WORKFLOWS),
            Crumb::new(&workflow.source, links::source(&workflow.source)),
        ])
        .page(&content)
}

fn lead(page: &WorkflowPage<'_>, name: &str) -> Markup {
    let unfinished: u64 = page.scans.iter().map(|scan| scan.unfinished).sum();
    let path = links::with_query(links::JOBS, &[("workflow", name)]);
    html! {
        @if let Some(description) = &page.workflow.description { (description) " " }
        a href=(path) { (count(unfinished, "job", "jobs")) } @if unfinished == 1 { " runs or waits." } @else { " run or wait." }
        (resumed(page.workflow.resumed.as_ref()))
    }
}

fn banners(workflow: &Workflow, name: &str) -> Markup {
    html! {
        (banner(workflow.suspended.as_ref(), None))
        @if let Some(retired) = &workflow.retired {
            div.banner role="note" { p { b { "Retired: " } (with_code(&retired.message)) ". It starts no jobs." } }
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
                    Some(good) => { "; " a href=(links::revision(name, good.number)) { "revision " (good.number) } " stays active." }
                    None => { ". It has never been valid." }
                }
            }
            (diagnostics(&stale.diagnostics))
            @if let Some(lines) = &stale.excerpt { (excerpt(lines, &stale.diagnostics)) }
        }
    }
}

/// Up to this number of scans, the graph needs no filter.
const READ_WHOLE: usize = 8;

fn graph_card(page: &WorkflowPage<'_>, name: &str) -> Markup {
    let side = html! {
        // The legend of the icons.
        @for one in [Trigger::Cron, Trigger::Expr, Trigger::Callback, Trigger::Dispatch] { (trigger(one)) }
        @if page.focus.is_some() || page.scans.len() > READ_WHOLE { (focus(page, name)) }
    };
    let title = match page.focus {
        Some(scan) => format!("Who starts whom around {scan}"),
        None => "Who starts whom".to_owned(),
    };
    card("graph", &title, &side, &page.graph)
}

/// The form that limits the graph to one scan, or shows all scans again.
fn focus(page: &WorkflowPage<'_>, name: &str) -> Markup {
    let is_week = page.lanes.as_ref().is_some_and(|lanes| lanes.is_week);
    html! {
        form.actions method="get" action={ (links::workflow(name)) "#graph" } aria-label="Graph" {
            @if is_week { input type="hidden" name="lanes" value="week"; }
            select name="focus" aria-label="Scans in the graph" {
                option value="" { "all scans" }
                @for status in page.scans {
                    @let scan = status.scan.name.as_str();
                    option value=(scan) selected[page.focus == Some(scan)] { "around " (scan) }
                }
            }
            button.button.small type="submit" { "Show" }
        }
    }
}

fn lanes_card(lanes: &Lanes, focus: Option<&str>, name: &str) -> Markup {
    let (title, other, length) = match lanes.is_week {
        true => ("Last 7 days", "24 hours", ""),
        false => ("Last 24 hours", "7 days", "week"),
    };
    let parameters = [("lanes", length), ("focus", focus.unwrap_or_default())];
    let link = links::with_query(&links::workflow(name), &parameters);
    let side = html! { (lanes_legend()) span.muted { "○ slot without a job" } a.button.small href=(link) { (other) } };
    html! {
        (card("lanes", title, &side, &html! {
            @if lanes.chart.0.is_empty() { (empty(&html! { p { "No job ran in this time." } })) }
            (lanes.chart)
            @if let Some(most) = lanes.cut { p.body.small.muted { "Of the newest " (grouped(most)) " jobs of each scan." } }
        }))
    }
}

/// The legend of the shapes in lanes.
pub(super) fn lanes_legend() -> Markup {
    const STATES: [JobState; 5] = [
        JobState::Scheduled,
        JobState::Succeeded,
        JobState::Failed,
        JobState::Running,
        JobState::Cancelled,
    ];
    html! { @for one in STATES { (state(one)) } }
}

fn scans(visit: &Visit, page: &WorkflowPage<'_>, name: &str) -> Markup {
    let heads = [
        "scan", "starts", "last job", "when", "history", "usual", "next", "",
    ];
    html! {
        (card("scans", "Scans", &html! { (page.scans.len()) }, &html! {
            @if page.scans.is_empty() {
                (empty(&html! { p { "No scan of this workflow is active." } }))
            } @else {
                (table("Scans", &heads, &html! {
                    @for (place, scan) in page.scans.iter().enumerate() {
                        (scan_row(visit, scan, page.pasts.get(place), name))
                    }
                }))
            }
        }))
    }
}

fn scan_row(visit: &Visit, status: &ScanStatus, past: Option<&ScanPast>, name: &str) -> Markup {
    let scan = &status.scan;
    html! {
        tr {
            td.long { a href=(links::scan(name, &scan.name)) { (scan.name) } }
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
            td { @if let Some(past) = past { (past.bars) } }
            td.num { @if let Some(usual) = past.and_then(|past| past.usual) { (crate::words::usual(usual)) } }
            td {
                @if let (None, Some(next)) = (&status.suspended, status.next_slot) { (in_future(next, visit.now)) }
            }
            td.end {
                // A suspended scan cannot be dispatched.
                @if let Some(suspension) = &status.suspended {
                    a.tag href=(links::scan(name, &scan.name)) title={ "by " (suspension.by) ": " (suspension.reason) } { "suspended" }
                } @else if visit.may_in(&status.workflow.source, Scope::Dispatch) {
                    a.button.small href=(links::dispatch(name, &scan.name)) { "Dispatch" }
                }
            }
        }
    }
}

/// The triggers of a scan, as text.
pub(super) fn starts(scan: &Scan) -> Markup {
    html! {
        @if let Some(cron) = &scan.cron {
            "schedule " code { (cron) }
            @if let Some(timezone) = &scan.timezone { " " span.muted { (timezone) } }
        }
        @if let Some(expr) = &scan.expr {
            @if scan.cron.is_some() { " or " }
            code { (expr) }
        }
        @if let Some(callback) = &scan.callback {
            @if scan.cron.is_some() || scan.expr.is_some() { " or " }
            "callback " code { (callback) }
        }
        @match (&scan.inputs, scan.cron.is_none() && scan.expr.is_none() && scan.callback.is_none()) {
            (Some(inputs), true) if inputs.is_empty() => { "by hand" }
            (Some(inputs), true) => { "by hand, " (count(inputs.len() as u64, "input", "inputs")) }
            _ => {}
        }
    }
}

fn newest_revisions(visit: &Visit, page: &WorkflowPage<'_>, name: &str) -> Markup {
    let number = page.workflow.revision.number;
    let before = number.saturating_sub(1).to_string();
    let all = html! {
        @if number > 1 { a href=(links::with_query(&links::revision(name, number), &[("against", &before)])) { "compare" } }
        a href=(links::revisions(name)) { "all" }
    };
    html! {
        (card("revisions", "Revisions", &all, &html! {
            (table("Revisions", &["revision", "commit", "activated"], &html! {
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
        }))
    }
}
