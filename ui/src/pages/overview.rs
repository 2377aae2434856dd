//! What runs, what waits and what needs the reader.

use maud::{Markup, html};
use wire::{Health, HealthStatus, Job, JobState, MissingName, Runner, ScanStatus, Slot, Source};

use super::about::health;
use super::sources::{shape_of, source_state};
use crate::list::{card, empty, table};
use crate::shell::{Menu, Shell, Visit, heading, region};
use crate::words::{ago, condition, count, in_future, job_link, running_for, state};
use crate::{links, topics};

pub struct Overview<'a> {
    pub health: &'a Health,
    pub sources: &'a [Source],
    pub runners: &'a [Runner],
    pub scans: &'a [ScanStatus],
    /// Jobs that are not over, newest first.
    pub unfinished: &'a [Job],
    /// For each running job, in their order, how far it is against its usual time.
    pub progress: Vec<Markup>,
    /// The next slots of all schedules.
    pub slots: &'a [Slot],
    /// Secrets that scans name and that are not set, by project.
    pub missing_secrets: &'a [(&'a str, &'a [MissingName])],
    /// The last day of all workflows.
    pub lanes: Markup,
}

pub fn overview(visit: &Visit, page: &Overview<'_>) -> Markup {
    let all = [
        topics::JOBS,
        topics::SCANS,
        topics::SOURCES,
        topics::RUNNERS,
    ];
    let content = html! {
        (heading("Overview", &html! {}, &html! {}))
        (region("strip", &all, &strip(visit, page)))
        @if page.sources.is_empty() || page.scans.is_empty() { (first_steps(page)) }
        (region("needs", &all, &needs(visit, page)))
        div.two {
            (region("running", &[topics::JOBS], &running(visit, page)))
            (region("next", &[topics::SCANS], &next(visit, page)))
        }
        @if !page.lanes.0.is_empty() {
            (region("lanes", &[topics::JOBS], &card("lanes", "Last 24 hours", &html! {}, &page.lanes)))
        }
    };
    Shell::new(visit, "Overview", Some(Menu::Overview)).page(&content)
}

fn of_state(jobs: &[Job], state: JobState) -> impl Iterator<Item = &Job> {
    jobs.iter().filter(move |job| job.state == state)
}

fn strip(visit: &Visit, page: &Overview<'_>) -> Markup {
    let running = of_state(page.unfinished, JobState::Running).count();
    let waiting = of_state(page.unfinished, JobState::Scheduled).count();
    let oldest = of_state(page.unfinished, JobState::Scheduled)
        .map(|job| job.created_at)
        .min();
    let connected = page
        .runners
        .iter()
        .filter(|runner| runner.connected)
        .count();
    let bad = page.sources.iter().filter(|source| is_bad(source)).count();
    html! {
        dl.strip {
            div { dt { "running" } dd { a href=(links::with_query(links::JOBS, &[("state", "running")])) { (running) } } }
            div { dt { "waiting" } dd { a href=(links::with_query(links::JOBS, &[("state", "scheduled")])) { (waiting) } } }
            div { dt { "oldest wait" } dd { @match oldest { Some(since) => (running_for(since, visit.now)), None => "none" } } }
            @if visit.may("runner:read") {
                div { dt { "runners" } dd { a href=(links::RUNNERS) { (connected) " of " (page.runners.len()) } } }
            }
            div { dt { "sources" } dd { a href=(links::SOURCES) { (page.sources.len()) @if bad > 0 { ", " (bad) " with problems" } } } }
        }
        @if page.health.status != HealthStatus::Ok {
            div.banner.bad role="note" {
                p { (health(page.health.status)) @if let Some(reason) = &page.health.reason { ": " (reason) } }
            }
        }
    }
}

fn is_bad(source: &Source) -> bool {
    source
        .conditions
        .iter()
        .any(|one| shape_of(one) == "failed")
        || !source.stale_files.is_empty()
}

fn first_steps(page: &Overview<'_>) -> Markup {
    card(
        "first",
        "First steps",
        &html! {},
        &html! {
            ol.body.numbered {
                li {
                    @if page.sources.is_empty() { "Name a Git repository below " code { "sources" } " in the daemon's configuration." }
                    @else { a href=(links::SOURCES) { "A source" } " is followed." }
                }
                li { "Push a workflow file to its folder: " a href=(links::WORKFLOWS) { "an example" } "." }
                li {
                    @if page.runners.is_empty() { a href=(links::RUNNERS) { "Register a runner" } ", which executes the jobs." }
                    @else { "A runner is registered." }
                }
            }
        },
    )
}

