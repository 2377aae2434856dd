//! Watches the wall clock, which may be wrong for a while. Schedules and displayed times follow it at once. Deletion by
//! age and expiry times follow it only after an hour without a jump.
//!
//! Before an action that cannot be undone, the wall clock is read and checked for a jump, so that no important jump is
//! missed.

use std::sync::{Arc, Mutex, MutexGuard};

use chrono::TimeDelta;
use futures_util::{StreamExt, future, stream};
use model::decide::{Command, FollowClock, ForgetClocks, NoteClocks, StoreExpiry};
use model::limits::{CLOCK_JUMP, CLOCK_LAG};
use model::{Clock, Timestamp, World};
use state::State;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::jumps::Jumps;
use crate::limits::{AT_ONCE, DEADLINE_CHECK};
use crate::supervise::lock;

/// A problem of the clock, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockTrouble {
    /// The clock jumped within the last hour, or schedules showed that it was wrong.
    Jumped {
        /// The size of the jump, if a jump was detected.
        by: Option<TimeDelta>,
        /// Nothing is deleted by age until this time.
        until: Timestamp,
        /// The number of schedules that had run far ahead of the clock and now continue from the present.
        schedules: u64,
    },
    /// Schedules that ran more than an hour ahead of the clock wait for it.
    Ahead {
        schedules: u64,
        /// The latest time up to which a schedule has run.
        until: Timestamp,
    },
}

/// The wall clock, with its known jumps.
pub struct ClockWatch {
    state: State,
    clock: Arc<dyn Clock>,
    jumps: Mutex<Jumps>,
    jumped: Notify,
}

impl ClockWatch {
    pub(crate) fn new(state: State, clock: Arc<dyn Clock>) -> Self {
        let jumps = state.read(|world| {
            let noted = world.clocks().map(|clocks| &**clocks);
            Jumps::noted(noted, clock.steady())
        });
        Self {
            state,
            clock,
            jumps: Mutex::new(jumps),
            jumped: Notify::new(),
        }
    }

    fn jumps(&self) -> MutexGuard<'_, Jumps> {
        lock(&self.jumps)
    }

    fn time(&self, world: &World) -> Timestamp {
        world.time(self.clock.steady())
    }

    /// Reads the wall clock and the steady clock, and checks for a jump.
    pub(crate) fn read_clocks(&self) -> (Timestamp, Timestamp) {
        let (wall, steady) = (self.clock.now(), self.clock.steady());
        if let Some(by) = self.jumps().check(wall, steady) {
            let jump = jump(by);
            tracing::warn!(
                "the wall clock has jumped {jump}: schedules follow it; for an hour nothing is deleted by age"
            );
            self.jumped.notify_one();
        }
        (wall, steady)
    }

    pub(crate) async fn jumped(&self) {
        self.jumped.notified().await;
    }

    /// The time for computing ages. None while the clock is not trusted.
    pub(crate) fn ages(&self) -> Option<Timestamp> {
        let (wall, steady) = self.read_clocks();
        let doubted = self.jumps().doubted(steady);
        doubted.is_none().then_some(wall)
    }

    /// Stops trusting the clock, because schedules show that it is or was wrong.
    pub(crate) fn doubt(&self, schedules: u64) {
        let (_, steady) = self.read_clocks();
        self.jumps().doubt(None, steady, schedules);
    }

    pub fn trouble(&self) -> Option<ClockTrouble> {
        let (wall, steady) = self.read_clocks();
        if let Some(doubt) = self.jumps().doubted(steady) {
            return Some(ClockTrouble::Jumped {
                by: doubt.by,
                until: wall + (doubt.until - steady),
                schedules: doubt.schedules,
            });
        }
        self.state.read(|world| {
            let mut ahead = world.followed_beyond(wall + CLOCK_JUMP);
            let (until, _) = ahead.next()?;
            Some(ClockTrouble::Ahead {
                schedules: 1 + ahead.count() as u64,
                until,
            })
        })
    }

    /// Moves the expiry times by the clock's jumps, once the clock is trusted again. Until then a jump is recorded on
    /// disk for the next process.
    pub(crate) async fn follow(&self) {
        let rests = self.jumps().rests_until;
        if rests.is_some_and(|until| Instant::now() < until) {
            return;
        }
        if self.ages().is_some() {
            self.follow_at_once().await;
            return;
        }
        let is_noted = self
            .state
            .read(|world| world.is_noted(self.clock.now(), self.time(world)));
        if !is_noted {
            let problem = "a jump of the clock cannot be recorded: after a crash, expiry times of jobs and tokens may be wrong";
            self.store(NoteClocks, problem).await;
        }
    }

    /// Moves the expiry times at once, so that the next process does not need the record of a jump.
    pub(crate) async fn follow_at_once(&self) {
        let by = self.clock.now() - self.state.read(|world| self.time(world));
        let problem = "the expiry times of tokens and jobs cannot follow the clock";
        if by.abs() >= CLOCK_LAG && !self.store(FollowClock, problem).await {
            return;
        }
        let (is_noted, holders) = self.state.read(|world| {
            let holders = world.has_earlier_clocks().then(|| world.holders());
            (world.clocks().is_some(), holders.unwrap_or_default())
        });
        if !is_noted {
            return;
        }
        // Submit them together, so that they share commits.
        let failed: Vec<_> = stream::iter(holders)
            .map(|holder| async move {
                let keep = StoreExpiry {
                    holder: holder.clone(),
                };
                let stored = self.state.submit(keep).await;
                stored.err().map(|error| (holder, error))
            })
            .buffer_unordered(AT_ONCE)
            .filter_map(future::ready)
            .collect()
            .await;
        if let Some((holder, error)) = failed.first() {
            let records = failed.len();
            tracing::warn!(records, first = ?holder, %error, "expiry times that followed the clock are not stored; this is retried");
            self.jumps().rests_until = Some(Instant::now() + DEADLINE_CHECK);
            return;
        }
        self.store(
            ForgetClocks,
            "the record of a jump of the clock cannot be removed",
        )
        .await;
    }

    /// Stores a record of the clock. False if that fails; the next attempt comes after a pause.
    async fn store(&self, command: impl Command<Answer = ()>, problem: &str) -> bool {
        let stored = self.state.submit(command).await;
        if let Err(error) = &stored {
            tracing::warn!(%error, "{problem}; this is retried");
            self.jumps().rests_until = Some(Instant::now() + DEADLINE_CHECK);
        }
        stored.is_ok()
    }
}

/// Describes a jump, to follow the word "jumped".
pub fn jump(by: TimeDelta) -> String {
    let direction = if by < TimeDelta::zero() {
        "back"
    } else {
        "ahead"
    };
    format!("{direction} {}", span(by))
}

pub(crate) fn span(span: TimeDelta) -> String {
    let minutes = span.num_minutes().abs();
    match minutes {
        0..120 => format!("{minutes} minutes"),
        120..2880 => format!("{} hours", minutes / 60),
        _ => format!("{} days", minutes / 1440),
    }
}

#[cfg(test)]
mod tests;
