//! What every end of a job brings with it, in the same commit.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Refusal;
use super::triggers::{follow, read_by_followers};
use crate::change::{Change, HistoryEntry};
use crate::history::HistoryLine;
use crate::job::{Job, JobState};
use crate::life_cycle::JobEvent;
use crate::moment::Moment;
use crate::past::Ended;
use crate::scan_head::{Digests, ScanHead, Success, digests_of};
use crate::world::World;
use crate::{JobId, ScanKey};

/// The job after an event that ends it, its scan's head, its line in the history, and the jobs it starts.
pub(super) fn finish(
    world: &World,
    job: &Job,
    event: JobEvent,
    log_bytes: u64,
    moment: &mut Moment<'_>,
) -> Result<(Arc<Job>, Vec<Change>), Refusal> {
    let scan = job.scan_key();
    let mut head = world.head(&scan).map_or_else(
        || ScanHead::new(scan.workflow, scan.scan.clone()),
        |head| ScanHead::clone(head),
    );
    let had_digests = head.has_digests();
    let finished = end(job, event, log_bytes, &mut head, moment)?;
    let job = finished.job.clone();
    let head = Arc::new(head);
    let ended = Ended {
        job: job.id,
        head: head.clone(),
        scan,
        line: finished.history.line.clone(),
    };
    let mut changes = finished.changes();
    let is_success = matches!(job.state, JobState::Succeeded { .. });
    if is_success && (had_digests || head.has_digests()) {
        changes.push(Change::Digests(Arc::new(Digests::of(&head))));
    }
    changes.push(Change::Head(head));
    changes.extend(follow(world, &ended, moment)?);
    Ok((job, changes))
}

/// The scans whose jobs are read when the job ends.
pub(super) fn read_at_end(world: &World, job: JobId) -> BTreeSet<ScanKey> {
    world
        .job(job)
        .map(|job| read_by_followers(world, &job.scan_key()))
        .unwrap_or_default()
}

/// A job that has ended, with its line in the history. Its scan's head is the caller's to store.
pub(super) struct Finished {
    pub(super) job: Arc<Job>,
    history: HistoryEntry,
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

/// Ends a job and counts it in its scan's head.
pub(super) fn end(
    job: &Job,
    event: JobEvent,
    log_bytes: u64,
    head: &mut ScanHead,
    moment: &Moment<'_>,
) -> Result<Finished, Refusal> {
    let mut job = job.after(event)?;
    if let Some(run) = Arc::make_mut(&mut job).state.run_mut() {
        run.log_bytes = log_bytes;
    }
    let line = HistoryLine::of(&job).ok_or(Refusal::Unwritable {
        job: job.id,
        record: "history line",
        problem: "the job is not over".to_owned(),
    })?;
    head.latest_job = head.latest_job.max(job.id);
    count(head, &job, moment);
    let history = head.append_to_history(line)?;
    Ok(Finished { job, history })
}

fn count(head: &mut ScanHead, job: &Job, moment: &Moment<'_>) {
    head.totals.count(job.state.name(), job.bytes());
    match &job.state {
        JobState::Succeeded { .. } => {
            let digests = digests_of(job);
            let success = Success {
                job: job.id,
                order: moment.order,
                artifacts: digests.len(),
                digests,
            };
            head.successes.insert(0, success);
            head.successes.truncate(2);
        }
        JobState::Scheduled
        | JobState::Running { .. }
        | JobState::Failed { .. }
        | JobState::Cancelled { .. }
        | JobState::Skipped { .. } => {}
    }
}
