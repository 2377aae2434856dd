//! What every end of a job brings with it, in the same commit.

use std::sync::Arc;

use super::Refusal;
use crate::history::HistoryLine;
use crate::job::{Job, JobState};
use crate::life_cycle::JobEvent;
use crate::limits::HISTORY_PAGE_BYTES;
use crate::moment::Moment;
use crate::scan_head::{ScanHead, Success, Tail};
use crate::world::{Change, HistoryEntry, ScanKey, World};

/// The job after an event that ends it, its scan's head and its line in the history.
pub(super) fn finish(
    world: &World,
    job: &Job,
    event: JobEvent,
    moment: &Moment<'_>,
) -> Result<(Arc<Job>, Vec<Change>), Refusal> {
    let job = job.after(event)?;
    let scan = job.scan_key();
    let mut head = world.head(&scan).map_or_else(
        || ScanHead::new(scan.workflow, scan.scan.clone()),
        |head| ScanHead::clone(head),
    );
    head.latest_job = head.latest_job.max(job.id);
    count(&mut head, &job, moment);
    let mut changes = vec![Change::Job(job.clone())];
    if let Some(line) = HistoryLine::of(&job) {
        changes.push(Change::History(append(&mut head, scan, &line)?));
    }
    changes.push(Change::Head(Arc::new(head)));
    Ok((job, changes))
}

fn count(head: &mut ScanHead, job: &Job, moment: &Moment<'_>) {
    head.totals.count(job.state.name());
    match &job.state {
        JobState::Succeeded { end, run } => {
            head.successes.insert(
                0,
                Success {
                    job: job.id,
                    order: moment.order,
                    finished_at: end.at,
                    artifacts: run
                        .artifacts
                        .iter()
                        .map(|artifact| (artifact.name.clone(), artifact.content_digest.clone()))
                        .collect(),
                },
            );
            head.successes.truncate(2);
        }
        JobState::Scheduled
        | JobState::Running { .. }
        | JobState::Failed { .. }
        | JobState::Cancelled { .. }
        | JobState::Skipped { .. } => {}
    }
}

fn append(head: &mut ScanHead, scan: ScanKey, line: &HistoryLine) -> Result<HistoryEntry, Refusal> {
    let mut line = serde_json::to_string(line).map_err(|error| Refusal::Unwritable {
        job: line.id,
        record: "history line",
        problem: error.to_string(),
    })?;
    line.push('\n');
    let Tail { page, bytes } = head.history;
    let written = bytes + line.len() as u64;
    head.history = if written >= HISTORY_PAGE_BYTES {
        Tail {
            page: page + 1,
            bytes: 0,
        }
    } else {
        Tail {
            page,
            bytes: written,
        }
    };
    Ok(HistoryEntry {
        scan,
        page,
        at: bytes,
        line,
    })
}
