//! One job: its state and cause, its steps, artifacts and log.

mod cards;

use chrono::TimeDelta;
use maud::{Markup, html};
use uuid::Uuid;
use wire::{Job, JobLine, JobState, LedgerRecord, Scope};

use crate::list::facts;
use crate::pages::job_log::virtual_log;
use crate::pages::jobs::took;
use crate::shell::{Crumb, Menu, Shell, Visit, heading, region};
use crate::words::{
    at, badge, between, copied_id, job_link, job_sentence, sent, short_commit, waits_since,
};
use crate::{form, links, topics};

pub struct JobPage<'a> {
    pub job: &'a Job,
    /// Its scan as declared in its revision, if that is readable.
    pub declared: Option<&'a Declared>,
    /// True if its scan is suspended.
    pub is_suspended: bool,
    /// The ledger record of its creation.
    pub made_by: Option<&'a LedgerRecord>,
    /// The job that retries it, unless that was removed.
    pub retry: Option<&'a Job>,
    /// The newest job in its chain of retries, if unfinished.
    pub pending_retry: Option<Uuid>,
    /// Finished jobs of its scan, newest first.
    pub others: &'a [JobLine],
    /// The usual run time of the scan.
    pub usual: Option<TimeDelta>,
    /// The bars of the scan's last jobs.
    pub history: Markup,
    /// The progress bar of the job.
    pub progress: Markup,
}

/// The declaration of the job's scan.
#[derive(Debug, Clone, Default)]
pub struct Declared {
    pub steps: Vec<DeclaredStep>,
    /// True if the scan declares an artifact.
    pub has_artifacts: bool,
    /// True if an artifact is also stored after a failure.
    pub keeps_after_failure: bool,
}

#[derive(Debug, Clone)]
pub struct DeclaredStep {
    pub name: Option<String>,
    /// The first line of its script.
    pub script: String,
}

pub fn job(visit: &Visit, page: &JobPage<'_>) -> Markup {
    let job = page.job;
    let topic = topics::job(job.id);
    let content = html! {
        (head(visit, page))
        div.job {
            div.stack {
                (region("steps", &[&topic], &cards::steps(visit, page)))
                (region("why", &[&topic], &cards::why(page)))
                (region("artifacts", &[&topic], &cards::artifacts(visit, page)))
                (region("outputs", &[&topic], &html! {
                    @if !job.outputs.is_empty() { (cards::outputs(job)) }
                }))
                (cards::inputs(job))
                @if visit.may_in(&job.workflow.source, Scope::JobWrite) {
                    (region("removal", &[&topic], &html! { @if job.state.is_terminal() { (remove(visit, job)) } }))
                }
            }
            (virtual_log(job, &topic))
        }
    };
    let workflow = links::workflow_name(&job.workflow);
    let title = format!("{}, job {}", job.scan, crate::words::short_id(job.id));
    let crumb = format!("job {}", crate::words::short_id(job.id));
    let mut shell = Shell::new(visit, &title, Some(Menu::Jobs)).under([
        Crumb::new("Workflows", links::WORKFLOWS),
        Crumb::new(&workflow, links::workflow(&workflow)),
        Crumb::new(&job.scan, links::scan(&workflow, &job.scan)),
    ]);
    shell.fills_window = true;
    shell.here = Some(&crumb);
    shell.page(&content)
}

fn head(visit: &Visit, page: &JobPage<'_>) -> Markup {
    let job = page.job;
    let mut topic = topics::job(job.id);
    if let Some(retry) = page.pending_retry {
        topic = format!("{topic} {}", topics::job(retry));
    }
    // A suspension of its workflow changes why it waits.
    if job.state == JobState::Scheduled {
        topic = format!("{topic} {}", topics::scan(job.workflow.id, &job.scan));
    }
    let announcement = format!("Job of {} is {}", job.scan, job.state.as_str());
    html! {
        div.region #head data-live=(topic) data-announce=(announcement) {
            (heading(&job.scan, &html! { (badge(job.state)) (copied_id(job.id)) }, &actions(visit, page)))
            p.lead { (job_sentence(job, page.made_by, page.retry, page.usual, visit.now)) }
            (page.progress)
            (facts(&head_facts(visit, page)))
        }
    }
}

fn head_facts(visit: &Visit, page: &JobPage<'_>) -> Vec<(&'static str, Markup)> {
    let job = page.job;
    let workflow = links::workflow_name(&job.workflow);
    let revision = &job.revision;
    let mut facts = vec![
        ("made", at(job.created_at)),
        (
            "revision",
            html! {
                a href=(links::revision(&workflow, revision.number)) { (revision.number) } " · "
                (short_commit(&revision.commit))
            },
        ),
    ];
    if let Some(source) = &job.source {
        facts.push((
            "files",
            html! { (short_commit(&source.commit)) " · " (source.reference) },
        ));
    }
    if let Some(earlier) = job.rerun_of {
        facts.push(("runs again", job_link(earlier)));
    }
    if let Some(earlier) = job.retry_of {
        facts.push(("retries", job_link(earlier)));
    }
    if let Some((attempt, attempts)) = job.attempt.zip(job.attempts) {
        facts.push(("attempt", html! { (attempt) " of " (attempts) }));
    }
    if let Some(next) = job.retried_by {
        facts.push(("retried by", job_link(next)));
    }
    if let Some(started) = job.started_at {
        facts.push(("waited", html! { (between(waits_since(job), started)) }));
        facts.push(("took", took(job, visit)));
    }
    if let Some(runner) = &job.runner {
        facts.push((
            "runner",
            html! {
                @if visit.may(Scope::RunnerRead) { a href=(links::runner(runner.id)) { (runner.name) } }
                @else { (runner.name) }
            },
        ));
    }
    if job.started_at.is_some() {
        facts.push((
            "expressions read",
            html! { a href=(links::job_context(job.id)) { "frozen values" } },
        ));
    }
    if !page.history.0.is_empty() {
        facts.push(("history", page.history.clone()));
    }
    let messages = job.messages.iter();
    facts.extend(messages.map(|message| ("message", sent(message))));
    facts
}

fn actions(visit: &Visit, page: &JobPage<'_>) -> Markup {
    let job = page.job;
    let workflow = links::workflow_name(&job.workflow);
    let again = links::with_query(
        &links::dispatch(&workflow, &job.scan),
        &[("job", &job.id.to_string())],
    );
    html! {
        @if visit.may_in(&job.workflow.source, Scope::Dispatch) {
            @if page.is_suspended {
                a.tag href=(links::scan(&workflow, &job.scan)) { "suspended" }
            } @else if job.state.is_terminal() && page.pending_retry.is_none() {
                // The daemon refuses to run a job again while a retry of it is unfinished.
                (form::button(visit, &links::rerun_job(job.id), "Run again"))
            }
            a.button href=(again) data-key="d" { "Run with changes" }
        }
        @if visit.may_in(&job.workflow.source, Scope::JobCancel) && !job.state.is_terminal() {
            (form::guarded(visit, &links::cancel_job(job.id), "Cancel", if job.state == JobState::Scheduled {
                "It will not run and will not be retried."
            } else {
                "The runner stops the current step. Its output so far stays in the log."
            }))
        }
    }
}

fn remove(visit: &Visit, job: &Job) -> Markup {
    form::guarded(
        visit,
        &links::delete_job(job.id),
        "Remove the job",
        "This deletes its record, log and artifacts.",
    )
}
