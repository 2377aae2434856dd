//! The card of the overview that lists what needs the reader.

use maud::{Markup, html};
use wire::{
    Circle, Job, JobLine, JobState, MissingName, Project, Runner, ScanStatus, Scope, Source,
    SuspendedPart, Suspension,
};

use super::{Failing, Overview, of_state};
use crate::links;
use crate::list::{card, empty};
use crate::pages::sources::{shape_of, source_state};
use crate::shell::Visit;
use crate::words::{
    ago, circle_sentence, condition, count, explained, job_link, retry_sentence, state,
    waits_since, with_code,
};

pub(super) fn needs(visit: &Visit, page: &Overview<'_>) -> Markup {
    let bad: Vec<&Source> = page
        .sources
        .iter()
        .filter(|source| is_bad(source))
        .collect();
    let disconnected: Vec<&Runner> = page
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
        + disconnected.len()
        + suspended.len()
        + missing;
    html! {
        (card("needs", "Needs you", &html! { (all) }, &html! {
            @if all == 0 { (empty(&html! { p { (nothing_needed(visit, is_retrying)) } })) }
            ul.feed {
                @for one in page.failing { (failing(visit, one)) }
                @for scan in page.unreadable { (unreadable(scan)) }
                @for (workflow, circle) in page.circles { (circle_row(workflow, circle)) }
                @for job in stuck { (stuck_job(visit, job)) }
                @for source in bad { (bad_source(visit, source)) }
                @for runner in disconnected {
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
            // These need no action, and are not counted.
            @for job in retries { p.body.small.muted { (retry(job)) } }
        }))
    }
}

fn bad_source(visit: &Visit, source: &Source) -> Markup {
    let stale = source.stale_files.len() as u64;
    // The number of invalid files is more useful than their condition.
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

/// Says that nothing needs the viewer, limited to what the viewer may see.
fn nothing_needed(visit: &Visit, is_retrying: bool) -> String {
    let may = |scopes: &[Scope]| scopes.iter().all(|scope| visit.may(*scope));
    let known = [
        (
            may(&[Scope::WorkflowRead, Scope::JobRead]),
            match is_retrying {
                true => "all failed scans are being retried",
                false => "no scan has failed since its last success",
            },
        ),
        (may(&[Scope::ProjectRead]), "all sources can be read"),
        (may(&[Scope::RunnerRead]), "all runners are connected"),
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

/// The suspended workflows and scans.
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

/// Says that a job took too long, because its log does not say it.
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
                        // Its last success is older than the jobs that were read.
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

fn circle_row(workflow: &str, circle: &Circle) -> Markup {
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

/// True if no registered runner may take the job.
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

/// A failure that is being retried.
fn retry(job: &Job) -> Markup {
    html! { (of_scan(job)) (retry_sentence(job)) "." }
}

pub(super) fn is_bad(source: &Source) -> bool {
    source
        .conditions
        .iter()
        .any(|one| shape_of(one) == "failed")
        || !source.stale_files.is_empty()
}
