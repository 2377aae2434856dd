//! The cards beside the log of a job.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use wire::{Artifact, Input, Job, JobState, Scope, Step};

use super::{Declared, JobPage};
use crate::list::{card, empty};
use crate::pages::ledger::evaluation;
use crate::shell::Visit;
use crate::words::{
    at, between, bytes, cause, causes, count, icon, in_future, job_link, running_for, state_icon,
    with_code,
};
use crate::{form, links};

pub(super) fn steps(visit: &Visit, page: &JobPage<'_>) -> Markup {
    let job = page.job;
    let reported = job.steps.len();
    let side = match page.declared {
        Some(all) => html! { (reported) " of " (all.steps.len()) },
        None => html! { (count(reported as u64, "step", "steps")) },
    };
    let declared = page.declared.map_or(&[][..], |it| &it.steps);
    let to_come = declared.get(reported..).unwrap_or_default();
    html! {
        (card("steps", "Steps", &side, &html! {
            @if job.steps.is_empty() && to_come.is_empty() {
                (empty(&html! { p { "No step has been reported." } }))
            }
            ol.steps {
                @for step in &job.steps {
                    @let script = usize::try_from(step.index).ok().and_then(|index| declared.get(index));
                    (step_row(visit, job, step, script.map(|it| it.script.as_str())))
                }
                @if !job.state.is_terminal() {
                    @for step in to_come {
                        li.later {
                            (icon("scheduled"))
                            @match &step.name {
                                Some(name) => { b { (name) } }
                                None => { code.script { (step.script) } }
                            }
                        }
                    }
                }
            }
        }))
    }
}

fn step_row(visit: &Visit, job: &Job, step: &Step, script: Option<&str>) -> Markup {
    let index = step.index.to_string();
    let link = links::with_query(&links::job_log(job.id), &[("step", &index)]);
    let differs = step
        .outcome
        .is_some_and(|outcome| outcome == wire::StepOutcome::Succeeded)
        && step.status == wire::StepStatus::Failed;
    html! {
        li {
            a href=(link) data-step=(index) {
                (state_icon(step.status.as_str()))
                @let title = format!("Step {}", u64::from(step.index) + 1);
                @match (&step.name, script) {
                    (Some(name), _) => { span title=(title) { b { (name) } } }
                    (None, Some(script)) => { code.script title=(title) { (script) } }
                    (None, None) => { span { (title) } }
                }
                span.small.muted {
                    @match (step.started_at, step.finished_at) {
                        (Some(started), Some(finished)) => { (between(started, finished)) }
                        (Some(started), None) => { (running_for(started, visit.now)) }
                        (None, _) => {}
                    }
                }
                (share(visit, job, step))
                @if let Some(code) = step.exit_code.filter(|code| *code != 0) {
                    span.note { "exit code " (code) @if differs { ", allowed to fail" } }
                }
                @if let Some(error) = &step.error { span.note { (with_code(error)) } }
            }
        }
    }
}

/// A bar that shows when the step ran within its job.
fn share(visit: &Visit, job: &Job, step: &Step) -> Markup {
    let (Some(begin), Some(from)) = (job.started_at, step.started_at) else {
        return html! {};
    };
    let end = job.finished_at.unwrap_or(visit.now);
    let whole = (end - begin).num_milliseconds().max(1);
    let part =
        |at: DateTime<Utc>| ((at - begin).num_milliseconds().clamp(0, whole)) * 1_000 / whole;
    let (from, to) = (part(from), part(step.finished_at.unwrap_or(end)));
    html! {
        svg.share.(step.status.as_str()) aria-hidden="true" width="100%" height="4" viewBox="0 0 1000 4" preserveAspectRatio="none" {
            rect.track width="1000" height="4" {}
            rect x=(from.min(990)) width=((to - from).max(10)) height="4" {}
        }
    }
}

pub(super) fn why(page: &JobPage<'_>) -> Markup {
    let job = page.job;
    let workflow = links::workflow_name(&job.workflow);
    let ledger = html! { a href=(links::scan(&workflow, &job.scan)) { "ledger" } };
    html! {
        (card("why", why_title(page), &ledger, &html! {
            div.body.why {
                @match page.made_by {
                    Some(record) => {
                        p { "Because of " (cause(record)) ", at " (at(record.at)) "." }
                        @if let Some(read) = &record.evaluation { (evaluation(read)) }
                    }
                    None => {
                        @if !job.causes.is_empty() {
                            p { "Because of " (causes(&job.causes)) ", before " (at(job.created_at)) "." }
                        }
                        @if let Some(who) = &job.dispatched_by {
                            p { "Dispatched by " b { (who) } " at " (at(job.created_at)) "." }
                        }
                        p { "State: " (with_code(&job.reason.message)) ". By " b { (job.reason.actor) } "." }
                    }
                }
            }
        }))
    }
}

