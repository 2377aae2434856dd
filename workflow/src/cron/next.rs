//! The next time of a schedule. Entries with fixed times follow the wall clock: a time that daylight saving skips runs once at
//! the first valid instant, and a repeated time runs at its first instant. Periodic entries follow elapsed time.

use chrono::{
    DateTime, Datelike, Days, LocalResult, Months, NaiveDate, NaiveDateTime, NaiveTime, Offset,
    TimeDelta, TimeZone, Timelike, Utc,
};
use chrono_tz::Tz;

use super::Cron;
use crate::limits::CRON_DAYS;

/// The longest gap of the wall clock in any zone: a whole day, when a country moved across the date line.
const LONGEST_GAP_MINUTES: i64 = 25 * 60;

/// RFC 3339 writes years with four digits.
const LAST_YEAR: i32 = 9_999;

impl Cron {
    /// The first time after `after`, exclusive. `None` only after the year 9999, in the zone or in UTC: timestamps
    /// cannot express later times.
    pub fn next_after(&self, after: DateTime<Utc>, timezone: Tz) -> Option<DateTime<Utc>> {
        let next = if self.is_periodic {
            self.next_elapsed(after, timezone)
        } else {
            self.next_on_clock(after, timezone)
        };
        next.filter(|next| next.year().max(next.with_timezone(&timezone).year()) <= LAST_YEAR)
    }

    /// Walks the days of the wall clock, and the times of each matching day.
    fn next_on_clock(&self, after: DateTime<Utc>, timezone: Tz) -> Option<DateTime<Utc>> {
        // If a gap contains midnight, a skipped time of yesterday may run today.
        let first = after.with_timezone(&timezone).date_naive().pred_opt()?;
        let end = first.checked_add_days(Days::new(CRON_DAYS.into()))?;
        std::iter::successors(Some(first), |day| self.following_day(*day))
            .take_while(|day| *day < end)
            .filter(|day| self.matches_day(*day))
            .flat_map(|day| self.times(day))
            .filter_map(|time| first_instant(time, timezone))
            .find(|instant| *instant > after)
    }

    /// Walks real minutes and checks the time on the wall clock. Jumps over periods without a match.
    fn next_elapsed(&self, after: DateTime<Utc>, timezone: Tz) -> Option<DateTime<Utc>> {
        let end = after.checked_add_signed(TimeDelta::days(i64::from(CRON_DAYS)))?;
        let mut instant = after
            .with_second(0)?
            .with_nanosecond(0)?
            .checked_add_signed(TimeDelta::minutes(1))?;
        while instant < end {
            let local = instant.with_timezone(&timezone);
            let (hour, minute) = (local.hour(), local.minute());
            if let Some(landing) = self.next_month(local, timezone) {
                instant = landing;
                continue;
            }
            let leap = if !self.matches_day(local.date_naive()) {
                i64::from((23 - hour) * 60 + 60 - minute)
            } else if !self.hours.has(hour) {
                i64::from(60 - minute)
            } else if !self.minutes.has(minute) {
                1
            } else {
                return Some(instant);
            };
            let landing = instant.checked_add_signed(TimeDelta::minutes(leap))?;
            // A jump across a clock change could miss a match after the change.
            let is_uniform = offset(landing, timezone) == offset(instant, timezone);
            instant = if is_uniform {
                landing
            } else {
                instant.checked_add_signed(TimeDelta::minutes(1))?
            };
        }
        None
    }

    /// The next day. Skips the rest of a month that does not match.
    fn following_day(&self, day: NaiveDate) -> Option<NaiveDate> {
        if self.months.has(day.month()) {
            day.succ_opt()
        } else {
            day.with_day(1)?.checked_add_months(Months::new(1))
        }
    }

    /// In a month that does not match: the beginning of the next month, if the clocks do not change until then.
    fn next_month(&self, local: DateTime<Tz>, timezone: Tz) -> Option<DateTime<Utc>> {
        if self.months.has(local.month()) {
            return None;
        }
        let next = self
            .following_day(local.date_naive())?
            .and_time(NaiveTime::MIN);
        let LocalResult::Single(landing) = timezone.from_local_datetime(&next) else {
            return None;
        };
        (landing.offset().fix() == local.offset().fix()).then(|| landing.with_timezone(&Utc))
    }

    /// Day of month and day of week combine by "or" when both are restricted.
    fn matches_day(&self, day: NaiveDate) -> bool {
        let by_day = self.days.has(day.day());
        let by_weekday = self.weekdays.has(day.weekday().num_days_from_sunday());
        self.months.has(day.month())
            && match (self.restricts_days, self.restricts_weekdays) {
                (true, true) => by_day || by_weekday,
                (true, false) => by_day,
                (false, true) => by_weekday,
                (false, false) => true,
            }
    }

    fn times(&self, day: NaiveDate) -> impl Iterator<Item = NaiveDateTime> {
        let minutes = self.minutes;
        self.hours.numbers().flat_map(move |hour| {
            minutes
                .numbers()
                .filter_map(move |minute| day.and_hms_opt(hour, minute, 0))
        })
    }

    /// Whether any date matches. With a restricted day of week, every week has a match.
    pub(super) fn can_fire(&self) -> bool {
        const LONGEST: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        self.restricts_weekdays
            || !self.restricts_days
            || (1..).zip(LONGEST).any(|(month, length)| {
                self.months.has(month) && self.days.numbers().any(|day| day <= length)
            })
    }
}

/// The first instant at which the wall clock shows `time`, or the end of the gap that skips it.
pub(crate) fn first_instant(time: NaiveDateTime, timezone: Tz) -> Option<DateTime<Utc>> {
    (0..=LONGEST_GAP_MINUTES).find_map(|minutes| {
        let shifted = time.checked_add_signed(TimeDelta::minutes(minutes))?;
        match timezone.from_local_datetime(&shifted) {
            LocalResult::Single(instant) | LocalResult::Ambiguous(instant, _) => {
                Some(instant.with_timezone(&Utc))
            }
            LocalResult::None => None,
        }
    })
}

fn offset(instant: DateTime<Utc>, timezone: Tz) -> chrono::FixedOffset {
    timezone
        .offset_from_utc_datetime(&instant.naive_utc())
        .fix()
}
