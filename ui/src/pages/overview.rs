//! What runs, what waits and what needs the reader.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use wire::{
    Circle, Health, HealthStatus, Job, JobLine, JobState, MissingName, Project, Runner, ScanStatus,
    Slot, Source, SuspendedPart, Suspension,
};

use super::about::health;
use super::sources::{shape_of, source_state};
use super::workflow::lanes_legend;
use super::workflows::EXAMPLE;
use crate::list::{card, empty, table};
use crate::shell::{Menu, Shell, Visit, heading, region};
use crate::words::{
    ago, circle_sentence, condition, copy_button, count, explained, grouped, in_future, job_link,
    retry_sentence, running_for, state, waits_since, with_code,
};
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
            @if visit.may("job:read") { (region("running", &[topics::JOBS], &running(visit, page))) }
            @if visit.may("workflow:read") { (region("next", &[topics::SCANS], &next(visit, page))) }
        }
        @if visit.may("job:read") { (region("lanes", &[topics::JOBS], &lanes(page))) }
    };
    Shell::new(visit, "Overview", Some(Menu::Overview)).page(&content)
}

/// Whether there is nothing yet. A viewer who may not see whether there is something learns no first steps.
fn is_new(visit: &Visit, page: &Overview<'_>) -> bool {
    (visit.may("project:read") && page.sources.is_empty())
        || (visit.may("workflow:read") && page.scans.is_empty())
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
            @if visit.may("job:read") {
                div { dt { "running" } dd { a href=(links::with_query(links::JOBS, &[("state", "running")])) { (grouped(running)) } } }
                div { dt { "waiting" } dd { a href=(links::with_query(links::JOBS, &[("state", "scheduled")])) { (grouped(waiting)) } } }
                div { dt { "oldest wait" } dd { @match oldest_wait { Some(since) => (running_for(since, visit.now)), None => "none" } } }
            }
            @if visit.may("runner:read") {
                div { dt { "runners" } dd { a href=(links::RUNNERS) { (connected) " of " (page.runners.len()) } } }
            }
            @if visit.may("project:read") {
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

fn is_bad(source: &Source) -> bool {
    source
        .conditions
        .iter()
        .any(|one| shape_of(one) == "failed")
        || !source.stale_files.is_empty()
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
                @if visit.may("project:read") { li {
                    @if page.sources.is_empty() {
                        "Name a Git repository in the daemon's configuration, and start it again:"
                        (to_copy(CONFIGURATION, "Copy the configuration"))
                    } @else { a href=(links::SOURCES) { "A source" } " is followed." }
                } }
                li { "Push a workflow file to its folder:" (to_copy(&push, "Copy the commands that push a workflow")) }
                @if visit.may("runner:read") { li {
                    @if page.runners.is_empty() {
                        a href=(links::RUNNERS) { "Register a runner" } ", which executes the jobs:"
                        (to_copy(&runner_commands(page.server), "Copy the commands that register a runner"))
                    } @else { "A runner is registered." }
                } }
            }
        },
    )
}

