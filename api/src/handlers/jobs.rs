//! `/v0/jobs`

use std::collections::BTreeMap;

use model::limits::ID_PART_DIGITS;
use model::{JobId, JobState, Reason, Scope, Seen, StateKind, Trigger, WorkflowId};
use state::JobFilter;
use tokio::time::Instant;
use warp::reply::Response;
use wire::{CancelJob, ChangedJob, ErrorCode, JobContext, Page};
use workflow::{Context, ScanName};

use super::{channels, workflows};
use crate::convert;
use crate::failure::Failure;
use crate::limits::WAIT;
use crate::reply;
use crate::request::{Query, Request};
use crate::visible::{ShownJob, Visible};

/// Filters that cannot be combined with the filter `id`.
const OTHER_FILTERS: [&str; 8] = [
    "workflow", "scan", "state", "trigger", "runner", "reason", "since", "until",
];

pub(crate) struct JobsQuery {
    /// An id, or its first or last digits. No other filter is allowed with it.
    id: Option<String>,
    workflow: Option<String>,
    pub(crate) filter: JobFilter,
    /// Only jobs that were made before this one.
    before: Option<JobId>,
    limit: usize,
}

impl JobsQuery {
    pub(crate) fn first(limit: usize) -> Self {
        Self {
            id: None,
            workflow: None,
            filter: JobFilter::default(),
            before: None,
            limit,
        }
    }

    pub(crate) fn of(query: &Query) -> Result<Self, Failure> {
        let id = query.owned("id");
        let other = OTHER_FILTERS.iter().find(|name| query.get(name).is_some());
        if let (Some(_), Some(other)) = (&id, other) {
            return Err(Failure::invalid(other, "cannot be combined with `id`"));
        }
        let scan = query.get("scan").map(str::parse).transpose();
        let state = query.get("state").map(|name| {
            StateKind::named(name)
                .ok_or_else(|| Failure::invalid("state", "is not a state of a job"))
        });
        let trigger = query.get("trigger").map(|name| {
            Trigger::named(name)
                .ok_or_else(|| Failure::invalid("trigger", "must be `dispatch`, `cron` or `expr`"))
        });
        let reason = query.owned("reason");
        let reasons = Reason::OF_JOBS;
        if reason.as_deref().is_some_and(|it| !reasons.contains(&it)) {
            let problem = format!("must be one of: {}", reasons.join(", "));
            return Err(Failure::invalid("reason", problem));
        }
        let before = query.get("cursor").map(str::parse).transpose();
        let before = before.map_err(|_| Failure::invalid("cursor", "is not from this list"))?;
        let until = query.time("until")?.map(JobId::at);
        Ok(Self {
            id,
            workflow: query.owned("workflow"),
            filter: JobFilter {
                scan: scan.map_err(|_| Failure::invalid("scan", "is not a scan's name"))?,
                state: state.transpose()?,
                trigger: trigger.transpose()?,
                reason,
                runner: query.owned("runner"),
                since: query.time("since")?,
                ..JobFilter::default()
            },
            before: before.into_iter().chain(until).min(),
            limit: query.limit()?,
        })
    }
}

pub(crate) async fn list(user: &Visible, query: JobsQuery) -> Result<Page<wire::Job>, Failure> {
    if let Some(part) = &query.id {
        return with_digits(user, part, query.before, query.limit).await;
    }
    let mut filter = query.filter;
    user.read(|seen| {
        if let Some(named) = &query.workflow {
            filter.workflow = Some(workflows::find(seen, named)?.id);
        }
        match &filter.scan {
            Some(scan) => known(seen, filter.workflow, scan),
            None => Ok(()),
        }
    })?;
    let runner = filter.runner.clone();
    let _turn = user.list_turn().await;
    let (jobs, page) = user.jobs(filter, query.before, query.limit).await?;
    let next_cursor = page.next.map(|next| next.to_string());
    let items = wire_jobs(user, &jobs).await?;
    if let Some(runner) = runner
        && items.is_empty()
        && next_cursor.is_none()
        && user.read(|seen| seen.runners().all(|known| known.name != runner))
    {
        return Err(Failure::not_found("runner", &runner)
            .hint("`everscan runner list` shows the registered runners"));
    }
    Ok(Page {
        items,
        next_cursor,
        damaged: convert::damaged(page.damaged),
    })
}

