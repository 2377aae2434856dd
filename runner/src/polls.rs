//! The long polls of a session. Each poll lists all jobs that the runner holds. When that list changes, a new poll
//! replaces the older one at once, so that the daemon learns of free capacity without delay.
//!
//! A replaced poll is not dropped: its answer may bring an offer, which the daemon would repeat only after the offer has
//! expired. The daemon ends the old poll when the new one arrives. Until then it has not seen the new one. So the worker
//! of a job from the old poll has to wait: otherwise the daemon could see the job running before it sees it held. For
//! this the polls are numbered, and [`Polls::all_know`] says whether every poll in flight was sent after a given moment.
//! Each poll carries its number, so that the daemon ignores a poll that arrives after a newer one.

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
    /// Numbers that begin with the microseconds since the machine's start: the daemon knows a process by its machine's
    /// boot and its folder, so the numbers of a process that follows another one must be higher.
    pub(crate) fn new(since_boot: Duration) -> Self {
        Self {
            tasks: JoinSet::new(),
            in_flight: BTreeSet::new(),
            next: u64::try_from(since_boot.as_micros()).unwrap_or_default(),
        }
    }

    /// The number of the next poll, which will list a job that is held from now on, and carry this number.
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

    /// Waits for the next answer to any poll. Returns it, and whether that poll was the newest. Waits forever if no poll is
    /// in flight.
    pub(crate) async fn answer(&mut self) -> (bool, Answer) {
        loop {
            match self.tasks.join_next().await {
                Some(Ok((number, answer))) => {
                    self.in_flight.remove(&number);
                    return (number + 1 == self.next, answer);
                }
                // A task that panicked has no answer, and its number is unknown: start again without any poll.
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
