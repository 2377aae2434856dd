//! One scan: its past, its state, its schedule and its ledger.

use maud::{Markup, html};
use wire::{
    JobLine, LedgerRecord, Listening, Page, ScanStatus, Scope, Slot, SuspendedPart, UnfinishedJob,
    Why,
};

use super::ledger::{evaluation, ledger};
use super::suspension::{banner, resumed, toggle};
use super::workflow::starts;
use crate::list::{card, damaged, empty, more, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading, region};
use crate::words::{
    ago, at, attempt, between, causes, circle_sentence, count, grouped, in_future, job_link,
    running_for, sent, state, trigger, waits_for_its_time, what_it_waits_for, with_code,
};
use crate::{links, topics};

pub struct ScanPage<'a> {
    pub status: &'a ScanStatus,
    pub why: &'a Why,
    /// Its jobs, newest first.
    pub history: &'a Page<JobLine>,
    /// Its ledger, newest first.
    pub ledger: &'a Page<LedgerRecord>,
    pub slots: &'a [Slot],
    /// The bars of its last jobs.
    pub bars: Markup,
    /// True if the graph of its workflow has edges between it and other scans.
    pub has_neighbours: bool,
}

pub fn scan(visit: &Visit, page: &ScanPage<'_>) -> Markup {
    let scan = &page.status.scan;
    let project = &page.status.workflow.source;
    let name = links::workflow_name(&page.status.workflow);
    let topic = topics::scan(page.status.workflow.id, &scan.name);
    let path = links::scan(&name, &scan.name);
    let suspended = page.status.suspended.as_ref();
    let is_itself = suspended.is_some_and(|it| it.part == SuspendedPart::Scan);
    let actions = html! {
        @if visit.may_in(project, Scope::Dispatch) && page.why.state == "active" {
            // Not highlighted for a suspended scan, which cannot be dispatched.
            a.button.first[suspended.is_none()] href=(links::dispatch(&name, &scan.name)) data-key="d" { "Dispatch" }
        }
        @if page.why.state == "active" {
            (toggle(visit, project, &path, is_itself))
        }
        @if page.has_neighbours { a.button href=(links::graph_of_scan(&name, &scan.name)) { "Graph" } }
        a.button href=(links::with_query(links::JOBS, &[("workflow", &name), ("scan", &scan.name)])) { "Jobs" }
    };
    let content = html! {
        (region("head", &[&topic], &html! {
            (heading(&scan.name, &html! { @if page.why.state != "active" { span.tag { (page.why.state) } } }, &actions))
            p.lead { "Starts: " (starts(scan)) ". " (finished(page.status)) (resumed(page.status.resumed.as_ref())) }
            (banner(suspended, Some(&name)))
        }))
        @if visit.may(Scope::JobRead) { (region("past", &[&topic], &past(visit, page))) }
        div.two {
            (region("now", &[&topic, topics::DELIVERIES], &now(visit, page)))
            (region("schedule", &[&topic], &schedule(visit, page)))
        }
        (region("ledger", &[&topic], &html! {
            (damaged(&page.ledger.damaged))
            (card("ledger", "What was decided", &html! { "newest first" }, &ledger(scan, &page.ledger.items)))
        }))
        (more(&path, &[], page.ledger.next_cursor.as_deref()))
        (region("declares", &[&topic], &declares(page.status, &name)))
    };
    Shell::new(visit, &scan.name, Some(Menu::Workflows))
        .under([
            Crumb::new("Workflows", links::WORKFLOWS),
            Crumb::new(&name, links::workflow(&name)),
        ])
        .page(&content)
}

fn finished(status: &ScanStatus) -> Markup {
    let ended = &status.finished;
    html! {
        b { (grouped(ended.succeeded)) } " succeeded, " b { (grouped(ended.failed)) } " failed, "
        (grouped(ended.cancelled)) " cancelled, " (grouped(ended.skipped)) " skipped."
    }
}

fn past(visit: &Visit, page: &ScanPage<'_>) -> Markup {
    let jobs = &page.history.items;
    let heads = ["state", "started by", "runner", "took", "when", "job"];
    let side = match jobs.is_empty() {
        true => html! {},
        false => html! { (count(jobs.len() as u64, "job", "jobs")) },
    };
    html! {
        (damaged(&page.history.damaged))
        (card("past", "Last jobs", &side, &html! {
            @if jobs.is_empty() {
                (empty(&html! {
                    p {
                        @if page.why.unfinished.is_empty() { "It never ran" (never(page)) "." }
                        @else { "No job has ended yet." }
                    }
                }))
            } @else {
                @if !page.bars.0.is_empty() { div.scroll tabindex="0" role="group" aria-label="Chart of the last jobs" { div.body { (page.bars) } } }
                details { summary { "As a table" }
                    (table("Last jobs", &heads, &html! { @for job in jobs { (row(visit, job)) } }))
                }
            }
        }))
    }
}

