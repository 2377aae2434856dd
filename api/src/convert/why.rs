//! Converts the explanation why a scan did or did not run.

use model::{
    ActiveWorkflow, Cause, Circle, Clause, Evaluation, Job, LedgerRecord, Outcome, RevisionRef,
    Timestamp, WorkflowStatus,
};
use reconciler::{Why, WhyCallback};
use workflow::{Scan, ScanName, format_duration};

use crate::convert::{self, Convert};

pub(crate) fn why(workflow: &ActiveWorkflow, scan: &Scan, mut why: Why) -> wire::Why {
    let state = match workflow.record.status {
        WorkflowStatus::Active => "active",
        WorkflowStatus::Retired { .. } => "retired",
    };
    let cron = scan.on.cron.as_ref().map(|cron| wire::Schedule {
        schedule: cron.source().to_owned(),
        description: cron.describe(),
        timezone: scan.on.timezone.name().to_owned(),
        next_schedule: why
            .next_slot
            .and_then(|slot| scan.on.named_schedule_of(slot)),
        next: why.next_slot,
        ahead: why.ahead,
    });
    let now = why.evaluation.take().map(evaluation);
    let expr = scan.on.expr.as_ref().map(|expression| {
        let references = expression.references();
        let is_other = |name: &&String| name.as_str() != scan.name.as_str();
        let named = references.scans.iter().filter(is_other).cloned();
        wire::Watching {
            expression: expression.source().to_owned(),
            now,
            after_successes: match references.any_scan {
                true => Vec::new(),
                false => named.collect(),
            },
            after_failures: references.failures.iter().cloned().collect(),
        }
    });
    let callback = scan.on.callback.as_ref().map(|on| wire::Listening {
        server: on.server.to_string(),
        id: None,
        min_interval: format_duration(on.min_interval),
        problem: None,
        considered: None,
        waiting: None,
    });
    wire::Why {
        cron,
        expr,
        callback,
        dispatch: scan.on.dispatch.is_some(),
        ..past(workflow, &scan.name, state, why)
    }
}

/// For a scan that the workflow no longer has.
pub(crate) fn of_removed(
    workflow: &ActiveWorkflow,
    scan: &ScanName,
    removed_by: Option<&RevisionRef>,
    why: Why,
) -> wire::Why {
    wire::Why {
        removed_by: removed_by.map(convert::revision_ref),
        ..past(workflow, scan, "removed", why)
    }
}

/// The part that removed scans have, too: the jobs and the ledger.
fn past(workflow: &ActiveWorkflow, scan: &ScanName, state: &str, why: Why) -> wire::Why {
    wire::Why {
        workflow: format!("{}/{}", workflow.record.source, workflow.record.name),
        scan: scan.to_string(),
        state: state.to_owned(),
        removed_by: None,
        renamed_from: None,
        renamed_to: None,
        suspended: None,
        resumed: None,
        cron: None,
        expr: None,
        callback: None,
        dispatch: false,
        unfinished: why.unfinished.iter().map(|job| unfinished(job)).collect(),
        newest: why.newest.as_deref().and_then(caused_job),
        circle: None,
        cut_job: why.newest.and_then(|job| cut_job(&job)),
        messages: Vec::new(),
        records: why.records.into_iter().map(record).collect(),
        damaged: convert::damaged(why.damaged),
    }
}

/// Adds the state of the callback server that starts a scan.
pub(crate) fn listen(
    listening: &mut wire::Listening,
    now: &WhyCallback,
    until: impl Fn(Timestamp) -> String,
) {
    listening.id = now.server.map(|id| id.to_string());
    listening.considered = now.considered;
    let waiting = now.unconsidered.as_ref();
    listening.waiting = waiting.map(|(it, due)| wire::WaitingInteractions {
        first: it.first,
        last: it.last,
        count: it.count,
        own: it.own,
        until: until(*due),
    });
}

fn caused_job(job: &Job) -> Option<wire::CausedJob> {
    (!job.causes.is_empty()).then(|| wire::CausedJob {
        id: job.id.uuid(),
        created_at: job.created_at,
        causes: job.causes.iter().map(|cause| cause.uuid()).collect(),
    })
}

