//! What runs, what waits and what needs the reader.

mod needs;

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use wire::{
    Circle, Health, HealthStatus, Job, JobLine, JobState, Project, Runner, ScanStatus, Scope, Slot,
    Source,
};

use self::needs::{is_bad, needs};
use super::about::health;
use super::workflow::lanes_legend;
use super::workflows::EXAMPLE;
use crate::list::{card, empty, table};
use crate::shell::{Menu, Shell, Visit, heading, region};
use crate::words::{copy_button, count, grouped, in_future, running_for};
use crate::{links, topics};

/// What the viewer may not see is empty, and is not spoken of.
pub struct Overview<'a> {
    /// Where programs find the daemon.
    pub server: &'a str,
    pub health: &'a Health,
    pub sources: &'a [Source],
    pub runners: &'a [Runner],
    pub scans: &'a [ScanStatus],
    /// Scans that have failed since their last success, and that nothing retries.
    pub failing: &'a [Failing<'a>],
    /// Scans of which it cannot be read whether they have failed.
    pub unreadable: &'a [&'a ScanStatus],
    /// Groups of scans that go in a circle, each with the name of its workflow.
    pub circles: &'a [(String, Circle)],
    /// Whether there are too many sources, runners or scans to look at all of them.
    pub is_cut: bool,
    /// The newest jobs that run and the newest that wait.
    pub unfinished: &'a [Job],
    /// All jobs that are not over.
    pub counts: Unfinished,
    /// For each running job, in their order, how far it is against its usual time.
    pub progress: Vec<Markup>,
    /// The next slots of all schedules.
    pub slots: &'a [Slot],
    /// The projects, each with the vars and secrets that scans name and that are not set.
    pub projects: &'a [Project],
    /// The last day of all workflows.
    pub lanes: Markup,
    /// The number of jobs in the lanes, if there are more.
    pub lanes_cut: Option<u64>,
}

/// How many jobs are not over.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unfinished {
    pub running: u64,
    pub waiting: u64,
    /// Since when the one waits that has waited longest.
    pub oldest_wait: Option<DateTime<Utc>>,
}

/// A scan whose newest job that ran to an end has failed, and that no job retries.
#[derive(Debug, Clone, Copy)]
pub struct Failing<'a> {
    pub scan: &'a ScanStatus,
    /// The newest failure.
    pub newest: &'a JobLine,
    /// Failures since the last success.
    pub failures: u64,
    /// When the last success ended, if that is known.
    pub succeeded_at: Option<DateTime<Utc>>,
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
        @if is_new(visit, page) { (first_steps(visit, page)) }
        (region("needs", &all, &needs(visit, page)))
        div.two {
            @if visit.may(Scope::JobRead) { (region("running", &[topics::JOBS], &running(visit, page))) }
            @if visit.may(Scope::WorkflowRead) { (region("next", &[topics::SCANS], &next(visit, page))) }
        }
        @if visit.may(Scope::JobRead) { (region("lanes", &[topics::JOBS], &lanes(page))) }
    };
    Shell::new(visit, "Overview", Some(Menu::Overview)).page(&content)
}

/// Whether there is nothing yet. A viewer who may not see whether there is something learns no first steps.
fn is_new(visit: &Visit, page: &Overview<'_>) -> bool {
    (visit.may(Scope::ProjectRead) && page.sources.is_empty())
        || (visit.may(Scope::WorkflowRead) && page.scans.is_empty())
}

fn of_state(jobs: &[Job], state: JobState) -> impl Iterator<Item = &Job> {
    jobs.iter().filter(move |job| job.state == state)
}

fn lanes(page: &Overview<'_>) -> Markup {
    if page.lanes.0.is_empty() {
        return html! {};
    }
    let content = html! { (page.lanes) (lanes_cut(page.lanes_cut)) };
    card("lanes", "Last 24 hours", &lanes_legend(), &content)
}

/// That lanes show fewer jobs than there are.
pub(super) fn lanes_cut(newest: Option<u64>) -> Markup {
    html! { @if let Some(newest) = newest { p.body.small.muted { "Of the newest " (count(newest, "job", "jobs")) "." } } }
}

