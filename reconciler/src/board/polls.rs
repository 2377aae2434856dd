//! The polls that wait, in the order in which they came. A runner has one at most.

use std::collections::{BTreeMap, HashMap};

use model::RunnerId;
use tokio::sync::oneshot;

use super::{Message, Poll};

/// A runner's poll that has not been answered.
pub(super) struct Waiting {
    pub(super) poll: Poll,
    pub(super) answer: oneshot::Sender<Vec<Message>>,
}

#[derive(Default)]
pub(super) struct Polls {
    by_arrival: BTreeMap<u64, Waiting>,
    of_runner: HashMap<RunnerId, u64>,
    arrivals: u64,
}

impl Polls {
    pub(super) fn len(&self) -> usize {
        self.by_arrival.len()
    }

    /// Puts it behind all others.
    pub(super) fn insert(&mut self, waiting: Waiting) {
        self.remove(waiting.poll.runner);
        self.arrivals += 1;
        self.of_runner.insert(waiting.poll.runner, self.arrivals);
        self.by_arrival.insert(self.arrivals, waiting);
    }

    pub(super) fn remove(&mut self, runner: RunnerId) -> Option<Waiting> {
        self.by_arrival.remove(&self.of_runner.remove(&runner)?)
    }

    pub(super) fn of(&self, runner: RunnerId) -> Option<&Poll> {
        let waiting = self.by_arrival.get(self.of_runner.get(&runner)?)?;
        Some(&waiting.poll)
    }

    /// All of them, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.by_arrival.values()
    }

    pub(super) fn clear(&mut self) {
        self.by_arrival.clear();
        self.of_runner.clear();
    }
}