fn needs(visit: &Visit, page: &Overview<'_>) -> Markup {
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
    let is_retrying = page.unfinished.iter().any(|job| job.retry_of.is_some());
    let scheduled = of_state(page.unfinished, JobState::Scheduled);
    let (stuck, waiting): (Vec<&Job>, Vec<&Job>) = scheduled.partition(|job| is_stuck(job));
    let retries = waiting.into_iter().filter(|job| job.retry_of.is_some());
    let retries: Vec<&Job> = retries.collect();
    let suspended = suspended(page.scans);
    let missing = |project: &Project| project.missing_vars.len() + project.missing_secrets.len();
    let missing: usize = page.projects.iter().map(missing).sum();
    let all = page.failing.len()
        + page.unreadable.len()
        + page.circles.len()
        + stuck.len()
        + bad.len()
        + unheard.len()
        + suspended.len()
        + missing;
    card(
        "needs",
        "Needs you",
        &html! { (all) },
        &html! {
            @if all == 0 { (empty(&html! { p { (nothing(visit, is_retrying)) } })) }
            ul.feed {
                @for one in page.failing { (failing(visit, one)) }
                @for scan in page.unreadable { (unreadable(scan)) }
                @for (workflow, circle) in page.circles { (going_in_a_circle(workflow, circle)) }
                @for job in stuck { (stuck_job(visit, job)) }
                @for source in bad { (bad_source(visit, source)) }
                @for runner in unheard {
                    li {
                        (condition("failed", "not connected"))
                        span { "runner " a href=(links::runner(runner.id)) { (runner.name) } }
                        span.muted { @if let Some(heard) = runner.heard_at { "heard " (ago(heard, visit.now)) } }
                    }
                }
                @for project in page.projects {
                    @for name in &project.missing_vars { (missing_name("var", name, &project.name)) }
                    @for name in &project.missing_secrets { (missing_name("secret", name, &project.name)) }
                }
                @for (workflow, scan, suspension) in &suspended { (suspended_part(visit, workflow, *scan, suspension)) }
            }
            @if page.is_cut { p.body.small.muted { "There are too many sources, runners or scans to look at all: others may need you, too." } }
            // They need nobody, and are not counted.
            @for job in retries { p.body.small.muted { (retry(job)) } }
        },
    )
}

fn bad_source(visit: &Visit, source: &Source) -> Markup {
    let stale = source.stale_files.len() as u64;
    // How many files are invalid says more than the condition about them.
    let mut failed = source.conditions.iter().filter(|one| one.kind != "Valid");
    let failed = failed.find(|one| shape_of(one) == "failed");
    html! {
        li {
            (source_state(source))
            span {
                "source " a href=(links::source(&source.name)) { (source.name) }
                @if stale > 0 { ": " (count(stale, "invalid file", "invalid files")) }
                @if let Some(failed) = failed { span.muted { ": " (with_code(&failed.message)) } }
            }
            span.muted { @if let Some(failed) = failed { (ago(failed.changed_at, visit.now)) } }
        }
    }
}

/// That nothing needs the viewer, of what the viewer may see.
fn nothing(visit: &Visit, is_retrying: bool) -> String {
    let may = |scopes: &[&str]| scopes.iter().all(|scope| visit.may(scope));
    let known = [
        (
            may(&["workflow:read", "job:read"]),
            match is_retrying {
                true => "what has failed since the last success of its scan is tried again",
                false => "no scan has failed since its last success",
            },
        ),
        (may(&["project:read"]), "all sources can be read"),
        (may(&["runner:read"]), "all runners are connected"),
    ];
    let known: Vec<&str> = known
        .iter()
        .filter_map(|(may, what)| may.then_some(*what))
        .collect();
    match known.is_empty() {
        true => "Nothing that your token may see.".to_owned(),
        false => format!("Nothing: {}.", known.join("; ")),
    }
}

fn missing_name(kind: &str, missing: &MissingName, project: &str) -> Markup {
    html! {
        li {
            (condition("failed", "missing"))
            span { (kind) " " code { (missing.name) } " of " a href=(links::project(project)) { (project) } }
            span {}
        }
    }
}

/// What is suspended: workflows as a whole, and single scans.
fn suspended(scans: &[ScanStatus]) -> Vec<(String, Option<&str>, &Suspension)> {
    let mut all: Vec<(String, Option<&str>, &Suspension)> = Vec::new();
    for status in scans {
        let Some(suspension) = &status.suspended else {
            continue;
        };
        let workflow = links::workflow_name(&status.workflow);
        let scan = match suspension.part {
            SuspendedPart::Workflow => None,
            SuspendedPart::Scan => Some(status.scan.name.as_str()),
        };
        if !all
            .iter()
            .any(|(of, part, _)| *of == workflow && *part == scan)
        {
            all.push((workflow, scan, suspension));
        }
    }
    all
}

