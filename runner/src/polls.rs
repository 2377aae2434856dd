//! The long polls of a session. Each poll lists all jobs that the runner holds. When the list changes, a new poll replaces the
//! older poll at once, so that the daemon learns of free capacity without delay.
//!
//! A replaced poll is not dropped: its answer may bring an offer, which the daemon would repeat only after the offer has expired.
//! The daemon ends the old poll when it receives the new poll. A job that the old poll brings may only start after that:
//! otherwise the daemon could see the job running before it learns that the runner holds it. For this the polls are numbered, and
//! [`Polls::all_know`] says whether every poll in flight was sent after a given moment. Each poll carries its number, so that the
//! daemon ignores a poll that arrives after a newer poll.

use std::collections::BTreeSet;
use std::time::Duration;

use client::{Client, Error, PollAnswer};
use tokio::task::JoinSet;
use wire::Poll;

use crate::limits;

pub(crate) type Answer = Result<PollAnswer, Error>;

#[derive(Debug)]
pub(crate) struct Polls {
    tasks: JoinSet<(u64, Answer)>,
    in_flight: BTreeSet<u64>,
    next: u64,
}

impl Polls {
    /// Numbers that begin with the microseconds since the machine's start. The daemon identifies a process by its machine's boot
    /// and its folder, so a later process needs higher numbers than an earlier process.
    pub(crate) fn new(since_boot: Duration) -> Self {
        Self {
            tasks: JoinSet::new(),
            in_flight: BTreeSet::new(),
            next: u64::try_from(since_boot.as_micros()).unwrap_or_default(),
        }
    }

    /// The number of the next poll. It will list all jobs that are held when it is sent.
    pub(crate) const fn next_number(&self) -> u64 {
        self.next
    }

    pub(crate) fn has_room(&self) -> bool {
        self.in_flight.len() < limits::POLLS
    }

    pub(crate) fn send(&mut self, client: Client, poll: Poll) {
        let number = self.next;
        self.next += 1;
        self.in_flight.insert(number);
        self.tasks
            .spawn(async move { (number, client.poll(&poll).await) });
    }

    /// Waits for the next answer to any poll. Returns it, and whether the poll was the newest. Waits forever if no poll is in
    /// flight.
    /// in flight.
    pub(crate) async fn answer(&mut self) -> (bool, Answer) {
        loop {
            match self.tasks.join_next().await {
                Some(Ok((number, answer))) => {
                    self.in_flight.remove(&number);
                    return (number + 1 == self.next, answer);
                }
                // A task that panicked has no answer, and its number is unknown: forget all polls and start again.
                Some(Err(error)) => {
                    tracing::error!(%error, "a poll panicked");
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
