//! Converts scans, their finished jobs and their slots.

use chrono::TimeDelta;
use model::{ActiveWorkflow, HistoryLine, Job, JobId, ScanKey, Seen, Totals, Upcoming};
use workflow::{Expect, Scan, format_duration};

use crate::convert::{self, Convert};

/// The status of a scan. If its last job is finished, the caller adds the job.
pub(crate) fn status(seen: Seen<'_>, workflow: &ActiveWorkflow, scan: &Scan) -> wire::ScanStatus {
    let key = ScanKey {
        workflow: workflow.record.id,
        scan: scan.name.clone(),
    };
    let suspension = seen.suspension(&key);
    let own = seen.latest_suspension(key.workflow, Some(&key.scan));
    let mut unfinished = seen.jobs_of(&key);
    let last_job = unfinished.next_back().map(|job| job_line(job));
    let finished = seen.finished(&key);
    wire::ScanStatus {
        workflow: convert::workflow_ref(&workflow.record.reference()),
        scan: convert::scan(&workflow.revision.definition, scan),
        suspended: suspension.and_then(|it| convert::suspension(it)),
        resumed: own.and_then(|it| convert::resumption(it)),
        next_slot: seen.next_slot_of(&key),
        unfinished: unfinished.count() as u64 + u64::from(last_job.is_some()),
        finished: finished_jobs(finished),
        expect: (scan.expect != Expect::default()).then(|| expectations(&scan.expect)),
        proposed: None,
        last_job,
    }
}

pub(crate) fn expectations(expect: &Expect) -> wire::Expectations {
    let text = |time: Option<TimeDelta>| time.map(format_duration);
    wire::Expectations {
        success_every: text(expect.success_every),
        starts_within: text(expect.starts_within),
        at_least: text(expect.at_least),
        at_most: text(expect.at_most),
    }
}

const fn finished_jobs(totals: Totals) -> wire::FinishedJobs {
    wire::FinishedJobs {
        succeeded: totals.succeeded,
        failed: totals.failed,
        cancelled: totals.cancelled,
        skipped: totals.skipped,
    }
}

/// A short form of a job: a finished job looks as in the history.
pub(crate) fn job_line(job: &Job) -> wire::JobLine {
    if let Some(line) = HistoryLine::of(job) {
        return history_line(line);
    }
    let run = job.state.run();
    wire::JobLine {
        id: job.id.uuid(),
        state: convert::state(&job.state),
        trigger: job.trigger.converted(),
        revision: job.revision.id.uuid(),
        reason: Some(job.reason().code().to_owned()),
        runner: run.map(|run| run.runner.name.clone()),
        retried_by: None,
        causes: job.causes.iter().map(|cause| cause.uuid()).collect(),
        created_at: job.created_at,
        started_at: run.map(|run| run.started_at),
        finished_at: None,
        artifacts: Default::default(),
        bytes: 0,
    }
}

pub(crate) fn history_line(line: HistoryLine) -> wire::JobLine {
    let artifacts = line.artifacts.into_iter();
    let artifacts = artifacts.map(|(name, (content_digest, size))| {
        let artifact = wire::ArtifactLine {
            content_digest,
            size,
        };
        (name, artifact)
    });
    wire::JobLine {
        id: line.id.uuid(),
        state: line.state.converted(),
        trigger: line.trigger.converted(),
        revision: line.revision.uuid(),
        reason: line.reason,
        runner: line.runner,
        retried_by: line.retried_by.map(JobId::uuid),
        causes: line.causes.iter().map(|cause| cause.uuid()).collect(),
        created_at: line.created_at,
        started_at: line.started_at,
        finished_at: Some(line.finished_at),
        artifacts: artifacts.collect(),
        bytes: line.bytes,
    }
}

pub(crate) fn slot(slot: &Upcoming) -> Option<wire::Slot> {
    let on = &slot.workflow.scan(&slot.scan)?.on;
    Some(wire::Slot {
        at: slot.at,
        local: slot.at.with_timezone(&on.timezone).fixed_offset(),
        workflow: convert::workflow_ref(&slot.workflow.record.reference()),
        scan: slot.scan.to_string(),
        schedule: on.schedule_of(slot.at)?.source().to_owned(),
        timezone: on.timezone.name().to_owned(),
    })
}