fn suspended_part(
    visit: &Visit,
    workflow: &str,
    scan: Option<&str>,
    suspension: &Suspension,
) -> Markup {
    html! {
        li {
            (condition("skipped", "suspended"))
            span {
                @match scan {
                    Some(scan) => { a href=(links::scan(workflow, scan)) { (scan) } " of " (workflow) }
                    None => { "workflow " a href=(links::workflow(workflow)) { (workflow) } }
                }
                span.muted { " by " (suspension.by) ": " (suspension.reason) }
            }
            span.muted { (ago(suspension.since, visit.now)) }
        }
    }
}

/// That a job hung or was too slow, which its log does not say.
fn took_too_long(job: &JobLine) -> Option<&'static str> {
    match job.reason.as_deref() {
        Some("timed_out") => Some("its timeout passed"),
        Some("session_expired") => Some("it ran for four hours"),
        Some(_) | None => None,
    }
}

fn failing(visit: &Visit, one: &Failing<'_>) -> Markup {
    let workflow = links::workflow_name(&one.scan.workflow);
    let name = &one.scan.scan.name;
    let failures =
        html! { @if one.failures > 1 { ", " (count(one.failures, "failure", "failures")) } };
    html! {
        li {
            (state(one.newest.state))
            span {
                a href=(links::scan(&workflow, name)) { (name) } " of " (workflow) ": " (job_link(one.newest.id))
                span.muted {
                    @if let Some(why) = took_too_long(one.newest) { ", " (why) }
                    @match (one.succeeded_at, one.scan.finished.succeeded) {
                        (Some(success), _) => { (failures) " since its last success " (ago(success, visit.now)) }
                        (None, 0) => { (failures) ", no success before" }
                        // It succeeded before the jobs that were looked at.
                        (None, _) => { ", at least " (count(one.failures, "failure", "failures")) " since its last success" }
                    }
                }
            }
            span.muted { (ago(one.newest.finished_at.unwrap_or(one.newest.created_at), visit.now)) }
        }
    }
}

fn unreadable(scan: &ScanStatus) -> Markup {
    let workflow = links::workflow_name(&scan.workflow);
    let name = &scan.scan.name;
    html! {
        li {
            (condition("failed", "unreadable"))
            span {
                "the history of " a href=(links::scan(&workflow, name)) { (name) } " of " (workflow) ": some of its newest jobs cannot be read"
                span.muted { "; the daemon's log names the file, and " code { "everscand fsck" } " checks it" }
            }
            span {}
        }
    }
}

fn going_in_a_circle(workflow: &str, circle: &Circle) -> Markup {
    html! {
        li {
            (condition("failed", "circle"))
            span {
                @for (at, scan) in circle.scans.iter().enumerate() {
                    @if at > 0 { ", " }
                    a href=(links::scan(workflow, scan)) { (scan) }
                }
                " of " (workflow) ": " (job_link(circle.job))
                span.muted { ": " (circle_sentence(circle)) }
            }
            span {}
        }
    }
}

/// Whether a job waits for a runner that does not exist: none is registered, or none that is connected may take it.
fn is_stuck(job: &Job) -> bool {
    const CODES: [&str; 4] = [
        "no_runner",
        "no_runner_fits",
        "runners_too_old",
        "runners_exclusive",
    ];
    let waiting = job.waiting.as_ref();
    waiting.is_some_and(|waiting| CODES.contains(&&*waiting.code))
}

fn of_scan(job: &Job) -> Markup {
    let workflow = links::workflow_name(&job.workflow);
    html! {
        a href=(links::scan(&workflow, &job.scan)) { (job.scan) } " of " (workflow) ": " (job_link(job.id))
    }
}

fn stuck_job(visit: &Visit, job: &Job) -> Markup {
    html! {
        li {
            (state(job.state))
            span {
                (of_scan(job))
                @if let Some(waiting) = &job.waiting { span.muted { ": " (explained(waiting)) } }
            }
            span.muted { (ago(waits_since(job), visit.now)) }
        }
    }
}

/// A failure that nobody needs to look at yet.
fn retry(job: &Job) -> Markup {
    html! { (of_scan(job)) (retry_sentence(job)) "." }
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
