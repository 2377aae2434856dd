//! Records a jump of the wall clock to which the stored expiry times are not adjusted yet. The next process compares its
//! clock with the record, and moves the expiry times that it loads.
//!
//! A process computes expiry times with a numbered clock. It takes a new number when it starts and when it adjusts to a
//! jump. Every stored record that expires contains the number of the clock that set its expiry times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::limits::CLOCK_LAG;

/// Readings of the wall clock and of the clocks of stored expiry times, all taken at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    pub wall: Timestamp,
    /// By the number of the clock.
    pub readings: BTreeMap<u64, Timestamp>,
}

impl Clocks {
    /// The process starts at an unknown time after the record, and its wall clock shows `now`. Returns the reading from
    /// which this clock went on: the latest one before `now` or less than [`CLOCK_LAG`] after it, else the earliest.
    pub fn continued_by(&self, now: Timestamp) -> Timestamp {
        let readings = || self.readings.values().copied();
        let passed = readings()
            .chain([self.wall])
            .filter(|reading| *reading - now < CLOCK_LAG);
        let earliest = readings().fold(self.wall, Timestamp::min);
        passed.max().unwrap_or(earliest)
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_timestamp(1_790_000_000, 0).unwrap() + TimeDelta::minutes(minutes)
    }

    /// Checks which reading a clock at `now` continues after a jump from 0 to `wall`.
    #[track_caller]
    fn check(wall: i64, now: i64, continued: i64) {
        let clocks = Clocks {
            wall: at(wall),
            readings: BTreeMap::from([(7, at(0))]),
        };
        assert_eq!(clocks.continued_by(at(now)), at(continued), "{wall} {now}");
    }

    #[test]
    fn a_start_continues_the_latest_reading_that_is_not_ahead() {
        // The clock was set ahead by five hours and not corrected.
        check(300, 300, 300);
        check(300, 330, 300);
        check(300, 100_000, 300);
        // The clock is wrong again, or the jump was undone.
        check(300, 0, 0);
        check(300, 299, 0);
        // The clock was set back. Before the last check, it was corrected.
        check(-300, -300, -300);
        check(-300, -1, -300);
        check(-300, 1, 0);
        // A machine without a battery starts with a clock before both readings.
        check(300, -20, 0);
        check(-300, -320, -300);
    }

    #[test]
    fn a_correction_of_less_than_a_minute_changes_nothing() {
        let clocks = Clocks {
            wall: at(300),
            readings: BTreeMap::from([(7, at(0))]),
        };
        let before = at(300) - TimeDelta::seconds(59);
        assert_eq!(clocks.continued_by(before), at(300));
    }

    #[test]
    fn the_reading_of_each_stored_clock_can_be_continued() {
        let clocks = Clocks {
            wall: at(600),
            readings: BTreeMap::from([(7, at(0)), (8, at(300))]),
        };
        let continued = |minutes| clocks.continued_by(at(minutes));
        assert_eq!([10, 310, 610].map(continued), [0, 300, 600].map(at));
    }
}
