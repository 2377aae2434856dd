//! Five-field cron schedules: minute, hour, day of month, month, day of week. Every [`Cron`] has a next time. It does not read
//! the clock and does not run anything.

mod describe;
mod field;
mod foreign;
mod next;
mod schedules;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

use thiserror::Error;

use field::{Bits, Field};
pub(crate) use next::first_instant;
pub use schedules::Schedules;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    source: String,
    minutes: Bits,
    hours: Bits,
    days: Bits,
    months: Bits,
    weekdays: Bits,
    /// `day of month` is not exactly `*`.
    restricts_days: bool,
    /// `day of week` is not exactly `*`.
    restricts_weekdays: bool,
    /// Minute or hour has a `*` or `/`. Such a schedule follows elapsed time; all others follow the wall clock.
    is_periodic: bool,
}

/// Which days match.
#[derive(PartialEq, Eq)]
enum DayRule {
    Every,
    Day(Bits),
    Weekday(Bits),
    Either(Bits, Bits),
}

/// Why a text is not a schedule, and which part of it is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct CronError {
    /// The offending bytes of the text.
    pub range: Range<usize>,
    #[source]
    pub problem: CronProblem,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CronProblem {
    #[error(
        "a schedule has five fields (minute, hour, day of month, month, day of week), found {found}"
    )]
    FieldCount { found: usize },
    #[error("`{modifier}` is not supported")]
    Modifier { modifier: String },
    #[error("`{text}` is not a valid {field}: only digits, `*`, `,`, `-` and `/` are allowed")]
    Malformed { field: &'static str, text: String },
    #[error(
        "`{text}` is not a valid {field}: write `*`, `5`, `1-5`, or one of them with a step as in `*/2`"
    )]
    Misplaced { field: &'static str, text: String },
    #[error("the list of the {field} has an empty entry")]
    EmptyEntry { field: &'static str },
    #[error("{field} {number} is outside {min}-{max}")]
    OutOfRange {
        field: &'static str,
        number: String,
        min: u8,
        max: u8,
    },
    #[error("the range {first}-{last} of the {field} runs backwards")]
    Backwards {
        field: &'static str,
        first: u8,
        last: u8,
    },
    #[error("step {step} of the {field} is outside 1-{max}")]
    Step {
        field: &'static str,
        step: String,
        max: u8,
    },
    #[error("the schedule never fires: its months have no such day")]
    NeverFires,
}

impl CronProblem {
    /// What to write instead, if known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Modifier { modifier } => {
                let fields = match modifier.as_str() {
                    "@hourly" => "0 * * * *",
                    "@daily" | "@midnight" => "0 0 * * *",
                    "@weekly" => "0 0 * * 0",
                    "@monthly" => "0 0 1 * *",
                    "@yearly" | "@annually" => "0 0 1 1 *",
                    "@reboot" => {
                        return Some("nothing starts with the daemon; write a schedule, or dispatch the scan".to_owned());
                    }
                    _ => return Some("write the five fields out".to_owned()),
                };
                Some(format!("write `{fields}`"))
            }
            Self::FieldCount { found: 6 } => {
                Some("a schedule has no field for seconds or years; remove it".to_owned())
            }
            Self::FieldCount { found: 7 } => {
                Some("a schedule has no fields for seconds and years; remove them".to_owned())
            }
            Self::FieldCount { .. } => Some("every day at 03:30 is `30 3 * * *`".to_owned()),
            Self::Malformed { field, text } => foreign::hint(field, text).map(str::to_owned),
            Self::EmptyEntry { .. } => {
                Some("remove the comma, or write the missing entry".to_owned())
            }
            Self::Misplaced { .. }
            | Self::OutOfRange { .. }
            | Self::Backwards { .. }
            | Self::Step { .. }
            | Self::NeverFires => None,
        }
    }
}

