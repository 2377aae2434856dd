//! The long polls of a session. Each carries everything the runner holds; when that changes, a new poll replaces the
//! older at once, so that freed capacity is told without waiting.
//!
//! A replaced poll is not thrown away: an offer may be on its way in its answer, and would only be made again after its
//! time is up. The daemon ends it when the new one arrives. Until then it has not seen the new one, which matters to a
//! job read from the old: its worker must wait, lest the daemon see it running before it sees it held. So polls are
//! numbered, and [`Polls::all_know`] tells when every poll in flight was sent after a given moment.

use std::collections::BTreeSet;

use client::{Client, Error, PollAnswer};
use tokio::task::JoinSet;
use wire::Poll;

use crate::limits;

/// What came back of a poll.
pub(crate) type Answer = Result<PollAnswer, Error>;

/// The polls in flight.
#[derive(Debug, Default)]
pub(crate) struct Polls {
    tasks: JoinSet<(u64, Answer)>,
    in_flight: BTreeSet<u64>,
    next: u64,
}

impl Polls {
    /// The number of the next poll: whoever changes what is held notes it.
    pub(crate) const fn next_number(&self) -> u64 {
        self.next
    }

    /// Whether one more may be sent.
    pub(crate) fn has_room(&self) -> bool {
        self.in_flight.len() < limits::POLLS
    }

    /// Sends a poll.
    pub(crate) fn send(&mut self, client: Client, poll: Poll) {
        let number = self.next;
        self.next += 1;
        self.in_flight.insert(number);
        self.tasks
            .spawn(async move { (number, client.poll(&poll).await) });
    }

    /// Waits for the next answer to any poll, and tells whether it was the newest. Waits forever when none is in flight.
    pub(crate) async fn answer(&mut self) -> (bool, Answer) {
        loop {
            match self.tasks.join_next().await {
                Some(Ok((number, answer))) => {
                    self.in_flight.remove(&number);
                    return (number + 1 == self.next, answer);
                }
                // A task that broke off has no answer; its number counts as in flight no more.
                Some(Err(error)) => {
                    tracing::error!(%error, "a poll broke off");
                    self.in_flight.clear();
                    self.tasks.abort_all();
                }
                None => return std::future::pending().await,
            }
        }
    }

    /// Whether every poll in flight has number `first` or a later one.
    pub(crate) fn all_know(&self, first: u64) -> bool {
        self.in_flight.first().is_none_or(|oldest| *oldest >= first)
    }
}
