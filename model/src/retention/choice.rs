//! Which jobs go, oldest first over all scans of a workflow.

use std::collections::VecDeque;

use super::{FinishedJob, Position, RetentionPolicy, Stock};
use crate::{JobId, ScanKey, Timestamp};

/// A job whose line stands at or behind the place up to which a history has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    /// The job.
    pub job: FinishedJob,
    /// Where its line ends.
    pub end: Position,
}

/// A job that may have to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The job.
    pub job: FinishedJob,
    /// Where its line ends; none for one that was passed over before.
    pub end: Option<Position>,
}

/// The oldest finished jobs of a scan.
#[derive(Debug, Clone)]
pub struct Shelf {
    /// The scan.
    pub scan: ScanKey,
    /// Jobs that stay whatever the policy says.
    pub protected: Vec<JobId>,
    /// How many more jobs may be passed over because their runners may still add to their logs.
    pub room: usize,
    /// The oldest jobs, oldest first.
    pub queue: VecDeque<Candidate>,
    /// Whether there are no others.
    pub is_whole: bool,
}

/// What becomes of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It goes.
    Remove,
    /// It would go, and stays for that reason.
    PassOver(Stay),
}

/// Why a job stays that would go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// It is among the newest two successes of its scan.
    NewestSuccess,
    /// It ended a moment ago, and its runner may add to its log until then. It is as good as gone: nobody goes in its
    /// place.
    JustEnded(Timestamp),
}

/// The jobs that the policy takes, in order, each with the number of its shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The jobs.
    pub taken: Vec<(usize, Candidate, Fate)>,
    /// How to go on.
    pub outlook: Outlook,
}

/// How to go on after a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// Nothing more goes now. Time alone makes the next job go at this moment, if any.
    Done(Option<Timestamp>),
    /// As many jobs as were asked for are chosen, or the jobs of this shelf are used up: there may be more.
    More,
}

impl Shelf {
    /// When the first job ended. A time that cannot be right was told by a wrong clock: jobs stand in the order in which
    /// they ended, and none ended before it was made.
    fn first_ended(&self, now: Timestamp) -> Option<Timestamp> {
        let first = &self.queue.front()?.job;
        let mut times = self.queue.iter().map(|it| it.job.finished_at);
        let ended = times.find(|ended| *ended <= now).unwrap_or(now);
        let made = Some(first.id.moment()).filter(|made| *made <= now);
        Some(made.map_or(ended, |made| ended.max(made)))
    }
}

/// Chooses at most `room` jobs, and takes them from their shelves and the stock.
pub fn choose(
    policy: &RetentionPolicy,
    now: Timestamp,
    stock: &mut Stock,
    shelves: &mut [Shelf],
    room: usize,
) -> Choice {
    let mut taken = Vec::new();
    let outlook = loop {
        if shelves
            .iter()
            .any(|shelf| shelf.queue.is_empty() && !shelf.is_whole)
            || taken.len() >= room
        {
            break Outlook::More;
        }
        let oldest = shelves
            .iter_mut()
            .enumerate()
            .filter_map(|(number, shelf)| {
                let ended = shelf.first_ended(now)?;
                Some(((ended, shelf.queue.front()?.job.id), number, shelf))
            })
            .min_by_key(|(age, _, _)| *age);
        let Some(((ended, _), number, shelf)) = oldest else {
            break Outlook::Done(None);
        };
        let Some(candidate) = shelf.queue.front() else {
            break Outlook::Done(None);
        };
        let due = policy.due(ended);
        if !policy.is_exceeded_by(*stock) && due.is_none_or(|due| due > now) {
            break Outlook::Done(due);
        }
        let fate = if shelf.protected.contains(&candidate.job.id) {
            Fate::PassOver(Stay::NewestSuccess)
        } else if let Some(until) = candidate.job.talks_until(now) {
            if candidate.end.is_some() {
                let Some(room) = shelf.room.checked_sub(1) else {
                    break Outlook::Done(Some(until));
                };
                shelf.room = room;
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
            shelf
                .queue
                .pop_front()
                .map(|candidate| (number, candidate, fate)),
        );
    };
    Choice { taken, outlook }
}

#[cfg(test)]
mod tests;