/// Why a scan never ran, if the ledger says so.
fn never(page: &ScanPage<'_>) -> Markup {
    html! {
        @if let Some(record) = page.ledger.items.first()
            && let wire::LedgerOutcome::NotMade { message, .. } = &record.outcome
        {
            ": " (with_code(message))
        }
    }
}

fn row(visit: &Visit, job: &JobLine) -> Markup {
    html! {
        tr {
            td { (state(job.state)) }
            td { (trigger(job.trigger)) }
            td { @if let Some(runner) = &job.runner { (runner) } }
            td.num {
                @match (job.started_at, job.finished_at) {
                    (Some(started), Some(finished)) => { (between(started, finished)) }
                    (Some(started), None) => { (running_for(started, visit.now)) }
                    (None, _) => {}
                }
            }
            td { (ago(job.finished_at.unwrap_or(job.created_at), visit.now)) }
            td { (job_link(job.id)) }
        }
    }
}

fn now(visit: &Visit, page: &ScanPage<'_>) -> Markup {
    let why = page.why;
    let then = match why.suspended {
        Some(_) => "once it is resumed, ",
        None => "",
    };
    html! {
        (card("now", "Why it runs or does not", &html! {}, &html! {
            div.body.why {
                @if let Some(suspension) = &why.suspended {
                    p {
                        b { "It is suspended" } ": no job of it starts until "
                        @match suspension.part { SuspendedPart::Scan => "it", SuspendedPart::Workflow => "its workflow" }
                        " is resumed."
                    }
                }
                @if let Some(gone) = &why.removed_by {
                    p { "Revision " a href=(links::revision(&why.workflow, gone.number)) { (gone.number) } " removed the scan." }
                }
                @if let Some(circle) = &why.circle {
                    p { b { "It is in a circle" } " with " (circle.scans.len() - 1) " more: " (circle_sentence(circle)) "." }
                }
                @if let Some(former) = &why.renamed_from {
                    p {
                        "It was " b { (former) } " before and keeps its results. "
                        a href=(links::with_query(links::JOBS, &[("workflow", &why.workflow), ("scan", former)])) { "Its earlier jobs" }
                        " are under that name."
                    }
                }
                @for job in &why.unfinished { (unfinished(visit, job)) }
                @if let Some(newest) = &why.newest {
                    p { "Its newest job, " (job_link(newest.id)) ", was made " (ago(newest.created_at, visit.now)) " because of " (causes(&newest.causes)) "." }
                }
                @for message in &why.messages { p { "About its newest job: a message " (sent(message)) "." } }
                @if let Some(cut) = &why.cut_job { p.note { "The log of " (job_link(cut.id)) " was cut at its limit." } }
                @if let Some(listening) = &why.callback { (heard(listening)) }
                @match &why.expr {
                    Some(watching) => {
                        p { "Its expression now:" }
                        @match &watching.now {
                            Some(now) => { (evaluation(now)) }
                            None => { p { code { (watching.expression) } } }
                        }
                        p { "It is evaluated at the next success of " (names(&watching.after_successes))
                            @if !watching.after_failures.is_empty() { ", or the next failure of " (names(&watching.after_failures)) }
                            "."
                        }
                    }
                    None if why.cron.is_some() => { p { "It has no expression: " (then) "its schedule starts it, or somebody by hand." } }
                    None if why.callback.is_some() => {}
                    None => { p { "It has neither a schedule nor an expression: " (then) "somebody starts it by hand." } }
                }
            }
        }))
    }
}

fn heard(listening: &Listening) -> Markup {
    html! {
        p {
            "Interactions of callback server "
            @match &listening.id {
                Some(id) => a href=(links::callback(id)) { (listening.server) },
                None => b { (listening.server) },
            }
            " start it, at most every " (listening.min_interval) "."
            @if let Some(number) = listening.considered { " It has considered them up to number " (number) "." }
        }
        @if let Some(problem) = &listening.problem { p { b { "None can come" } ": " (problem) "." } }
        @if let Some(waiting) = &listening.waiting {
            p {
                (count(waiting.count, "interaction waits", "interactions wait")) " (" (waiting.first)
                @if waiting.last > waiting.first { " to " (waiting.last) }
                ") until " (waiting.until) "."
                @if waiting.own > 0 { " " (waiting.own) " of them used names of its own jobs and start nothing." }
            }
        }
    }
}

