//! The list of jobs.

use maud::{Markup, html};
use wire::{Job, JobState, Page, Problem, Scope, Trigger};

use crate::form::{Field, Refused};
use crate::list::{damaged, empty, more, table};
use crate::shell::{Menu, Shell, Visit, heading};
use crate::words::{
    ago, at, attempt, between, explained, hits, icon, job_link, running_for, short_id, state,
    trigger, trigger_word, waits_for_its_time, waits_since, with_code,
};
use crate::{links, topics};

/// The filters in the address. An empty filter has no effect.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// The first or last digits of ids. Other filters are then not set.
    pub id: String,
    pub state: String,
    /// As `source/name`.
    pub workflow: String,
    pub scan: String,
    pub trigger: String,
    pub runner: String,
    pub reason: String,
}

impl JobFilter {
    fn parameters(&self) -> [(&'static str, &str); 7] {
        [
            ("id", &self.id),
            ("state", &self.state),
            ("workflow", &self.workflow),
            ("scan", &self.scan),
            ("trigger", &self.trigger),
            ("runner", &self.runner),
            ("reason", &self.reason),
        ]
    }

    fn is_set(&self) -> bool {
        self.parameters().iter().any(|(_, value)| !value.is_empty())
    }
}

pub struct Jobs<'a> {
    pub filter: &'a JobFilter,
    pub jobs: &'a Page<Job>,
    /// True unless this is the first page.
    pub is_later: bool,
    /// The errors of filters with unknown values.
    pub refused: &'a Refused,
}

pub fn jobs(visit: &Visit, page: &Jobs<'_>) -> Markup {
    let items = &page.jobs.items;
    let content = html! {
        (heading("Jobs", &html! {}, &html! {}))
        @if page.filter.id.is_empty() {
            (chips(page))
            @if !page.refused.concerns_only(&FIELDS) { (page.refused.summary(&FIELDS)) }
            (fields(page))
        } @else {
            p.lead { "Jobs whose id begins or ends with " code { (page.filter.id) } ", among the unfinished jobs and the newest finished ones. " a href=(links::JOBS) { "All jobs" } }
        }
        // A script shows it with the number of new jobs while the reader uses the list.
        a.button.first.news #news href=(links::with_query(links::JOBS, &page.filter.parameters())) hidden { "New jobs" }
        // Later pages are not updated, so that nothing moves.
        div.region #jobs data-live=[(!page.is_later).then_some(topics::JOBS)] data-calm {
            (damaged(&page.jobs.damaged))
            @if let Some(problem) = &page.refused.problem {
                (nothing_listed(problem, page.refused.concerns_only(&FIELDS)))
            } @else if items.is_empty() {
                (empty_list(page))
            } @else {
                section.card {
                    header { h2 { "Newest first" } div.side { (hits(items.len(), page.jobs.next_cursor.is_some())) } }
                    (job_table(visit, items))
                }
            }
        }
        (more(links::JOBS, &page.filter.parameters(), page.jobs.next_cursor.as_deref()))
    };
    Shell::new(visit, "Jobs", Some(Menu::Jobs)).page(&content)
}

fn empty_list(page: &Jobs<'_>) -> Markup {
    empty(&html! {
        @if page.jobs.next_cursor.is_some() {
            p { "No job matches so far. The next page continues with older jobs. " a href=(links::JOBS) { "Show all jobs" } "." }
        } @else if page.filter.is_set() {
            p { "No job matches. " a href=(links::JOBS) { "Show all jobs" } "." }
        } @else if page.is_later {
            p { "There are no more jobs. " a href=(links::JOBS) { "To the newest" } "." }
        } @else {
            p { "No scan has run yet. " a href=(links::WORKFLOWS) { "Workflows" } " shows what starts each scan." }
        }
    })
}

/// Replaces the list if a filter is invalid. `with_hint`: no summary shows the hint.
fn nothing_listed(problem: &Problem, with_hint: bool) -> Markup {
    empty(&html! {
        p { "No job is listed, because a filter is not valid. " a href=(links::JOBS) { "Show all jobs" } "." }
        @if with_hint && let Some(hint) = &problem.hint { p { (with_code(hint)) } }
    })
}