impl Cron {
    /// Reads a schedule.
    ///
    /// # Errors
    /// Every problem of the text, with its place.
    pub fn parse(source: &str) -> Result<Self, Vec<CronError>> {
        let words = words(source);
        let whole = || 0..source.len();
        if let Some((range, word)) = words.first().filter(|(_, word)| word.starts_with('@')) {
            let modifier = word.chars().take(20).collect();
            return Err(vec![CronError {
                range: range.clone(),
                problem: CronProblem::Modifier { modifier },
            }]);
        }
        let [minute, hour, day, month, weekday] = words.as_slice() else {
            return Err(vec![CronError {
                range: whole(),
                problem: CronProblem::FieldCount { found: words.len() },
            }]);
        };
        let mut errors = Vec::new();
        let mut read = |field: &Field, (range, text): &(Range<usize>, &str)| {
            field
                .parse(text, range.start)
                .map_err(|found| errors.extend(found))
                .unwrap_or_default()
        };
        let cron = Self {
            minutes: read(&field::MINUTE, minute),
            hours: read(&field::HOUR, hour),
            days: read(&field::DAY, day),
            months: read(&field::MONTH, month),
            weekdays: read(&field::WEEKDAY, weekday).with_sunday_folded(),
            restricts_days: day.1 != "*",
            restricts_weekdays: weekday.1 != "*",
            is_periodic: [minute.1, hour.1]
                .iter()
                .any(|text| text.contains(['*', '/'])),
            source: words
                .iter()
                .map(|(_, word)| *word)
                .collect::<Vec<_>>()
                .join(" "),
        };
        if errors.is_empty() && !cron.can_fire() {
            errors.push(CronError {
                range: day.0.start..month.0.end,
                problem: CronProblem::NeverFires,
            });
        }
        if errors.is_empty() {
            Ok(cron)
        } else {
            Err(errors)
        }
    }

    /// Whether both schedules are due at the same times.
    pub(crate) fn means_the_same(&self, other: &Self) -> bool {
        let times = |cron: &Self| (cron.minutes, cron.hours, cron.months, cron.is_periodic);
        times(self) == times(other) && self.day_rule() == other.day_rule()
    }

    /// A day field that starts with `*`, beside another day field: cron takes the days that match both. The bytes of the
    /// field in `source`, its text, and the same days in a form that cron reads in the same way.
    pub(crate) fn starred_days<'s>(
        &self,
        source: &'s str,
    ) -> Option<(Range<usize>, &'s str, String)> {
        let [_, _, day, _, weekday] = words(source).try_into().ok()?;
        if !self.restricts_days || !self.restricts_weekdays {
            return None;
        }
        let is_starred = |((_, text), _): &((Range<usize>, &str), &str)| text.starts_with('*');
        let ((range, text), every) = [(day, "1-31"), (weekday, "0-6")]
            .into_iter()
            .find(is_starred)?;
        Some((range, text, text.replacen('*', every, 1)))
    }

    /// How the two day fields combine. A field that includes every day makes all days match if one field is enough, and has no
    /// effect if both must match.
    fn day_rule(&self) -> DayRule {
        let days = self.days != Bits::all(&field::DAY);
        let weekdays = self.weekdays != Bits::all(&field::WEEKDAY);
        match (self.restricts_days, self.restricts_weekdays) {
            (true, true) if days && weekdays => DayRule::Either(self.days, self.weekdays),
            (true, false) if days => DayRule::Day(self.days),
            (false, true) if weekdays => DayRule::Weekday(self.weekdays),
            (true, true) | (true, false) | (false, true) | (false, false) => DayRule::Every,
        }
    }

    /// The five fields, separated by one space.
    pub fn source(&self) -> &str {
        &self.source
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

/// The words of a text with their byte ranges.
fn words(source: &str) -> Vec<(Range<usize>, &str)> {
    let mut words = Vec::new();
    let mut at = 0;
    for piece in source.split([' ', '\t']) {
        if !piece.is_empty() {
            words.push((at..at + piece.len(), piece));
        }
        at += piece.len() + 1;
    }
    words
}
