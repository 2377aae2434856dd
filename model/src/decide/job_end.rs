//! The end of a job: its record, its line in the history, and the counters in its scan's head.

use std::sync::Arc;

use super::Refusal;
use crate::change::{Change, HistoryEntry};
use crate::history::HistoryLine;
use crate::job::{EndState, Job};
use crate::life_cycle::JobEvent;
use crate::limits::WORKER_LAST_WORDS;
use crate::moment::Moment;
use crate::scan_head::{Ended, Failing, Failure, ScanHead, Succeeded, Success, digests_of};
use crate::{JobId, Reason, Timestamp};

/// A job that has ended, with its history line. The caller stores the scan's head.
pub(super) struct Finished {
    pub(super) job: Arc<Job>,
    pub(super) history: HistoryEntry,
}

impl Finished {
    pub(super) fn changes(self) -> Vec<Change> {
        let expiry = self.job.expiry().map(Change::Expiry);
        [Change::Job(self.job), Change::History(self.history)]
            .into_iter()
            .chain(expiry)
            .collect()
    }
}

/// Ends a job without a retry, and counts it in its scan's head.
pub(super) fn end_job(
    job: &Job,
    event: JobEvent,
    log_bytes: u64,
    head: &mut ScanHead,
    moment: &Moment<'_>,
) -> Result<Finished, Refusal> {
    settle(ended(job, event, log_bytes, moment)?, head, moment)
}

/// The record of a job that ends. If somebody else ends it, its worker has some time to clean up.
pub(super) fn ended(
    job: &Job,
    event: JobEvent,
    log_bytes: u64,
    moment: &Moment<'_>,
) -> Result<Arc<Job>, Refusal> {
    let mut job = job.after(event)?;
    let is_cut_off = job.ended_by_another_at().is_some();
    if let Some(run) = Arc::make_mut(&mut job).state.run_mut() {
        run.log_bytes = log_bytes;
        if is_cut_off {
            run.expires_at = run.expires_at.min(moment.steady + WORKER_LAST_WORDS);
        }
    }
    Ok(job)
}

/// Writes the history line of a job that has ended, and counts it in its scan's head.
pub(super) fn settle(
    job: Arc<Job>,
    head: &mut ScanHead,
    moment: &Moment<'_>,
) -> Result<Finished, Refusal> {
    let line = HistoryLine::of(&job).ok_or(Refusal::Unwritable {
        job: job.id,
        record: "history line",
        problem: "the job is not over".to_owned(),
    })?;
    head.latest_job = head.latest_job.max(job.id);
    head.totals.count(line.state, job.bytes());
    note_end(head, &job, line.state, moment);
    let history = head.append_to_history(line)?;
    Ok(Finished { job, history })
}

/// Records the result of a job in the head of its scan, or of the renamed scan.
pub(super) fn note_end(head: &mut ScanHead, job: &Job, state: EndState, moment: &Moment<'_>) {
    head.ended = job.state.end().map(|end| Ended { at: end.at, state });
    match state {
        EndState::Succeeded => {
            let digests = digests_of(job);
            let success = Success {
                job: job.id,
                order: moment.order,
                artifacts: digests.len(),
                hops: job.hops,
                digests,
            };
            head.successes.insert(0, success);
            head.successes.truncate(2);
            let was_fine = head.failure.is_none() && head.failing.is_none();
            let before = head.succeeded.filter(|_| was_fine);
            let since = before.and_then(|before| before.since);
            head.failure = None;
            head.failing = None;
            head.succeeded = succeeded(job, since);
            if let Some(run) = job.state.run() {
                head.process(run);
            }
        }
        EndState::Failed if job.retried_by.is_none() => {
            head.failure = Some(Failure {
                job: job.id,
                order: moment.order,
                hops: job.hops,
            });
        }
        // If the cancelled job was a retry, the failure of the job that it retried is final.
        EndState::Cancelled => {
            let failed = job.retry_of.map(|retry| retry.job);
            let newest = head.successes.first().map(|success| success.job);
            if let Some(failed) = failed.filter(|failed| Some(*failed) > newest) {
                head.failure = Some(Failure {
                    job: failed,
                    order: moment.order,
                    hops: job.hops,
                });
            }
        }
        EndState::Failed | EndState::Skipped => {}
    }
    if let Some(failed) = final_failure(head, job, state) {
        let failures = head.failing.map_or(0, |failing| failing.failures) + 1;
        head.failing = Some(Failing {
            job: failed,
            failures,
        });
    }
}

fn succeeded(job: &Job, since: Option<Timestamp>) -> Option<Succeeded> {
    let (end, run) = (job.state.end()?, job.state.run()?);
    Some(Succeeded {
        job: job.id,
        at: end.at,
        took: u64::try_from((end.at - run.started_at).num_seconds()).unwrap_or_default(),
        since: since.or(Some(end.at)),
    })
}

/// The job that a person should look into after the end of `job`: `job` itself if it failed or ran until its session
/// ended, or the job of which it was the retry, if the retry was stopped.
fn final_failure(head: &ScanHead, job: &Job, state: EndState) -> Option<JobId> {
    let has_expired = matches!(job.reason(), Reason::SessionExpired);
    match state {
        EndState::Failed | EndState::Cancelled if state == EndState::Failed || has_expired => {
            job.retried_by.is_none().then_some(job.id)
        }
        EndState::Cancelled | EndState::Skipped => {
            let newest = head.successes.first().map(|success| success.job);
            let retried = job.retry_of.map(|retry| retry.job);
            retried.filter(|retried| Some(*retried) > newest)
        }
        EndState::Failed | EndState::Succeeded => None,
    }
}
