//! Running and waiting jobs, and what needs the reader.

mod needs;

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use wire::{
    Health, HealthStatus, Job, JobState, OpenCondition, Runner, ScanStatus, Scope, Slot, Source,
};

use self::needs::{is_bad, needs};
use super::about::health;
use super::workflow::lanes_legend;
use super::workflows::EXAMPLE;
use crate::list::{card, empty, table};
use crate::shell::{Menu, Shell, Visit, heading, region};
use crate::words::{copy_button, count, grouped, in_future, running_for};
use crate::{links, topics};

/// The data of the overview. A part that the viewer may not see is empty.
pub struct Overview<'a> {
    /// The address of the daemon for programs.
    pub server: &'a str,
    pub health: &'a Health,
    pub sources: &'a [Source],
    pub runners: &'a [Runner],
    pub scans: &'a [ScanStatus],
    /// What needs the reader, oldest first.
    pub conditions: &'a [OpenCondition],
    /// True if there are more conditions.
    pub conditions_cut: bool,
    /// The newest running and the newest waiting jobs.
    pub unfinished: &'a [Job],
    /// The numbers of all unfinished jobs.
    pub counts: Unfinished,
    /// The progress bar of each running job.
    pub progress: Vec<Markup>,
    /// The next slots of all schedules.
    pub slots: &'a [Slot],
    /// The lanes of all workflows in the last day.
    pub lanes: Markup,
    /// If the lanes do not show all jobs: the number that they show.
    pub lanes_cut: Option<u64>,
}

/// Numbers of unfinished jobs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unfinished {
    pub running: u64,
    pub waiting: u64,
    /// When the longest wait began.
    pub oldest_wait: Option<DateTime<Utc>>,
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
        (region("needs", &[topics::CONDITIONS, topics::JOBS], &needs(visit, page)))
        div.two {
            @if visit.may(Scope::JobRead) { (region("running", &[topics::JOBS], &running(visit, page))) }
            @if visit.may(Scope::WorkflowRead) { (region("next", &[topics::SCANS], &next(visit, page))) }
        }
        @if visit.may(Scope::JobRead) { (region("lanes", &[topics::JOBS], &lanes(page))) }
    };
    Shell::new(visit, "Overview", Some(Menu::Overview)).page(&content)
}

/// True if there are no sources or no scans yet. Viewers who may not see them get no first steps.
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

/// A note that the lanes do not show all jobs.
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

/// A new shell has no settings, so the commands contain them.
fn runner_commands(server: &str) -> String {
    format!(
        "export SERVICE_URL={server}\nSERVICE_TOKEN=YOUR-TOKEN everscan runner register-token > registration-token\neverscan-runner configure --registration-token-file registration-token\neverscan-runner run\n"
    )
}

/// A text with a button that copies it.
fn to_copy(text: &str, label: &str) -> Markup {
    html! { div.copied { pre tabindex="0" role="group" aria-label="Text to copy" { code { (text) } } (copy_button(text, label)) } }
}

fn first_steps(visit: &Visit, page: &Overview<'_>) -> Markup {
    let push = format!(
        "mkdir -p workflows\ncat > workflows/hello.yaml <<'END'\n{EXAMPLE}END\ngit add workflows && git commit -m 'A first workflow' && git push\n"
    );
    html! {
        (card("first", "First steps", &html! {}, &html! {
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
        }))
    }
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
    html! {
        (card("next", "Next slots", &html! { (page.slots.len()) }, &html! {
            @if page.slots.is_empty() { (empty(&html! { p { "No active schedule has a next slot." } })) }
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
        }))
    }
}
