//! The known jumps of the wall clock. A jump is a change of the difference between the wall clock and the steady clock.

use chrono::TimeDelta;
use model::limits::CLOCK_JUMP;
use model::{Clocks, Timestamp};
use tokio::time::Instant;

use crate::limits::CLOCK_DOUBT;

#[derive(Debug, Default)]
pub(crate) struct Jumps {
    /// The difference between the wall clock and the steady clock after the last jump.
    ahead: TimeDelta,
    doubt: Option<Doubt>,
    /// A jump, or expiry times that followed a jump, could not be stored. No retry before this time.
    pub(crate) rests_until: Option<Instant>,
}

/// A period in which the wall clock is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// The size of the jump, if a jump was detected.
    pub(crate) by: Option<TimeDelta>,
    /// By the steady clock.
    pub(crate) until: Timestamp,
    /// The number of schedules that had run far ahead of the clock and now continue from the present.
    pub(crate) schedules: u64,
}

impl Jumps {
    /// Distrusts the clock if an earlier process recorded a jump. That process ended within an hour of the jump, so
    /// expiry times did not follow it.
    pub(crate) fn noted(clocks: Option<&Clocks>, steady: Timestamp) -> Self {
        let mut jumps = Self::default();
        if let Some(clocks) = clocks {
            let reading = clocks.readings.values().next_back();
            let by = reading.map(|reading| clocks.wall - *reading);
            jumps.doubt(by.filter(|by| by.abs() > CLOCK_JUMP), steady, 0);
        }
        jumps
    }

    /// Compares both clocks. Returns a jump since the last call.
    pub(crate) fn check(&mut self, wall: Timestamp, steady: Timestamp) -> Option<TimeDelta> {
        let by = wall - steady - self.ahead;
        if by.abs() <= CLOCK_JUMP {
            return None;
        }
        self.ahead += by;
        self.doubt(Some(by), steady, 0);
        Some(by)
    }

    /// Starts or restarts the period in which the clock is not trusted.
    pub(crate) fn doubt(&mut self, by: Option<TimeDelta>, steady: Timestamp, schedules: u64) {
        let before = self.doubted(steady);
        self.doubt = Some(Doubt {
            by: by.or(before.and_then(|doubt| doubt.by)),
            until: steady + CLOCK_DOUBT,
            schedules: schedules + before.map_or(0, |doubt| doubt.schedules),
        });
    }

    pub(crate) fn doubted(&self, steady: Timestamp) -> Option<Doubt> {
        self.doubt.filter(|doubt| steady < doubt.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn a_jump_is_longer_than_an_hour_and_is_distrusted_for_an_hour() {
        let mut jumps = Jumps::default();
        let hour = TimeDelta::hours(1);
        assert_eq!(jumps.check(at(7200), at(7200)), None);
        assert_eq!(jumps.check(at(7200) + hour, at(7200)), None);
        assert_eq!(jumps.doubted(at(7200)), None);
        let year = TimeDelta::days(400);
        assert_eq!(jumps.check(at(7210) + year, at(7210)), Some(year));
        assert_eq!(jumps.check(at(7220) + year, at(7220)), None, "once");
        assert!(jumps.doubted(at(7210) + hour).is_none());
        assert_eq!(jumps.check(at(7272), at(7272)), Some(-year));
        let last = at(7272) + hour - TimeDelta::seconds(1);
        assert!(jumps.doubted(last).is_some() && jumps.doubted(at(7272) + hour).is_none());
    }

    #[test]
    fn schedules_that_show_a_wrong_clock_give_no_size_of_a_jump() {
        let mut jumps = Jumps::default();
        jumps.doubt(None, at(0), 2);
        let reported = |jumps: &Jumps| jumps.doubted(at(60)).map(|it| (it.by, it.schedules));
        assert_eq!(reported(&jumps), Some((None, 2)));
        let year = TimeDelta::days(400);
        jumps.check(at(10) + year, at(10));
        assert_eq!(reported(&jumps), Some((Some(year), 2)));
        jumps.doubt(None, at(20), 1);
        assert_eq!(reported(&jumps), Some((Some(year), 3)));
    }

    #[test]
    fn a_jump_recorded_by_an_earlier_process_is_distrusted_for_an_hour() {
        let five = TimeDelta::hours(5);
        let clocks = |by| Clocks {
            wall: at(0) + by,
            readings: [(1, at(0) - five), (2, at(0))].into(),
        };
        let doubt = |clocks: Option<&Clocks>| Jumps::noted(clocks, at(100)).doubted(at(200));
        assert_eq!(doubt(None), None);
        for (by, reported) in [(five, Some(five)), (TimeDelta::zero(), None)] {
            let doubt = doubt(Some(&clocks(by))).unwrap();
            assert_eq!((doubt.by, doubt.until), (reported, at(100 + 3_600)));
        }
    }
}