/// The title depends on whether the cause of the job is known.
const fn why_title(page: &JobPage<'_>) -> &'static str {
    match (page.made_by, page.job.state) {
        (Some(_), _) | (None, JobState::Scheduled) => "Why it exists",
        (None, JobState::Running) => "Why it runs",
        (None, JobState::Succeeded) => "Why it succeeded",
        (None, JobState::Failed) => "Why it failed",
        (None, JobState::Cancelled) => "Why it was cancelled",
        (None, JobState::Skipped) => "Why it was skipped",
    }
}

pub(super) fn artifacts(visit: &Visit, page: &JobPage<'_>) -> Markup {
    let job = page.job;
    let side = match job.artifacts.len() {
        0 => html! { "none" },
        many => html! { (many) },
    };
    html! {
        (card("artifacts", "Artifacts", &side, &html! {
            @if job.artifacts.is_empty() {
                (empty(&html! {
                    p { (no_artifact(job.state, page.declared)) }
                }))
            } @else {
                ul.plain.entries { @for artifact in &job.artifacts { (artifact_row(visit, page, artifact)) } }
            }
        }))
    }
}

fn no_artifact(state: JobState, declared: Option<&Declared>) -> &'static str {
    match (state, declared) {
        (_, Some(declared)) if !declared.has_artifacts => "The scan declares no artifact.",
        (JobState::Scheduled | JobState::Running, _) => {
            "Artifacts are stored when the steps are done."
        }
        (JobState::Failed, Some(declared)) if !declared.keeps_after_failure => {
            "The scan stores its artifacts only after a success."
        }
        (JobState::Cancelled | JobState::Skipped, _) => {
            "A job that is cancelled or skipped leaves no artifact."
        }
        (JobState::Succeeded | JobState::Failed, _) => "The job left no artifact.",
    }
}

/// Compares an artifact with the same artifact of the previous job.
fn compared(page: &JobPage<'_>, artifact: &Artifact) -> Markup {
    let earlier = page.others.iter().filter(|other| other.id < page.job.id);
    let mut with_it =
        earlier.filter_map(|other| Some((other, other.artifacts.get(&artifact.name)?)));
    let Some((other, before)) = with_it.next() else {
        return html! {};
    };
    html! {
        p.small {
            @if before.content_digest == artifact.content_digest {
                "The same as in job " (job_link(other.id)) "."
            } @else {
                a href=(links::artifact_diff(page.job.id, &artifact.name, &other.id.to_string())) { "Differs" }
                " from that of job " (job_link(other.id)) ", " (bytes(before.size)) "."
            }
        }
    }
}

fn artifact_row(visit: &Visit, page: &JobPage<'_>, artifact: &Artifact) -> Markup {
    let job = page.job;
    html! {
        li {
            @if let Some(removed) = &artifact.removed {
                b { (artifact.name) } ", " (bytes(artifact.size))
                p.small.muted { "Removed at " (at(removed.at)) ": " (with_code(&removed.message)) ". The digest is kept." }
            } @else {
                a href=(links::artifact(job.id, &artifact.name)) download { (artifact.name.strip_suffix(".zip").unwrap_or(&artifact.name)) ".zip" } ", " (bytes(artifact.size))
                " · " a href=(links::artifact_entries(job.id, &artifact.name)) { "files" }
                @if let Some(expires) = artifact.expires_at {
                    p.small.muted { "Expires " (in_future(expires, visit.now)) }
                }
            }
            @if let Some(left_out) = &artifact.left_out {
                p.small { "Left out:" }
                ul.small {
                    @for file in &left_out.files { li { code { (file.name) } " " (file.reason) } }
                    @if left_out.more > 0 { li { "and " (left_out.more) " more" } }
                }
            }
            @if artifact.removed.is_none() { (compared(page, artifact)) }
            p.small.muted { "Digest " code.cut title=(artifact.content_digest) { (artifact.content_digest) } }
            @if artifact.removed.is_none() && visit.may_in(&job.workflow.source, Scope::JobWrite) {
                (form::guarded(visit, &links::delete_artifact(job.id, &artifact.name), "Delete",
                    "This deletes the file. Its record and digest are kept."))
            }
        }
    }
}

pub(super) fn outputs(job: &Job) -> Markup {
    html! {
        (card("outputs", "Outputs", &html! { (job.outputs.len()) }, &html! {
            dl.pairs {
                @for (key, value) in &job.outputs {
                    div {
                        dt { code { (key) } }
                        dd {
                            @if value.is_empty() { span.muted { "empty" } } @else { code.text { (value) } }
                        }
                    }
                }
            }
        }))
    }
}

pub(super) fn inputs(job: &Job) -> Markup {
    html! {
        (card("inputs", "Inputs", &html! { (job.inputs.len()) }, &html! {
            @if job.inputs.is_empty() {
                (empty(&html! { p { "The job has no inputs." } }))
            } @else {
                dl.pairs {
                    @for (key, value) in &job.inputs {
                        div {
                            dt { code { (key) } }
                            dd {
                                @match value {
                                    Input::Bool(_) | Input::Number(_) => { code { (value) } }
                                    Input::Text(text) if text.is_empty() => { span.muted { "empty" } }
                                    Input::Text(text) => { code.text { (text) } }
                                }
                            }
                        }
                    }
                }
            }
        }))
    }
}