/// Jobs whose ids begin or end with these digits. A whole id is allowed, too.
async fn with_digits(
    user: &Visible,
    part: &str,
    before: Option<JobId>,
    limit: usize,
) -> Result<Page<wire::Job>, Failure> {
    let mut jobs = match part.parse::<JobId>() {
        Ok(id) => match user.job(id).await {
            Ok(job) => vec![job],
            Err(failure) if failure.code == ErrorCode::NotFound => Vec::new(),
            Err(failure) => return Err(failure),
        },
        Err(_) => {
            let part = part.parse().map_err(|_| {
                let problem = format!(
                    "must be {ID_PART_DIGITS} or more of the first or last digits of an id"
                );
                Failure::invalid("id", problem)
            })?;
            let _turn = user.list_turn().await;
            user.jobs_with(&part, before, limit + 1).await?
        }
    };
    let has_more = jobs.len() > limit;
    jobs.truncate(limit);
    Ok(Page {
        next_cursor: jobs
            .last()
            .filter(|_| has_more)
            .map(|last| last.id.to_string()),
        items: wire_jobs(user, &jobs).await?,
        damaged: Vec::new(),
    })
}

async fn wire_jobs(user: &Visible, jobs: &[ShownJob]) -> Result<Vec<wire::Job>, Failure> {
    let mut items = Vec::with_capacity(jobs.len());
    for job in jobs {
        match wire_job(user, job).await {
            Ok(job) => items.push(job),
            Err(failure) if failure.code == ErrorCode::NotFound => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(items)
}

/// Fails unless the workflow has a scan of that name, or there are jobs of it.
pub(crate) fn known(
    seen: Seen<'_>,
    workflow: Option<WorkflowId>,
    name: &ScanName,
) -> Result<(), Failure> {
    let is_it = |id| workflow.is_none_or(|workflow| workflow == id);
    let mut defined = seen
        .workflows()
        .filter(|workflow| is_it(workflow.record.id));
    let mut heads = seen.heads().filter(|head| is_it(head.workflow));
    let mut jobs = seen.jobs().filter(|job| is_it(job.workflow.id));
    if defined.any(|workflow| workflow.scan(name).is_some())
        || heads.any(|head| head.scan == *name)
        || jobs.any(|job| job.scan == *name)
    {
        return Ok(());
    }
    let failure = Failure::not_found("scan", name.as_str());
    Err(match workflow.and_then(|id| seen.workflow(id)) {
        Some(workflow) => failure.names(Scope::WorkflowRead, workflows::scans_of(&workflow)),
        None => failure.hint("`everscan workflow show WORKFLOW` lists the scans of a workflow"),
    })
}

/// One job. With `wait=true` the answer is held until the job is over, up to 50 s.
pub(super) async fn show(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let is_waited_for = request.query.flag("wait")?;
    let has_messages = request.query.flag("messages")?;
    let answer = async |job: ShownJob| match has_messages {
        true => Ok(reply::ok(&with_messages(user, &job).await?)),
        false => Ok(reply::ok(&wire_job(user, &job).await?)),
    };
    let job = user.job_named(request.parameter(0)).await?;
    let id = job.id;
    if job.state.is_terminal() || !is_waited_for {
        return answer(job).await;
    }
    let held_until = Instant::now() + WAIT;
    let mut changes = user.job_changed(&job);
    loop {
        // Mark this before the job is read, so that a change in between wakes the request.
        changes.mark_unchanged();
        let job = user.job(id).await?;
        if job.state.is_terminal() || Instant::now() >= held_until {
            return answer(job).await;
        }
        tokio::select! {
            _ = changes.changed() => {}
            () = tokio::time::sleep_until(held_until) => {}
            () = user.stopping() => return answer(job).await,
            failure = user.rights_lost() => return Err(failure),
        }
    }
}

/// The values that the expressions of a claimed job read. No record contains values of secrets.
pub(crate) async fn context(user: &Visible, job: &ShownJob) -> Result<JobContext, Failure> {
    let Some(run) = job.state.run() else {
        let text = format!(
            "job {} is {}: no runner has claimed it, so nothing is frozen",
            job.id,
            job.state.name()
        );
        return Err(Failure::new(ErrorCode::IllegalTransition, text)
            .hint("`everscan scan why` shows what the expression of its scan reads now"));
    };
    let context = Context {
        inputs: user.inputs(job).await?,
        ..run.context.clone()
    };
    Ok(JobContext {
        frozen_at: run.started_at,
        context: serde_json::to_value(&context).map_err(|error| Failure::internal(&error))?,
        secrets: run.secrets.clone(),
    })
}

pub(super) async fn cancel(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let CancelJob {} = request.body.json_or_default(&request.headers).await?;
    let job = cancel_named(user, request.parameter(0)).await?;
    Ok(reply::ok(&changed(user, &job).await?))
}

/// What the caller learns of a job that it made or changed.
pub(super) async fn changed(user: &Visible, job: &ShownJob) -> Result<ChangedJob, Failure> {
    Ok(match user.reads_jobs() {
        true => ChangedJob::Whole(Box::new(wire_job(user, job).await?)),
        false => ChangedJob::Short {
            id: job.id.uuid(),
            state: convert::state(&job.state),
        },
    })
}

/// Cancels a job. A cancelled job is returned as it is, so a repeat is harmless.
pub(crate) async fn cancel_named(user: &Visible, named: &str) -> Result<ShownJob, Failure> {
    let before = user.job_named(named).await?;
    let id = before.id;
    let job = if before.state.is_terminal() {
        before
    } else {
        match user.cancel(&before).await? {
            Some(job) => job,
            None => user.job(id).await?,
        }
    };
    match &job.state {
        JobState::Cancelled { .. } => Ok(job),
        state @ (JobState::Scheduled
        | JobState::Running { .. }
        | JobState::Succeeded { .. }
        | JobState::Failed { .. }
        | JobState::Skipped { .. }) => {
            let refused = Failure::new(
                ErrorCode::IllegalTransition,
                format!("job {id} is {} and cannot be cancelled", state.name()),
            );
            Err(match job.retried_by {
                Some(retry) => refused.hint(format!(
                    "job {retry} retries it: `everscan job cancel {retry}`"
                )),
                None => refused,
            })
        }
    }
}

/// Removes a finished job with its log and artifacts. A repeat fails, because the job no longer exists.
pub(crate) async fn delete(user: &Visible, named: &str) -> Result<(), Failure> {
    user.delete_job(&user.job_named(named).await?).await
}

/// The job with the messages about it. They are read from the log of deliveries, which costs
/// more than the job.
pub(crate) async fn with_messages(user: &Visible, job: &ShownJob) -> Result<wire::Job, Failure> {
    let mut converted = wire_job(user, job).await?;
    converted.messages = channels::messages(user, job).await;
    Ok(converted)
}

/// Converts a job, with the values from other files than its record.
pub(crate) async fn wire_job(user: &Visible, job: &ShownJob) -> Result<wire::Job, Failure> {
    let stored: BTreeMap<_, _>;
    let inputs = match convert::inline_inputs(job) {
        Some(inputs) => inputs,
        None => {
            stored = user.inputs(job).await?;
            &stored
        }
    };
    // The record of a completed job has the count. After any other end, the runner may have added lines.
    let (records, waiting, storing) = match &job.state {
        JobState::Scheduled => (0, user.why_waiting(job), None),
        JobState::Skipped { .. } | JobState::Cancelled { run: None, .. } => (0, None, None),
        JobState::Succeeded { run, .. } => (run.log_records, None, None),
        JobState::Running { .. } => (
            user.log_records(job).await?,
            None,
            user.artifact_progress(job),
        ),
        JobState::Failed { .. } | JobState::Cancelled { .. } => {
            (user.log_records(job).await?, None, None)
        }
    };
    let mut converted = convert::job(job, inputs, records, waiting.as_ref(), storing.as_ref());
    if let JobState::Scheduled = job.state {
        converted.not_before = converted.not_before.map(|at| user.by_the_clock(at));
    }
    Ok(converted)
}