pub(crate) fn circle(circle: &Circle) -> wire::Circle {
    wire::Circle {
        scans: circle.scans.iter().map(ToString::to_string).collect(),
        laps: circle.laps,
        job: circle.job.uuid(),
    }
}

fn cut_job(job: &Job) -> Option<wire::CutJob> {
    let log_cut = convert::log_cut(job).filter(|_| job.state.is_terminal())?;
    Some(wire::CutJob {
        id: job.id.uuid(),
        log_cut,
    })
}

/// The caller adds the members that are not in the job's record.
fn unfinished(job: &Job) -> wire::UnfinishedJob {
    wire::UnfinishedJob {
        id: job.id.uuid(),
        state: convert::state(&job.state),
        trigger: job.trigger.converted(),
        created_at: job.created_at,
        waiting: None,
        not_before: job.not_before,
        attempt: job.retry_of.map(|retry| retry.attempt),
        attempts: job.retry_of.map(|retry| retry.attempts),
        log_cut: convert::log_cut(job),
    }
}

pub(crate) fn record(record: LedgerRecord) -> wire::LedgerRecord {
    wire::LedgerRecord {
        at: record.at,
        cause: cause(record.cause),
        evaluation: record.evaluation.map(evaluation),
        outcome: match record.outcome {
            Outcome::Made { job } => wire::LedgerOutcome::Made { job: job.uuid() },
            Outcome::NotMade { reason } => wire::LedgerOutcome::NotMade {
                code: reason.code().to_owned(),
                message: reason.to_string(),
            },
            Outcome::Skipped { job, reason } => wire::LedgerOutcome::Skipped {
                job: job.uuid(),
                code: reason.code().to_owned(),
                message: reason.to_string(),
            },
        },
    }
}

fn cause(cause: Cause) -> wire::LedgerCause {
    match cause {
        Cause::Slots {
            first,
            last,
            count,
            schedule,
        } => wire::LedgerCause::Slots {
            first,
            last,
            count,
            schedule,
        },
        Cause::Resumed { slot, schedule } => wire::LedgerCause::Resumed { slot, schedule },
        Cause::Success { scan, job } => wire::LedgerCause::Success {
            scan,
            job: job.uuid(),
        },
        Cause::Activation { revision } => wire::LedgerCause::Activation { revision },
        Cause::Failure { scan, job } => wire::LedgerCause::Failure {
            scan,
            job: job.uuid(),
        },
        Cause::Interactions {
            server,
            name,
            first,
            last,
            count,
            own,
        } => wire::LedgerCause::Interactions {
            server: server.to_string(),
            name: name.to_string(),
            first,
            last,
            count,
            own,
        },
        Cause::Claim { job } => wire::LedgerCause::Claim { job: job.uuid() },
        Cause::Clock { cursor } => wire::LedgerCause::Clock { cursor },
        Cause::Repeats { first, last, count } => wire::LedgerCause::Repeats { first, last, count },
    }
}

fn evaluation(evaluation: Evaluation) -> wire::Evaluation {
    wire::Evaluation {
        clause: clause(evaluation.clause),
        scans: evaluation
            .scans
            .into_iter()
            .map(|(name, read)| {
                let read = wire::ScanRead {
                    size: read.size,
                    available: read.available,
                    diff: read.diff,
                    news: read.news,
                    failed: read.failed,
                    successes: read.successes.iter().map(ToString::to_string).collect(),
                };
                (name, read)
            })
            .collect(),
    }
}

fn clause(of: Clause) -> wire::Clause {
    wire::Clause {
        text: of.text,
        value: of.value,
        error: of.error,
        jobs: of
            .jobs
            .into_iter()
            .map(|(scan, jobs)| (scan, jobs.iter().map(ToString::to_string).collect()))
            .collect(),
        more_jobs: of.more_jobs,
        parts: of.parts.into_iter().map(clause).collect(),
    }
}