fn strip(visit: &Visit, page: &Overview<'_>) -> Markup {
    let Unfinished {
        running,
        waiting,
        oldest_wait,
    } = page.counts;
    let connected = page
        .runners
        .iter()
        .filter(|runner| runner.connected)
        .count();
    let bad = page.sources.iter().filter(|source| is_bad(source)).count();
    html! {
        dl.strip {
            @if visit.may(Scope::JobRead) {
                div { dt { "running" } dd { a href=(links::with_query(links::JOBS, &[("state", "running")])) { (grouped(running)) } } }
                div { dt { "waiting" } dd { a href=(links::with_query(links::JOBS, &[("state", "scheduled")])) { (grouped(waiting)) } } }
                div { dt { "oldest wait" } dd { @match oldest_wait { Some(since) => (running_for(since, visit.now)), None => "none" } } }
            }
            @if visit.may(Scope::RunnerRead) {
                div { dt { "runners" } dd { a href=(links::RUNNERS) { (connected) " of " (page.runners.len()) } } }
            }
            @if visit.may(Scope::ProjectRead) {
                div { dt { "sources" } dd { a href=(links::SOURCES) { (page.sources.len()) @if bad > 0 { ", " (bad) " with problems" } } } }
            }
        }
        @if page.health.status != HealthStatus::Ok {
            div.banner.bad role="note" {
                p { (health(page.health.status)) @if let Some(reason) = &page.health.reason { ": " (reason) } }
            }
        }
    }
}

const CONFIGURATION: &str = "sources:
  - name: main
    url: /srv/git/scans.git
";

/// In a new shell nothing is known of the daemon.
fn runner_commands(server: &str) -> String {
    format!(
        "export SERVICE_URL={server}\nSERVICE_TOKEN=YOUR-TOKEN everscan runner register-token > registration-token\neverscan-runner configure --registration-token-file registration-token\neverscan-runner run\n"
    )
}

/// A text of a first step, and a button that copies it.
fn to_copy(text: &str, label: &str) -> Markup {
    html! { div.copied { pre tabindex="0" role="group" aria-label="Text to copy" { code { (text) } } (copy_button(text, label)) } }
}

fn first_steps(visit: &Visit, page: &Overview<'_>) -> Markup {
    let push = format!(
        "mkdir -p workflows\ncat > workflows/hello.yaml <<'END'\n{EXAMPLE}END\ngit add workflows && git commit -m 'A first workflow' && git push\n"
    );
    card(
        "first",
        "First steps",
        &html! {},
        &html! {
            ol.body.numbered {
                @if visit.may(Scope::ProjectRead) { li {
                    @if page.sources.is_empty() {
                        "Name a Git repository in the daemon's configuration, and start it again:"
                        (to_copy(CONFIGURATION, "Copy the configuration"))
                    } @else { a href=(links::SOURCES) { "A source" } " is followed." }
                } }
                li { "Push a workflow file to its folder:" (to_copy(&push, "Copy the commands that push a workflow")) }
                @if visit.may(Scope::RunnerRead) { li {
                    @if page.runners.is_empty() {
                        a href=(links::RUNNERS) { "Register a runner" } ", which executes the jobs:"
                        (to_copy(&runner_commands(page.server), "Copy the commands that register a runner"))
                    } @else { "A runner is registered." }
                } }
            }
        },
    )
}

fn running(visit: &Visit, page: &Overview<'_>) -> Markup {
    let jobs: Vec<&Job> = of_state(page.unfinished, JobState::Running).collect();
    card(
        "running",
        "Running now",
        &html! {
            @if page.counts.running > jobs.len() as u64 { "the newest " (jobs.len()) " of " }
            (grouped(page.counts.running))
        },
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
            @if page.slots.is_empty() { (empty(&html! { p { "No schedule that may start a job has a next slot." } })) }
            @else {
                (table("Next slots", &["when", "scan", "schedule"], &html! {
                    @for slot in page.slots {
                        @let workflow = links::workflow_name(&slot.workflow);
                        tr {
                            td { (in_future(slot.at, visit.now)) }
                            td { a href=(links::scan(&workflow, &slot.scan)) { (slot.scan) } " " span.muted { (workflow) } }
                            td.long { code { (slot.schedule) } " " span.muted { (slot.timezone) } }
                        }
                    }
                }))
            }
        },
    )
}