fn chips(page: &Jobs<'_>) -> Markup {
    let filter = page.filter;
    const STATES: [JobState; 6] = [
        JobState::Running,
        JobState::Scheduled,
        JobState::Failed,
        JobState::Succeeded,
        JobState::Cancelled,
        JobState::Skipped,
    ];
    let with = |state: &str| {
        let mut filter = filter.clone();
        state.clone_into(&mut filter.state);
        links::with_query(links::JOBS, &filter.parameters())
    };
    html! {
        nav.chips aria-label="States" {
            a.chip href=(with("")) aria-current=[filter.state.is_empty().then_some("true")] { "all" }
            @for state in STATES {
                a.chip href=(with(state.as_str())) aria-current=[(filter.state == state.as_str()).then_some("true")] {
                    (crate::words::state(state))
                }
            }
        }
        @if let Some(error) = page.refused.error("state") {
            p.error #filter-state-error { code { (filter.state) } " " (with_code(error)) }
        }
    }
}

/// The filters that have a field for their error.
const FIELDS: [&str; 6] = ["state", "workflow", "scan", "trigger", "runner", "reason"];

fn fields(page: &Jobs<'_>) -> Markup {
    let filter = page.filter;
    let text = |name: &'static str, label: &'static str, value: &str| {
        Field::new(name, label)
            .of("filter")
            .input("text", value, page.refused)
    };
    html! {
        form.filters method="get" action=(links::JOBS) role="search" aria-label="Jobs" {
            @if !filter.state.is_empty() { input type="hidden" name="state" value=(filter.state); }
            (text("workflow", "Workflow", &filter.workflow))
            (text("scan", "Scan", &filter.scan))
            (Field::new("trigger", "Started by").of("filter").select(&triggers(&filter.trigger), &filter.trigger, page.refused))
            (text("runner", "Runner", &filter.runner))
            (text("reason", "Reason", &filter.reason))
            button.button type="submit" { (icon("search")) "Filter" }
        }
    }
}

/// The triggers and their names. An unknown text stays in the list, so that its error has something to refer to.
fn triggers(chosen: &str) -> Vec<(String, String)> {
    let mut options = vec![(String::new(), "anything".to_owned())];
    for &trigger in Trigger::ALL {
        let name = trigger.as_str().to_owned();
        options.push((name, trigger_word(trigger).to_owned()));
    }
    if options.iter().all(|(name, _)| name != chosen) {
        options.push((chosen.to_owned(), chosen.to_owned()));
    }
    options
}

/// A table of jobs, also for other pages.
pub(super) fn job_table(visit: &Visit, jobs: &[Job]) -> Markup {
    let heads = [
        "state",
        "scan",
        "workflow",
        "started by",
        "reason",
        "runner",
        "waited",
        "took",
        "when",
        "job",
    ];
    table(
        "Jobs",
        &heads,
        &html! { @for job in jobs { (row(visit, job)) } },
    )
}

fn row(visit: &Visit, job: &Job) -> Markup {
    let workflow = links::workflow_name(&job.workflow);
    html! {
        tr id={ "job-" (job.id) } {
            td { (state(job.state)) }
            td.long { a href=(links::job(job.id)) data-find="job" data-name={ (job.scan) " " (short_id(job.id)) ", " (job.state.as_str()) } { (job.scan) } }
            td.long { a.quiet href=(links::workflow(&workflow)) { (job.workflow.source) "/" wbr; (job.workflow.name) } }
            td.long {
                (trigger(job.trigger))
                (attempt(job.attempt, job.attempts))
            }
            td.wide { (reason(job)) }
            td.long {
                @if let Some(runner) = &job.runner {
                    @if visit.may(Scope::RunnerRead) { a.quiet href=(links::runner(runner.id)) { (runner.name) } }
                    @else { (runner.name) }
                }
            }
            td.num {
                @match (job.started_at, job.state) {
                    (Some(started), _) => { (between(waits_since(job), started)) }
                    (None, JobState::Scheduled) if waits_since(job) <= visit.now => {
                        (running_for(waits_since(job), visit.now))
                    }
                    (None, _) => {}
                }
            }
            td.num { (took(job, visit)) }
            td { (ago(job.finished_at.or(job.started_at).unwrap_or(job.created_at), visit.now)) }
            td { (job_link(job.id)) }
        }
    }
}

/// Why a job is in its state. Steps count from 1 for people.
fn reason(job: &Job) -> Markup {
    if let Some(waiting) = &job.waiting {
        if let Some(due) = job.not_before.filter(|_| waits_for_its_time(waiting)) {
            return html! { "retry at " (at(due)) };
        }
        return explained(waiting);
    }
    with_code(&job.end_cause())
}

/// The run time so far.
pub(super) fn took(job: &Job, visit: &Visit) -> Markup {
    html! {
        @match (job.started_at, job.finished_at) {
            (Some(started), Some(finished)) => { (between(started, finished)) }
            (Some(started), None) => { (running_for(started, visit.now)) }
            (None, _) => {}
        }
    }
}
