//! Chooses the job that is removed next: the oldest of all scans of a workflow.

use std::collections::VecDeque;

use super::{FinishedJob, Position, RetentionPolicy, Stock};
use crate::Timestamp;

/// The oldest finished jobs of a scan, oldest first.
pub type Backlog = VecDeque<Candidate>;

/// A job that may be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub job: FinishedJob,
    /// The end of its history line. None if the job had to stay in an earlier pass.
    pub end: Option<Position>,
}

/// The job that a policy removes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The first job of the backlog with this index.
    Job(usize),
    /// No job now. Unless other jobs end before, the next job becomes too old at this time.
    Nothing(Option<Timestamp>),
}

/// Chooses the next job to remove. A backlog may only be empty if its scan has no more jobs.
pub fn next(policy: &RetentionPolicy, now: Timestamp, stock: Stock, backlogs: &[Backlog]) -> Next {
    let firsts = backlogs.iter().enumerate().filter_map(|(number, backlog)| {
        let age = (first_ended(backlog, now)?, backlog.front()?.job.id);
        Some((age, number))
    });
    let Some(((ended, _), number)) = firsts.min() else {
        return Next::Nothing(None);
    };
    let due = policy.due(ended);
    if policy.is_exceeded_by(stock) || due.is_some_and(|due| due <= now) {
        Next::Job(number)
    } else {
        Next::Nothing(due)
    }
}

/// When the first job ended. If the recorded time is impossible because of a wrong clock, it is estimated: jobs are in
/// the order of their ends, and a job cannot end before it was created.
fn first_ended(backlog: &Backlog, now: Timestamp) -> Option<Timestamp> {
    let first = &backlog.front()?.job;
    let mut times = backlog.iter().map(|it| it.job.finished_at);
    let ended = times.find(|ended| *ended <= now).unwrap_or(now);
    let made = Some(first.id.moment()).filter(|made| *made <= now);
    Some(made.map_or(ended, |made| ended.max(made)))
}

#[cfg(test)]
mod tests;