fn needs(visit: &Visit, page: &Overview<'_>) -> Markup {
    let failed: Vec<&ScanStatus> = page
        .scans
        .iter()
        .filter(|scan| {
            scan.last_job
                .as_ref()
                .is_some_and(|job| job.state == JobState::Failed)
        })
        .collect();
    let bad: Vec<&Source> = page
        .sources
        .iter()
        .filter(|source| is_bad(source))
        .collect();
    let unheard: Vec<&Runner> = page
        .runners
        .iter()
        .filter(|runner| !runner.connected)
        .collect();
    let missing: usize = page
        .missing_secrets
        .iter()
        .map(|(_, names)| names.len())
        .sum();
    let all = failed.len() + bad.len() + unheard.len() + missing;
    card(
        "needs",
        "Needs you",
        &html! { (all) },
        &html! {
            @if all == 0 { (empty(&html! { p { "Nothing: the newest job of every scan is fine, and all sources and runners are heard." } })) }
            ul.feed {
                @for scan in failed { (failed_scan(visit, scan)) }
                @for source in bad {
                    li {
                        (source_state(source))
                        span {
                            "source " a href=(links::source(&source.name)) { (source.name) }
                            @if !source.stale_files.is_empty() { ": " (count(source.stale_files.len() as u64, "invalid file", "invalid files")) }
                        }
                        span {}
                    }
                }
                @for runner in unheard {
                    li {
                        (condition("failed", "not connected"))
                        span { "runner " a href=(links::runner(runner.id)) { (runner.name) } }
                        span.muted { @if let Some(heard) = runner.heard_at { "heard " (ago(heard, visit.now)) } }
                    }
                }
                @for (project, names) in page.missing_secrets {
                    @for missing in *names {
                        li {
                            (condition("failed", "missing"))
                            span { "secret " code { (missing.name) } " of " a href=(links::project(project)) { (project) } }
                            span {}
                        }
                    }
                }
            }
        },
    )
}

fn failed_scan(visit: &Visit, scan: &ScanStatus) -> Markup {
    let workflow = links::workflow_name(&scan.workflow);
    html! {
        @if let Some(job) = &scan.last_job {
            li {
                (state(job.state))
                span {
                    a href=(links::scan(&workflow, &scan.scan.name)) { (scan.scan.name) } " of " (workflow) ": " (job_link(job.id))
                }
                span.muted { (ago(job.finished_at.unwrap_or(job.created_at), visit.now)) }
            }
        }
    }
}

fn running(visit: &Visit, page: &Overview<'_>) -> Markup {
    let jobs: Vec<&Job> = of_state(page.unfinished, JobState::Running).collect();
    card(
        "running",
        "Running now",
        &html! { (jobs.len()) },
        &html! {
            @if jobs.is_empty() { (empty(&html! { p { "No job is running." } })) }
            @else {
                (table("Running now", &["scan", "runner", "runs", ""], &html! {
                    @for (place, job) in jobs.iter().enumerate() {
                        tr {
                            td { a href=(links::job(job.id)) { (job.scan) } " " span.muted { (links::workflow_name(&job.workflow)) } }
                            td { @if let Some(runner) = &job.runner { (runner.name) } }
                            td.num { @if let Some(started) = job.started_at { (running_for(started, visit.now)) } }
                            td.bar { @if let Some(progress) = page.progress.get(place) { (progress) } }
                        }
                    }
                }))
            }
        },
    )
}

fn next(visit: &Visit, page: &Overview<'_>) -> Markup {
    card(
        "next",
        "Next slots",
        &html! { (page.slots.len()) },
        &html! {
            @if page.slots.is_empty() { (empty(&html! { p { "No schedule has a next slot." } })) }
            @else {
                (table("Next slots", &["when", "scan", "schedule"], &html! {
                    @for slot in page.slots {
                        @let workflow = links::workflow_name(&slot.workflow);
                        tr {
                            td { (in_future(slot.at, visit.now)) }
                            td { a href=(links::scan(&workflow, &slot.scan)) { (slot.scan) } " " span.muted { (workflow) } }
                            td { code { (slot.schedule) } " " span.muted { (slot.timezone) } }
                        }
                    }
                }))
            }
        },
    )
}
