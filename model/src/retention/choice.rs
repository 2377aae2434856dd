//! Which jobs go, oldest first over all scans of a workflow.

use std::collections::VecDeque;

use super::{FinishedJob, Position, RetentionPolicy};
use crate::world::ScanKey;
use crate::{JobId, Timestamp};

/// What there is of a workflow's finished jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stock {
    /// How many.
    pub jobs: u64,
    /// What they take beside their records.
    pub bytes: u64,
}

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
    /// It would go, were it not protected.
    PassOver,
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
                let job = &shelf.queue.front()?.job;
                Some(((job.finished_at, job.id), number, shelf))
            })
            .min_by_key(|(age, _, _)| *age);
        let Some((_, number, shelf)) = oldest else {
            break Outlook::Done(None);
        };
        let Some(candidate) = shelf.queue.front() else {
            break Outlook::Done(None);
        };
        let due = policy.due(&candidate.job);
        if !policy.is_exceeded_by(*stock) && due.is_none_or(|due| due > now) {
            break Outlook::Done(due);
        }
        let fate = if shelf.protected.contains(&candidate.job.id) {
            Fate::PassOver
        } else if candidate.job.silent_from() > now {
            break Outlook::Done(Some(candidate.job.silent_from()));
        } else {
            Fate::Remove
        };
        if fate == Fate::Remove {
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
