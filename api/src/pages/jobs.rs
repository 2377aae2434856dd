//! The list of jobs, and the page of one.

use chrono::TimeDelta;
use model::Scope;
use ui::pages::{self, JobFilter, JobPage};
use ui::{chart, links};
use warp::reply::Response;
use wire::{ErrorCode, Job, LedgerOutcome, LedgerRecord, RerunJob};

use super::charts;
use super::frame::{Frame, see_other};
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::{dispatch, jobs, revisions, scans};

/// Lines of a ledger among which the one is looked for that made a job.
const LEDGER: &str = "200";
/// Characters of a script that stand for its step.
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
    let query = [
        ("id", filter.id.as_str()),
        ("state", &filter.state),
        ("workflow", &filter.workflow),
        ("scan", &filter.scan),
        ("trigger", &filter.trigger),
        ("runner", &filter.runner),
        ("reason", &filter.reason),
        ("cursor", frame.query("cursor")),
    ];
    let found = jobs::load_list(frame.me, &frame.request.asking(&[], &query)).await?;
    let page = pages::Jobs {
        filter: &filter,
        jobs: &found,
        is_later: !frame.query("cursor").is_empty(),
    };
    Ok(frame.page(pages::jobs(&frame.visit, &page)))
}

pub(super) async fn show(frame: &Frame<'_>) -> Result<Response, Failure> {
    let shown = frame.me.job_named(frame.parameter(0)).await?;
    let job = jobs::wire_job(frame.me, &shown).await?;
    let workflow = links::workflow_name(&job.workflow);
    // The workflow or the scan may be gone, and the job is still worth a page.
    let lines = charts::history(frame, &workflow, &job.scan, charts::USUAL_OF);
    let others = lines.await.unwrap_or_default();
    let bars = charts::bars(frame, &others);
    let made_by = made_by(frame, &workflow, &job).await?;
    let steps = steps(frame, &workflow, &job).await;
    let page = JobPage {
        job: &job,
        steps: steps.as_deref(),
        others: &others,
        made_by: made_by.as_ref(),
        usual: chart::usual_seconds(&bars).and_then(TimeDelta::try_seconds),
        history: charts::mini_bars(&bars),
        progress: charts::progress(frame, &job, &bars),
    };
    Ok(frame.page(pages::job(&frame.visit, &page)))
}

/// The first line of the script of each step of the job's revision, for those who may read that. A revision that cannot
/// be read has none.
async fn steps(frame: &Frame<'_>, workflow: &str, job: &Job) -> Option<Vec<String>> {
    if !frame.may(Scope::WorkflowRead) {
        return None;
    }
    let newest = frame.me.read(|seen| {
        let mut workflows = seen.workflows();
        let workflow = workflows.find(|it| it.record.id.uuid() == job.workflow.id)?;
        let is_same = workflow.record.revision.id.uuid() == job.revision.id;
        let scan = workflow.revision.definition.scan(&job.scan)?;
        is_same.then(|| first_lines(scan))
    });
    if newest.is_some() {
        return newest;
    }
    let number = job.revision.number.to_string();
    let request = frame.request.asking(&[workflow, &number], &[]);
    let definition = revisions::load_definition(frame.me, &request).await.ok()?;
    definition.scan(&job.scan).map(first_lines)
}

fn first_lines(scan: &workflow::Scan) -> Vec<String> {
    let first = |step: &workflow::Step| {
        let lines = step.run.source().lines().map(str::trim);
        let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let line = lines.next().unwrap_or("…");
        line.chars().take(SCRIPT_CHARS).collect()
    };
    scan.steps.iter().map(first).collect()
}

/// The line of the ledger that says why the job was made, for those who may read it.
async fn made_by(
    frame: &Frame<'_>,
    workflow: &str,
    job: &Job,
) -> Result<Option<LedgerRecord>, Failure> {
    if !frame.may(Scope::WorkflowRead) {
        return Ok(None);
    }
    let request = frame
        .request
        .asking(&[workflow, &job.scan], &[("limit", LEDGER)]);
    let ledger = match scans::load_ledger(frame.me, &request).await {
        Ok(ledger) => ledger.items,
        Err(failure) if is_of_the_workflow(&failure) => Vec::new(),
        Err(failure) => return Err(failure),
    };
    let is_it = |record: &LedgerRecord| matches!(&record.outcome, LedgerOutcome::Made { job: made } if *made == job.id);
    Ok(ledger.into_iter().find(is_it))
}

/// Whether a failure says that a workflow or scan is gone or cannot be read.
pub(super) fn is_of_the_workflow(failure: &Failure) -> bool {
    matches!(
        failure.code,
        ErrorCode::NotFound | ErrorCode::WorkflowUnreadable | ErrorCode::AmbiguousName
    )
}

pub(super) async fn context(frame: &Frame<'_>) -> Result<Response, Failure> {
    let shown = frame.me.job_named(frame.parameter(0)).await?;
    let job = jobs::wire_job(frame.me, &shown).await?;
    let context = jobs::load_context(frame.me, frame.request).await?;
    Ok(frame.page(pages::job_context(&frame.visit, &job, &context)))
}

pub(super) async fn cancel(frame: &Frame<'_>) -> Result<Response, Failure> {
    let job = frame.me.job_named(frame.parameter(0)).await?;
    jobs::cancel_named(frame.me, frame.request.parameter(0)).await?;
    Ok(see_other(&links::job(job.id.uuid())))
}

pub(super) async fn rerun(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let path = [frame.parameter(0)];
    let body = RerunJob { current: false };
    let request = frame.request.telling(&path, &body, typed.key())?;
    let job = dispatch::start_again(frame.me, request).await?;
    match frame.may(Scope::JobRead) {
        true => Ok(see_other(&links::job(job.id.uuid()))),
        false => Ok(see_other(links::JOBS)),
    }
}

pub(super) async fn delete(frame: &Frame<'_>) -> Result<Response, Failure> {
    jobs::delete(frame.me, frame.request).await?;
    Ok(see_other(links::JOBS))
}
