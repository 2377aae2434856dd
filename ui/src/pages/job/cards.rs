//! The parts beside the log of a job.

use maud::{Markup, html};
use wire::{Artifact, Input, Job, JobState, Step};

use super::JobPage;
use crate::list::{card, empty};
use crate::pages::clause::evaluation;
use crate::shell::Visit;
use crate::words::{at, between, bytes, cause, count, icon, in_future, running_for, step_state};
use crate::{form, links};

pub(super) fn steps(visit: &Visit, page: &JobPage<'_>) -> Markup {
    let job = page.job;
    let reported = job.steps.len();
    let side = match page.steps {
        Some(all) => html! { (reported) " of " (all) },
        None => html! { (count(reported as u64, "step", "steps")) },
    };
    let waiting = page.steps.map_or(0, |all| {
        all.saturating_sub(u32::try_from(reported).unwrap_or(all))
    });
    card(
        "steps",
        "Steps",
        &side,
        &html! {
            @if job.steps.is_empty() && waiting == 0 {
                (empty(&html! { p { "No step has been reported." } }))
            }
            ol.steps {
                @for step in &job.steps { (step_row(visit, job, step)) }
                @if !job.state.is_terminal() && waiting > 0 {
                    li.later { (icon("scheduled")) span { (count(u64::from(waiting), "step", "steps")) " to come" } }
                }
            }
        },
    )
}

fn step_row(visit: &Visit, job: &Job, step: &Step) -> Markup {
    let index = step.index.to_string();
    let link = links::with_query(&links::job_log(job.id), &[("step", &index)]);
    let differs = step
        .outcome
        .is_some_and(|outcome| outcome == wire::StepOutcome::Succeeded)
        && step.status == wire::StepStatus::Failed;
    html! {
        li {
            a href=(link) data-step=(index) {
                (step_state(step.status))
                span {
                    "Step " (u64::from(step.index) + 1)
                    @if let Some(code) = step.exit_code.filter(|code| *code != 0) { ", exit code " (code) }
                    @if differs { ", allowed to fail" }
                }
                span.small.muted {
                    @match (step.started_at, step.finished_at) {
                        (Some(started), Some(finished)) => { (between(started, finished)) }
                        (Some(started), None) => { (running_for(started, visit.now)) }
                        (None, _) => {}
                    }
                }
                @if let Some(error) = &step.error { span.note { (error) } }
            }
        }
    }
}

pub(super) fn why(page: &JobPage<'_>) -> Markup {
    let job = page.job;
    let workflow = links::workflow_name(&job.workflow);
    let ledger = html! { a href=(links::scan(&workflow, &job.scan)) { "ledger" } };
    card(
        "why",
        "Why it exists",
        &ledger,
        &html! {
            div.body.why {
                @match page.made_by {
                    Some(record) => {
                        p { "Because of " (cause(record)) ", at " (at(record.at)) "." }
                        @if let Some(read) = &record.evaluation { (evaluation(read)) }
                    }
                    None => {
                        p { "State: " (job.reason.message) ". By " b { (job.reason.actor) } "." }
                    }
                }
            }
        },
    )
}

pub(super) fn artifacts(visit: &Visit, job: &Job) -> Markup {
    let side = match job.artifacts.len() {
        0 => html! { "none" },
        many => html! { (many) },
    };
    card(
        "artifacts",
        "Artifacts",
        &side,
        &html! {
            @if job.artifacts.is_empty() {
                (empty(&html! {
                    p {
                        @match job.state {
                            JobState::Scheduled | JobState::Running => { "Artifacts are stored when all steps have succeeded." }
                            JobState::Succeeded => { "The job left no artifact." }
                            JobState::Failed | JobState::Cancelled | JobState::Skipped => {
                                "Only a job that succeeds leaves artifacts."
                            }
                        }
                    }
                }))
            } @else {
                ul.plain.entries { @for artifact in &job.artifacts { (artifact_row(visit, job, artifact)) } }
            }
        },
    )
}

fn artifact_row(visit: &Visit, job: &Job, artifact: &Artifact) -> Markup {
    html! {
        li {
            @if let Some(removed) = &artifact.removed {
                b { (artifact.name) } ", " (bytes(artifact.size))
                p.small.muted { "Gone since " (at(removed.at)) ": " (removed.message) ". The digest stays." }
            } @else {
                a href=(links::artifact(job.id, &artifact.name)) download { (artifact.name) ".zip" } ", " (bytes(artifact.size))
                " · " a href=(links::artifact_entries(job.id, &artifact.name)) { "files" }
                @if let Some(expires) = artifact.expires_at {
                    p.small.muted { "Expires " (in_future(expires, visit.now)) }
                }
            }
            p.small.muted { "Digest " code.cut title=(artifact.content_digest) { (artifact.content_digest) } }
            @if artifact.removed.is_none() && visit.may("job:write") {
                (form::guarded(visit, &links::delete_artifact(job.id, &artifact.name), "Delete",
                    "The file is gone then. Its record and digest stay."))
            }
        }
    }
}

pub(super) fn inputs(job: &Job) -> Markup {
    card(
        "inputs",
        "Inputs",
        &html! { (job.inputs.len()) },
        &html! {
            @if job.inputs.is_empty() {
                (empty(&html! { p { "The job has no inputs." } }))
            } @else {
                dl.pairs {
                    @for (key, value) in &job.inputs {
                        div {
                            dt { code { (key) } }
                            dd {
                                @match value {
                                    Input::Bool(value) => { code { (value) } }
                                    Input::Text(text) if text.is_empty() => { span.muted { "empty" } }
                                    Input::Text(text) => { code.text { (text) } }
                                }
                            }
                        }
                    }
                }
            }
        },
    )
}
