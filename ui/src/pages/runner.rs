//! One runner.

use maud::{Markup, html};
use wire::{Job, Runner, RunnerJob};

use super::jobs::job_table;
use super::overview::lanes_cut;
use super::runners::{heard, labels, taken};
use crate::list::{card, empty, facts, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading, region};
use crate::words::{at, copied_id, job_link, running_for, state};
use crate::{form, links, topics};

pub struct RunnerPage<'a> {
    pub runner: &'a Runner,
    /// The newest jobs that it executed.
    pub past: &'a [Job],
    /// Whether it may have executed others.
    pub has_more: bool,
    /// The bars of its slots.
    pub slots: Markup,
    /// When it was busy in the last day.
    pub lanes: Markup,
    /// The number of jobs in the lanes, if there are more.
    pub lanes_cut: Option<u64>,
}

pub fn runner(visit: &Visit, page: &RunnerPage<'_>) -> Markup {
    let runner = page.runner;
    let topic = topics::runner(runner.id);
    let actions = html! {
        @if visit.may("runner:write") {
            (form::guarded(visit, &links::remove_runner(runner.id), "Remove",
                "Its session ends. Jobs that it runs fail, unless they may be retried."))
        }
    };
    let content = html! {
        (heading(&runner.name, &copied_id(runner.id), &actions))
        (region("state", &[&topic, topics::JOBS], &html! {
            (facts(&[
                ("state", heard(runner, visit.now)),
                ("slots", html! { (page.slots) " " (taken(runner)) }),
                ("labels", labels(runner)),
                ("version", html! { (runner.version) }),
                ("capabilities", html! { (runner.capabilities.join(", ")) }),
                ("registered", at(runner.registered_at)),
            ]))
            (card("jobs", "Jobs that take its slots", &html! { (runner.jobs.len()) }, &html! {
                @if runner.jobs.is_empty() {
                    (empty(&html! { p { "No job that you may see takes a slot." } }))
                } @else {
                    (table("Jobs that take slots", &["state", "scan", "workflow", "runs", "job"], &html! {
                        @for job in &runner.jobs { (row(visit, job)) }
                    }))
                }
            }))
        }))
        @if visit.may("job:read") {
            (region("lanes", &[topics::JOBS], &lanes(page)))
            (card("past", "Last jobs", &html! {
                a href=(links::with_query(links::JOBS, &[("runner", &runner.name)])) { "all" }
            }, &html! {
                @if page.past.is_empty() {
                    (empty(&html! { p {
                        @if page.has_more { "It has executed none of the newest jobs." }
                        @else { "It has executed no job that is still known." }
                    } }))
                } @else {
                    (job_table(visit, page.past))
                }
            }))
        }
    };
    Shell::new(visit, &runner.name, Some(Menu::Runners))
        .under([Crumb::new("Runners", links::RUNNERS)])
        .page(&content)
}

fn lanes(page: &RunnerPage<'_>) -> Markup {
    if page.lanes.0.is_empty() {
        return html! {};
    }
    let content = html! { (page.lanes) (lanes_cut(page.lanes_cut)) };
    card("lanes", "Busy in the last 24 hours", &html! {}, &content)
}

fn row(visit: &Visit, job: &RunnerJob) -> Markup {
    let workflow = links::workflow_name(&job.workflow);
    html! {
        tr {
            td { (state(job.state)) @if job.state.is_terminal() { " " span.muted { "and still holds its slot" } } }
            td { a href=(links::job(job.id)) { (job.scan) } }
            td { a.quiet href=(links::workflow(&workflow)) { (workflow) } }
            td.num { @if let Some(started) = job.started_at { (running_for(started, visit.now)) } }
            td { (job_link(job.id)) }
        }
    }
}
