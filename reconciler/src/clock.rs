//! The wall clock may be wrong for a while. Schedules and displayed times follow it at once. Deletion by age and expiry
//! times follow it only after an hour without a jump.
//!
//! A jump is a change of the difference between the wall clock and the steady clock. It is looked for whenever the wall
//! clock is read for something that cannot be undone, so that no important jump is missed.

use chrono::TimeDelta;
use futures_util::{StreamExt, future, stream};
use model::decide::{FollowClock, KeepEnd};
use model::limits::CLOCK_JUMP;
use model::{Timestamp, World};
use tokio::time::Instant;

use crate::handle::Handle;
use crate::limits::{AT_ONCE, CLOCK_DOUBT, CLOCK_LAG, DEADLINE_LOOK};

/// The known jumps of the wall clock.
#[derive(Debug, Default)]
pub(crate) struct Jumps {
    /// How far the wall clock was ahead of the steady one after the last jump.
    ahead: TimeDelta,
    doubt: Option<Doubt>,
    /// Whether expiry times followed the clock in memory and are not stored yet.
    unstored: bool,
    /// They could not be stored. Do not retry before this time.
    rests_until: Option<Instant>,
}

/// A period in which the wall clock is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Doubt {
    /// How far it jumped, if a jump was seen.
    by: Option<TimeDelta>,
    /// By the steady clock.
    until: Timestamp,
    /// How many schedules had been followed far ahead of the clock and continue from now.
    schedules: u64,
}

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

impl Jumps {
    /// Reads both clocks. Returns a jump since the last call.
    fn look(&mut self, wall: Timestamp, steady: Timestamp) -> Option<TimeDelta> {
        let by = wall - steady - self.ahead;
        if by.abs() <= CLOCK_JUMP {
            return None;
        }
        self.ahead += by;
        self.doubt(Some(by), steady, 0);
        Some(by)
    }

    /// Starts or restarts the period in which the clock is not trusted.
    fn doubt(&mut self, by: Option<TimeDelta>, steady: Timestamp, schedules: u64) {
        let before = self.doubted(steady);
        self.doubt = Some(Doubt {
            by: by.or(before.and_then(|doubt| doubt.by)),
            until: steady + CLOCK_DOUBT,
            schedules: schedules + before.map_or(0, |doubt| doubt.schedules),
        });
    }

    fn doubted(&self, steady: Timestamp) -> Option<Doubt> {
        self.doubt.filter(|doubt| steady < doubt.until)
    }
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
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn only_more_than_an_hour_is_a_jump_and_is_doubted_for_an_hour() {
        let mut jumps = Jumps::default();
        let hour = TimeDelta::hours(1);
        assert_eq!(jumps.look(at(7200), at(7200)), None);
        assert_eq!(jumps.look(at(7200) + hour, at(7200)), None);
        assert_eq!(jumps.doubted(at(7200)), None);
        let year = TimeDelta::days(400);
        assert_eq!(jumps.look(at(7210) + year, at(7210)), Some(year));
        assert_eq!(jumps.look(at(7220) + year, at(7220)), None, "once");
        assert!(jumps.doubted(at(7210) + hour).is_none());
        assert_eq!(jumps.look(at(7272), at(7272)), Some(-year));
        let last = at(7272) + hour - TimeDelta::seconds(1);
        assert!(jumps.doubted(last).is_some() && jumps.doubted(at(7272) + hour).is_none());
    }

    #[test]
    fn schedules_that_show_a_wrong_clock_are_no_jump_that_was_seen() {
        let mut jumps = Jumps::default();
        jumps.doubt(None, at(0), 2);
        let told = |jumps: &Jumps| jumps.doubted(at(60)).map(|it| (it.by, it.schedules));
        assert_eq!(told(&jumps), Some((None, 2)));
        let year = TimeDelta::days(400);
        jumps.look(at(10) + year, at(10));
        assert_eq!(told(&jumps), Some((Some(year), 2)));
        jumps.doubt(None, at(20), 1);
        assert_eq!(told(&jumps), Some((Some(year), 3)));
    }

    #[test]
    fn a_jump_is_told_in_the_unit_that_fits() {
        for (by, told) in [
            (TimeDelta::minutes(61), "ahead 61 minutes"),
            (TimeDelta::hours(-5), "back 5 hours"),
            (TimeDelta::days(400), "ahead 400 days"),
        ] {
            assert_eq!(jump(by), told);
        }
    }
}
