//! The schedules of one scan.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::Cron;

/// What [`Schedules::source`] and [`Schedules::describe`] write between two schedules.
const SEPARATOR: &str = "; ";

/// The schedules of a scan, at least one. A minute that several schedules name is one slot, and names the first of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedules {
    all: Vec<Cron>,
    source: String,
}

impl Schedules {
    /// `None` if the list is empty.
    pub(crate) fn new(all: Vec<Cron>) -> Option<Self> {
        let source = all.iter().map(Cron::source).collect::<Vec<_>>();
        let source = source.join(SEPARATOR);
        (!all.is_empty()).then_some(Self { all, source })
    }

    /// The schedules as written, separated by `; `.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The schedules in words, separated by `; `.
    pub fn describe(&self) -> String {
        let all: Vec<String> = self.all.iter().map(Cron::describe).collect();
        all.join(SEPARATOR)
    }

    /// The first time of any schedule after `after`, exclusive. See [`Cron::next_after`].
    pub fn next_after(&self, after: DateTime<Utc>, timezone: Tz) -> Option<DateTime<Utc>> {
        let times = self.all.iter();
        times
            .filter_map(|cron| cron.next_after(after, timezone))
            .min()
    }

    /// The first schedule that is due at this time.
    pub fn due_at(&self, time: DateTime<Utc>, timezone: Tz) -> Option<&Cron> {
        let before = time.checked_sub_signed(TimeDelta::nanoseconds(1))?;
        let mut all = self.all.iter();
        all.find(|cron| cron.next_after(before, timezone) == Some(time))
    }

    pub fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// Whether both name the same schedules at the same times. The order has a meaning: a slot names the first.
    pub(crate) fn means_the_same(&self, other: &Self) -> bool {
        let mut pairs = self.all.iter().zip(&other.all);
        self.all.len() == other.all.len() && pairs.all(|(one, other)| one.means_the_same(other))
    }
}

impl fmt::Display for Schedules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}
