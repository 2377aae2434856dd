//! The list of jobs, and the page of one.

use chrono::TimeDelta;
use http::StatusCode;
use model::Scope;
use ui::form::Refused;
use ui::pages::{self, Declared, DeclaredStep, JobFilter, JobPage};
use ui::shell::{Crumb, problem_page};
use ui::{chart, links};
use uuid::Uuid;
use warp::reply::Response;
use wire::{ErrorCode, Job, LedgerOutcome, LedgerRecord, Page, RerunJob};
use workflow::UploadOn;

use super::charts;
use super::frame::Frame;
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::jobs::{self, JobsQuery};
use crate::handlers::{dispatch, revisions, workflows};
use crate::idempotency::Attempt;
use crate::visible::ShownJob;

const SCRIPT_CHARS: usize = 120;

pub(super) async fn list(frame: &Frame<'_>) -> Result<Response, Failure> {
    let value = |name| frame.query(name).trim().to_owned();
    let filter = JobFilter {
        id: value("id"),
        state: value("state"),
        workflow: value("workflow"),
        scan: value("scan"),
        trigger: value("trigger"),
        runner: value("runner"),
        reason: value("reason"),
    };
    let found = match JobsQuery::of(&frame.request.query.trimmed()) {
        Ok(query) => jobs::list(frame.user, query).await,
        Err(failure) => Err(failure),
    };
    let (found, problem) = match found {
        Ok(found) => (found, None),
        Err(failure) if filter.id.is_empty() => (
            Page::all(Vec::new()),
            Some(refused(frame, &filter, failure)?),
        ),
        Err(failure) => return Err(failure),
    };
    let status = problem.as_ref().map(|(status, _)| *status);
    let page = pages::Jobs {
        filter: &filter,
        jobs: &found,
        is_later: !frame.query("cursor").is_empty(),
        refused: &problem.map(|(_, refused)| refused).unwrap_or_default(),
    };
    let page = pages::jobs(&frame.visit, &page);
    Ok(match status {
        None => frame.page(page),
        Some(status) => frame.html(status, page),
    })
}

/// The problem of a filter, with the field to show it at.
fn refused(
    frame: &Frame<'_>,
    filter: &JobFilter,
    failure: Failure,
) -> Result<(StatusCode, Refused), Failure> {
    let failure = match failure.code {
        ErrorCode::NotFound
        | ErrorCode::WorkflowNotFound
        | ErrorCode::AmbiguousName
        | ErrorCode::WorkflowUnreadable => {
            let field = frame.user.read(|seen| unknown(seen, filter));
            failure.of_field(field)
        }
        _ => failure,
    };
    frame.refused(failure, &Typed::default(), &[])
}

