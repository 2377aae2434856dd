//! The wall clock may be wrong for a while. Schedules and displayed times follow it at once. Deletion by age and expiry
//! times follow it only after an hour without a jump.
//!
//! A jump is looked for whenever the wall clock is read for something that cannot be undone, so that no important jump is
//! missed.

use chrono::TimeDelta;
use futures_util::{StreamExt, future, stream};
use model::decide::{FollowClock, KeepEnd};
use model::limits::CLOCK_JUMP;
use model::{Timestamp, World};
use tokio::time::Instant;

use crate::handle::Handle;
use crate::limits::{AT_ONCE, CLOCK_LAG, DEADLINE_LOOK};

/// What is wrong with the clock, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockTrouble {
    /// It jumped within the last hour, or schedules showed that it was wrong.
    Jumped {
        /// How far it jumped, if a jump was seen.
        by: Option<TimeDelta>,
        /// Until when nothing is deleted by age.
        until: Timestamp,
        /// How many schedules had been followed far ahead of the clock and continue from now.
        schedules: u64,
    },
    /// Schedules that were followed more than an hour ahead of the clock wait for it.
    Ahead {
        /// How many.
        schedules: u64,
        /// Up to where at most.
        until: Timestamp,
    },
}

impl Handle {
    /// The time of this world, with which expiry times are compared.
    pub fn time(&self, world: &World) -> Timestamp {
        world.time(self.clock().steady())
    }

    /// The time with which expiry times are compared: the wall clock without the jumps that are not trusted yet.
    pub fn steady(&self) -> Timestamp {
        self.state().read(|world| self.time(world))
    }

    /// A moment of that time, by the wall clock.
    pub fn by_the_clock(&self, end: Timestamp) -> Timestamp {
        end + (self.now() - self.steady())
    }

    /// The wall clock, looked at for jumps, and the steady one.
    pub(crate) fn look_at_clock(&self) -> (Timestamp, Timestamp) {
        let clock = self.clock();
        let (wall, steady) = (clock.now(), clock.steady());
        if let Some(by) = self.jumps().look(wall, steady) {
            let jump = jump(by);
            tracing::warn!(
                "the wall clock has jumped {jump}: schedules follow it; for an hour nothing is deleted by age"
            );
        }
        (wall, steady)
    }

    /// The time for computing ages. None while the clock is not trusted.
    pub(crate) fn ages(&self) -> Option<Timestamp> {
        let (wall, steady) = self.look_at_clock();
        let doubted = self.jumps().doubted(steady);
        doubted.is_none().then_some(wall)
    }

    /// Stops trusting the clock, because schedules show that it is or was wrong.
    pub(crate) fn doubt_clock(&self, schedules: u64) {
        let (_, steady) = self.look_at_clock();
        self.jumps().doubt(None, steady, schedules);
    }

    /// What is wrong with the clock, if anything.
    pub fn clock_trouble(&self) -> Option<ClockTrouble> {
        let (wall, steady) = self.look_at_clock();
        if let Some(doubt) = self.jumps().doubted(steady) {
            return Some(ClockTrouble::Jumped {
                by: doubt.by,
                until: wall + (doubt.until - steady),
                schedules: doubt.schedules,
            });
        }
        self.state().read(|world| {
            let mut ahead = world.followed_beyond(wall + CLOCK_JUMP);
            let (until, _) = ahead.next()?;
            Some(ClockTrouble::Ahead {
                schedules: 1 + ahead.count() as u64,
                until,
            })
        })
    }

    /// Moves the expiry times by the clock's jumps, once these are trusted.
    pub(crate) async fn follow_clock(&self) {
        let rests = self.jumps().rests_until;
        let rests = rests.is_some_and(|until| Instant::now() < until);
        if !rests && self.ages().is_some() {
            self.follow_clock_at_once().await;
        }
    }

    /// The same at once, because the next process cannot know of a jump.
    pub(crate) async fn follow_clock_at_once(&self) {
        let by = self.now() - self.steady();
        if by.abs() >= CLOCK_LAG {
            // First, because a stop may come in between.
            self.jumps().unstored = true;
            if let Err(error) = self.state().submit(FollowClock).await {
                tracing::warn!(%error, "the ends of tokens and jobs cannot follow the clock; this is tried again");
                return;
            }
        }
        if !self.jumps().unstored {
            return;
        }
        let holders = self.state().read(World::holders);
        // They are submitted together, so that they share their commits.
        let failed: Vec<_> = stream::iter(holders)
            .map(|holder| async move {
                let keep = KeepEnd {
                    holder: holder.clone(),
                };
                let stored = self.state().submit(keep).await;
                stored.err().map(|error| (holder, error))
            })
            .buffer_unordered(AT_ONCE)
            .filter_map(future::ready)
            .collect()
            .await;
        self.jumps().unstored = !failed.is_empty();
        if let Some((holder, error)) = failed.first() {
            let records = failed.len();
            tracing::warn!(records, first = ?holder, %error, "ends that followed the clock are not stored; this is tried again");
            self.jumps().rests_until = Some(Instant::now() + DEADLINE_LOOK);
        }
    }
}

/// A jump in words, to follow "jumped".
pub fn jump(by: TimeDelta) -> String {
    let direction = if by < TimeDelta::zero() {
        "back"
    } else {
        "ahead"
    };
    format!("{direction} {}", span(by))
}

/// A duration in a suitable unit.
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
