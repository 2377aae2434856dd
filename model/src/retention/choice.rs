//! Which jobs are removed: the oldest first, over all scans of a workflow.

use std::collections::VecDeque;

use super::{FinishedJob, Position, RetentionPolicy, Stock};
use crate::{JobId, ScanKey, Timestamp};

/// A job whose line is at or after the place up to which the history has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    pub job: FinishedJob,
    /// Where its line ends.
    pub end: Position,
}

/// A job that may be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub job: FinishedJob,
    /// Where its line ends. None if the job was passed over before.
    pub end: Option<Position>,
}

/// The oldest finished jobs of a scan.
#[derive(Debug, Clone)]
pub struct Backlog {
    pub scan: ScanKey,
    /// Jobs that no policy removes.
    pub protected: Vec<JobId>,
    /// How many more jobs may be passed over because their runners may still add to their logs.
    pub room: usize,
    /// The oldest jobs, oldest first.
    pub queue: VecDeque<Candidate>,
    /// Whether the scan has no more jobs than these.
    pub is_whole: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is removed.
    Remove,
    /// The policy would remove it, and it stays for this reason.
    PassOver(Stay),
}

/// Why a job stays although the policy would remove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// It is among the newest two successes of its scan.
    NewestSuccess,
    /// It ended a moment ago, and its runner may add to its log until this time. The job counts as removed, so that no
    /// other job is removed in its place.
    JustEnded(Timestamp),
}

/// The jobs that the policy removes, in order, each with the index of its scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The jobs.
    pub taken: Vec<(usize, Candidate, Fate)>,
    /// What to do next.
    pub outlook: Outlook,
}

/// What to do after a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// Nothing more is removed now. If no job ends before, the next job becomes too old at this time.
    Done(Option<Timestamp>),
    /// The requested number of jobs is chosen, or the loaded jobs of a scan are used up. There may be more.
    More,
}

impl Backlog {
    /// When the first job ended. A wrong clock may have recorded an impossible time. Jobs are in the order in which
    /// they ended, and no job ended before it was made.
    fn first_ended(&self, now: Timestamp) -> Option<Timestamp> {
        let first = &self.queue.front()?.job;
        let mut times = self.queue.iter().map(|it| it.job.finished_at);
        let ended = times.find(|ended| *ended <= now).unwrap_or(now);
        let made = Some(first.id.moment()).filter(|made| *made <= now);
        Some(made.map_or(ended, |made| ended.max(made)))
    }
}

/// Chooses at most `room` jobs, and takes them out of `backlogs` and `stock`.
pub fn choose(
    policy: &RetentionPolicy,
    now: Timestamp,
    stock: &mut Stock,
    backlogs: &mut [Backlog],
    room: usize,
) -> Choice {
    let mut taken = Vec::new();
    let outlook = loop {
        if backlogs
            .iter()
            .any(|backlog| backlog.queue.is_empty() && !backlog.is_whole)
            || taken.len() >= room
        {
            break Outlook::More;
        }
        let oldest = backlogs
            .iter_mut()
            .enumerate()
            .filter_map(|(number, backlog)| {
                let ended = backlog.first_ended(now)?;
                Some(((ended, backlog.queue.front()?.job.id), number, backlog))
            })
            .min_by_key(|(age, _, _)| *age);
        let Some(((ended, _), number, backlog)) = oldest else {
            break Outlook::Done(None);
        };
        let Some(candidate) = backlog.queue.front() else {
            break Outlook::Done(None);
        };
        let due = policy.due(ended);
        if !policy.is_exceeded_by(*stock) && due.is_none_or(|due| due > now) {
            break Outlook::Done(due);
        }
        let fate = if backlog.protected.contains(&candidate.job.id) {
            Fate::PassOver(Stay::NewestSuccess)
        } else if let Some(until) = candidate.job.talks_until(now) {
            if candidate.end.is_some() {
                let Some(room) = backlog.room.checked_sub(1) else {
                    break Outlook::Done(Some(until));
                };
                backlog.room = room;
            }
            Fate::PassOver(Stay::JustEnded(until))
        } else {
            Fate::Remove
        };
        if fate != Fate::PassOver(Stay::NewestSuccess) {
            stock.jobs = stock.jobs.saturating_sub(1);
            stock.bytes = stock.bytes.saturating_sub(candidate.job.bytes);
        }
        taken.extend(
            backlog
                .queue
                .pop_front()
                .map(|candidate| (number, candidate, fate)),
        );
    };
    Choice { taken, outlook }
}

#[cfg(test)]
mod tests;