/// Any one of these scans; if there are none, any scan.
fn names(scans: &[String]) -> Markup {
    html! {
        @if scans.is_empty() { "any other scan" }
        @for (at, scan) in scans.iter().enumerate() {
            @if at > 0 { " or " }
            b { (scan) }
        }
    }
}

fn unfinished(visit: &Visit, job: &UnfinishedJob) -> Markup {
    let which = attempt(job.attempt, job.attempts);
    html! {
        p {
            (state(job.state)) " " (job_link(job.id)) ", made " (ago(job.created_at, visit.now))
            @if !job.waiting.as_ref().is_some_and(waits_for_its_time) { (which) }
            @if let Some(waiting) = &job.waiting { ". " (what_it_waits_for(waiting, job.not_before, &which)) }
        }
    }
}

fn schedule(visit: &Visit, page: &ScanPage<'_>) -> Markup {
    let Some(cron) = &page.why.cron else {
        return html! {};
    };
    html! {
        (card("schedule", "Schedule", &html! { code { (cron.schedule) } }, &html! {
            div.body {
                p { (cron.description) ", " (cron.timezone) "." }
                @if let Some(ahead) = cron.ahead {
                    p.note { "It already ran for times up to " (at(ahead)) ", ahead of the clock. It starts nothing until then." }
                }
                @if page.slots.is_empty() {
                    p { @if page.status.suspended.is_some() { "It is suspended, so no slot starts a job." } @else { "There is no next slot." } }
                }
            }
            @if !page.slots.is_empty() {
                (table("Next slots", &["your time", &cron.timezone, ""], &html! {
                    @for slot in page.slots {
                        tr {
                            td { (at(slot.at)) }
                            td { (slot.local.format("%a %H:%M")) }
                            td.muted {
                                @if slot.at < visit.now { "waits for a job to end" } @else { (in_future(slot.at, visit.now)) }
                                @if slot.schedule != cron.schedule { " " code { (slot.schedule) } }
                            }
                        }
                    }
                }))
            }
        }))
    }
}

fn declares(status: &ScanStatus, workflow: &str) -> Markup {
    let scan = &status.scan;
    html! {
        (card("declares", "What it declares", &html! { (count(u64::from(scan.steps), "step", "steps")) }, &html! {
            dl.pairs {
                div {
                    dt { "runs on" }
                    dd {
                        @if scan.runs_on.is_empty() { "any runner" }
                        @for label in &scan.runs_on { span.tag { (label) } " " }
                    }
                }
                @if let Some(checkout) = &scan.checkout {
                    div {
                        dt { "checkout" }
                        dd { @if checkout == "true" { "the whole repository" } @else { code { (checkout) } } }
                    }
                }
                @if let Some(callback) = &scan.callback_server {
                    div {
                        dt { "callback server" }
                        dd { (callback) }
                    }
                }
                @if let Some(retry) = &scan.retry {
                    div {
                        dt { "retry" }
                        dd { (count(u64::from(retry.attempts), "further job", "further jobs")) ", the first after " (retry.backoff) }
                    }
                }
                @if let Some(expect) = &status.expect { div { dt { "expect" } dd { code { (expect.to_string()) } } } }
                @if let Some(proposed) = &status.proposed && status.proposed != status.expect {
                    div { dt { "suggested" } dd { code { "expect: " (proposed.to_string()) } } }
                }
                @if let Some(inputs) = &scan.inputs {
                    @for input in inputs {
                        div {
                            dt { "input " code { (input.key) } }
                            dd {
                                (input.kind)
                                @for (place, option) in input.options.iter().enumerate() {
                                    @if place == 0 { " of " } @else { ", " }
                                    code { (option) }
                                }
                                @if input.required { ", required" }
                                @if !input.default.is_empty() { ", default " code { (input.default) } }
                                @if let Some(text) = &input.description { div.muted { (text) } }
                            }
                        }
                    }
                }
                @for artifact in &scan.artifacts { div { dt { "artifact" } dd { code { (artifact) } } } }
                @for reading in &scan.reads {
                    div {
                        dt { @match reading.how { wire::How::Starts => "started by", wire::How::Reads => "reads" } }
                        dd { a href=(links::scan(workflow, &reading.scan)) { (reading.scan) } }
                    }
                }
            }
        }))
    }
}
