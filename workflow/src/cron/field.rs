//! One field of a schedule as a set of numbers.

use super::{CronError, CronProblem};

/// A set of numbers from 0 to 63.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Bits(u64);

impl Bits {
    pub(super) const fn has(self, number: u32) -> bool {
        number < 64 && self.0 >> number & 1 == 1
    }

    pub(super) fn numbers(self) -> impl Iterator<Item = u32> {
        (0..64).filter(move |number| self.has(*number))
    }

    /// 7 is Sunday, as is 0.
    pub(super) const fn with_sunday_folded(self) -> Self {
        Self((self.0 | self.0 >> 7 & 1) & 0b111_1111)
    }

    /// The numbers of `*`.
    pub(super) fn all(field: &Field) -> Self {
        (field.min..=field.star_max).fold(Self::default(), Self::with)
    }

    const fn with(self, number: u8) -> Self {
        Self(self.0 | 1 << number)
    }
}

/// The bounds of a field.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) min: u8,
    pub(super) max: u8,
    /// The last number of `*`. Day of week may be written as 7, but `*` must not count Sunday twice.
    star_max: u8,
}

pub(super) const MINUTE: Field = Field {
    name: "minute",
    min: 0,
    max: 59,
    star_max: 59,
};
pub(super) const HOUR: Field = Field {
    name: "hour",
    min: 0,
    max: 23,
    star_max: 23,
};
pub(super) const DAY: Field = Field {
    name: "day of month",
    min: 1,
    max: 31,
    star_max: 31,
};
pub(super) const MONTH: Field = Field {
    name: "month",
    min: 1,
    max: 12,
    star_max: 12,
};
pub(super) const WEEKDAY: Field = Field {
    name: "day of week",
    min: 0,
    max: 7,
    star_max: 6,
};

impl Field {
    /// Reads the field, whose text starts at byte `at` of the schedule.
    pub(super) fn parse(&self, text: &str, at: usize) -> Result<Bits, Vec<CronError>> {
        let mut bits = Bits::default();
        let mut errors = Vec::new();
        let mut start = at;
        for part in text.split(',') {
            match self.part(part) {
                Ok((first, last, step)) => {
                    bits = (first..=last)
                        .step_by(usize::from(step))
                        .fold(bits, Bits::with);
                }
                Err(problem) => {
                    // An empty entry has no bytes to show, so the problem is shown at its comma; for the last entry, at the comma
                    // before it.
                    let range = if part.is_empty() {
                        let comma = start.min(at + text.len().saturating_sub(1));
                        comma..comma + 1
                    } else {
                        start..start + part.len()
                    };
                    let error = CronError { range, problem };
                    // A last comma belongs to two empty entries. Report it only once.
                    if errors.last() != Some(&error) {
                        errors.push(error);
                    }
                }
            }
            start += part.len() + 1;
        }
        if errors.is_empty() {
            Ok(bits)
        } else {
            Err(errors)
        }
    }

    /// `*`, `a` or `a-b`, each optionally with `/n`. `a/n` runs from `a` to the end of the field.
    fn part(&self, part: &str) -> Result<(u8, u8, u8), CronProblem> {
        if part.is_empty() {
            return Err(CronProblem::EmptyEntry { field: self.name });
        }
        let malformed = || {
            let is_known = |c: char| c.is_ascii_digit() || "*-/".contains(c);
            let (field, text) = (self.name, shown(part));
            if part.chars().all(is_known) {
                CronProblem::Misplaced { field, text }
            } else {
                CronProblem::Malformed { field, text }
            }
        };
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.min, self.star_max),
            Some((first, last)) => {
                let (first, last) = (
                    self.number(first, malformed)?,
                    self.number(last, malformed)?,
                );
                if first > last {
                    return Err(CronProblem::Backwards {
                        field: self.name,
                        first,
                        last,
                    });
                }
                (first, last)
            }
            None => {
                let first = self.number(range, malformed)?;
                (first, if step.is_some() { self.max } else { first })
            }
        };
        let step = match step {
            Some(step) if is_number(step) => step
                .parse()
                .ok()
                .filter(|step| (1..=self.max).contains(step))
                .ok_or_else(|| CronProblem::Step {
                    field: self.name,
                    step: shown(step),
                    max: self.max,
                })?,
            Some(_) => return Err(malformed()),
            None => 1,
        };
        Ok((first, last, step))
    }

    fn number(&self, text: &str, malformed: impl Fn() -> CronProblem) -> Result<u8, CronProblem> {
        if !is_number(text) {
            return Err(malformed());
        }
        text.parse()
            .ok()
            .filter(|number| (self.min..=self.max).contains(number))
            .ok_or_else(|| CronProblem::OutOfRange {
                field: self.name,
                number: shown(text),
                min: self.min,
                max: self.max,
            })
    }
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn shown(text: &str) -> String {
    text.chars().take(20).collect()
}