/// The first filter that names an unknown object.
fn unknown(seen: model::Seen<'_>, filter: &JobFilter) -> &'static str {
    let mut workflow = None;
    if !filter.workflow.is_empty() {
        match workflows::find(seen, &filter.workflow) {
            Ok(found) => workflow = Some(found.id),
            Err(_) => return "workflow",
        }
    }
    match filter.scan.parse() {
        Ok(scan) if jobs::known(seen, workflow, &scan).is_err() => "scan",
        _ => "runner",
    }
}

pub(super) async fn show(frame: &Frame<'_>) -> Result<Response, Failure> {
    let shown = frame.user.job_named(frame.parameter(0)).await?;
    let job = jobs::with_messages(frame.user, &shown).await?;
    let workflow = links::workflow_name(&job.workflow);
    // The workflow or the scan may be gone, but the page of the job is still useful.
    let lines = charts::history(frame, &workflow, &job.scan, charts::USUAL_OF);
    let others = lines.await.unwrap_or_default();
    let bars = charts::bars(frame, &others);
    let made_by = made_by(frame, &workflow, &job).await?;
    let declared = declared(frame, &workflow, &job).await;
    let retry = retry(frame, &job).await;
    let pending_retry = pending_retry(frame, &shown).await;
    let scan = shown.scan_key();
    let page = JobPage {
        job: &job,
        declared: declared.as_ref(),
        is_suspended: frame.user.read(|seen| seen.suspension(&scan).is_some()),
        others: &others,
        made_by: made_by.as_ref(),
        retry: retry.as_ref(),
        pending_retry,
        usual: chart::usual_seconds(&bars).and_then(TimeDelta::try_seconds),
        history: charts::mini_bars(&bars),
        progress: charts::progress(frame, &job, &bars),
    };
    Ok(frame.page(pages::job(&frame.visit, &page)))
}

/// The job that retries this one. It may have been removed.
async fn retry(frame: &Frame<'_>, job: &Job) -> Option<Job> {
    let retry = job.retried_by?.to_string();
    let retry = frame.user.job_named(&retry).await.ok()?;
    jobs::wire_job(frame.user, &retry).await.ok()
}

/// The last job of this chain of retries, if it is unfinished. A chain is short, because the workflow file limits it.
async fn pending_retry(frame: &Frame<'_>, job: &ShownJob) -> Option<Uuid> {
    let mut next = job.retried_by?;
    loop {
        let retry = frame.user.job(next).await.ok()?;
        match retry.retried_by {
            Some(later) => next = later,
            None => return (!retry.state.is_terminal()).then(|| retry.id.uuid()),
        }
    }
}

/// The steps and artifacts that the job's revision declares. None without the scope, or if it cannot be read.
async fn declared(frame: &Frame<'_>, workflow: &str, job: &Job) -> Option<Declared> {
    if !frame.may(Scope::WorkflowRead) {
        return None;
    }
    let newest = frame.user.read(|seen| {
        let mut workflows = seen.workflows();
        let workflow = workflows.find(|it| it.record.id.uuid() == job.workflow.id)?;
        let is_same = workflow.record.revision.id.uuid() == job.revision.id;
        let scan = workflow.revision.definition.scan(&job.scan)?;
        is_same.then(|| of_scan(scan))
    });
    if newest.is_some() {
        return newest;
    }
    let number = job.revision.number.to_string();
    let definition = revisions::definition(frame.user, workflow, &number).await;
    let definition = definition.ok()?;
    definition.scan(&job.scan).map(of_scan)
}

fn of_scan(scan: &workflow::Scan) -> Declared {
    let step = |step: &workflow::Step| {
        let lines = step.run.source().lines().map(str::trim);
        let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let line = lines.next().unwrap_or("…");
        DeclaredStep {
            name: step.name.clone(),
            script: line.chars().take(SCRIPT_CHARS).collect(),
        }
    };
    let mut ends = scan.artifacts.iter().map(|artifact| artifact.upload_on);
    Declared {
        steps: scan.steps.iter().map(step).collect(),
        has_artifacts: !scan.artifacts.is_empty(),
        keeps_after_failure: ends.any(|end| end != UploadOn::Success),
    }
}

/// The line of the ledger that made the job. None without the scope.
async fn made_by(
    frame: &Frame<'_>,
    workflow: &str,
    job: &Job,
) -> Result<Option<LedgerRecord>, Failure> {
    if !frame.may(Scope::WorkflowRead) {
        return Ok(None);
    }
    let ledger = match charts::ledger(frame, workflow, &job.scan).await {
        Ok(ledger) => ledger,
        Err(failure) if is_of_the_workflow(&failure) => Vec::new(),
        Err(failure) => return Err(failure),
    };
    let is_it = |record: &LedgerRecord| matches!(&record.outcome, LedgerOutcome::Made { job: made } if *made == job.id);
    Ok(ledger.into_iter().find(is_it))
}

/// True if a workflow or scan does not exist or cannot be read.
pub(super) fn is_of_the_workflow(failure: &Failure) -> bool {
    matches!(
        failure.code,
        ErrorCode::NotFound
            | ErrorCode::WorkflowNotFound
            | ErrorCode::WorkflowUnreadable
            | ErrorCode::AmbiguousName
    )
}

pub(super) async fn context(frame: &Frame<'_>) -> Result<Response, Failure> {
    let shown = frame.user.job_named(frame.parameter(0)).await?;
    let job = jobs::wire_job(frame.user, &shown).await?;
    let context = jobs::context(frame.user, &shown).await?;
    Ok(frame.page(pages::job_context(&frame.visit, &job, &context)))
}

pub(super) async fn cancel(frame: &Frame<'_>) -> Result<Response, Failure> {
    let job = jobs::cancel_named(frame.user, frame.parameter(0)).await?;
    Ok(frame.done(Scope::JobRead, &links::job(job.id.uuid())))
}

pub(super) async fn rerun(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let asked = RerunJob { current: false };
    let attempt = Attempt::of_form(typed.key(), &asked)?;
    let before = frame.user.job_named(frame.parameter(0)).await?;
    let job = match dispatch::start_again(frame.user, &before, asked, &attempt).await {
        Err(failure) if failure.code == ErrorCode::Suspended => {
            return suspended(frame, &before, failure).await;
        }
        answer => answer?,
    };
    Ok(frame.done(Scope::JobRead, &links::job(job.id.uuid())))
}

/// The page that refuses to start a job of a suspended scan, with a link to the page that resumes it.
async fn suspended(
    frame: &Frame<'_>,
    job: &ShownJob,
    failure: Failure,
) -> Result<Response, Failure> {
    let job = jobs::wire_job(frame.user, job).await?;
    let workflow = links::workflow_name(&job.workflow);
    let there = Crumb::new(
        "The scan and its suspension",
        links::scan(&workflow, &job.scan),
    );
    let status = failure.status();
    let (problem, _) = failure.problem(&frame.request.arrival.id.to_string());
    let back = links::job(job.id);
    let page = problem_page(&frame.visit, &problem, Some(&back), Some(&there));
    Ok(frame.html(status, page))
}

pub(super) async fn delete(frame: &Frame<'_>) -> Result<Response, Failure> {
    jobs::delete(frame.user, frame.parameter(0)).await?;
    Ok(frame.done(Scope::JobRead, links::JOBS))
}
