//! Describes a schedule in words, for people who do not read cron.

use super::{Bits, Cron};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// The most times of day that are listed one by one.
const LISTED_TIMES: usize = 6;

/// The most numbers of a range that are still listed one by one.
const LISTED_NUMBERS: usize = 2;

/// The pattern of the numbers of a field.
enum Shape {
    /// All of the field.
    All,
    /// One number.
    One(u32),
    /// A range, from the first to the last.
    Range(u32, u32),
    /// Every nth of the whole field.
    Each(u32),
    /// Every nth, from the first to the last.
    EachFrom(u32, u32, u32),
    /// No pattern.
    List(Vec<u32>),
}

impl Shape {
    /// The shape of the numbers of a field that goes from `min` to `max`.
    fn of(bits: Bits, min: u32, max: u32) -> Self {
        let numbers: Vec<u32> = bits.numbers().collect();
        let (Some(first), Some(last)) = (numbers.first().copied(), numbers.last().copied()) else {
            return Self::List(numbers);
        };
        let second = numbers.get(1).copied().unwrap_or(first);
        let step = second - first;
        let is_even = step > 0
            && (first..=last)
                .step_by(usize::try_from(step).unwrap_or(usize::MAX))
                .eq(numbers.iter().copied());
        match (step, is_even) {
            (0, _) => Self::One(first),
            (1, true) if (first, last) == (min, max) => Self::All,
            // Two numbers are a pattern only if the pattern continues across the end of the field.
            (_, true)
                if numbers.len() <= LISTED_NUMBERS && !(max + 1 - min).is_multiple_of(step) =>
            {
                Self::List(numbers)
            }
            (_, true) if first == min && last + step > max => Self::Each(step),
            (_, true) if numbers.len() <= LISTED_NUMBERS => Self::List(numbers),
            (1, true) => Self::Range(first, last),
            (_, true) => Self::EachFrom(step, first, last),
            (_, false) => Self::List(numbers),
        }
    }
}

impl Cron {
    /// The schedule in words, such as `at 03:30, on Monday and Friday` or `at minute 5 past every 2nd hour`.
    pub fn describe(&self) -> String {
        let mut parts = vec![self.describe_time()];
        let days = self.restricts_days.then(|| describe_days(self.days));
        let weekdays = self
            .restricts_weekdays
            .then(|| format!("on {}", named(self.weekdays, 0, &WEEKDAYS)));
        match (days, weekdays) {
            (Some(days), Some(weekdays)) => parts.push(format!("{days} or {weekdays}")),
            (Some(one), None) | (None, Some(one)) => parts.push(one),
            (None, None) => {}
        }
        if self.months.numbers().count() < MONTHS.len() {
            parts.push(format!("in {}", named(self.months, 1, &MONTHS)));
        }
        parts.join(", ")
    }

    fn describe_time(&self) -> String {
        let minutes: Vec<u32> = self.minutes.numbers().collect();
        let hours: Vec<u32> = self.hours.numbers().collect();
        if minutes.len() * hours.len() <= LISTED_TIMES {
            let times = hours.iter().flat_map(|hour| {
                minutes
                    .iter()
                    .map(move |minute| format!("{hour:02}:{minute:02}"))
            });
            return format!("at {}", list(times.collect()));
        }
        let minute_shape = Shape::of(self.minutes, 0, 59);
        let hour_shape = Shape::of(self.hours, 0, 23);
        let minute = match &minute_shape {
            Shape::All => "every minute".to_owned(),
            Shape::One(minute) => format!("at minute {minute}"),
            Shape::Range(first, last) => format!("every minute from {first} to {last}"),
            // Minutes start again each hour.
            Shape::Each(step) if 60 % step == 0 => format!("every {step} minutes"),
            Shape::Each(step) => format!("every {} minute", ordinal(*step)),
            Shape::EachFrom(step, first, last) => {
                format!("every {} minute from {first} to {last}", ordinal(*step))
            }
            Shape::List(minutes) => format!("at minutes {}", numbers(minutes)),
        };
        let is_unbroken = match &minute_shape {
            Shape::All => true,
            Shape::Each(step) => 60 % step == 0,
            Shape::One(_) | Shape::Range(..) | Shape::EachFrom(..) | Shape::List(_) => false,
        };
        let hour = match &hour_shape {
            Shape::All if is_unbroken => return minute,
            Shape::All => "every hour".to_owned(),
            Shape::One(hour) => format!("hour {hour}"),
            Shape::Range(first, last) => format!("every hour from {first} to {last}"),
            Shape::Each(step) => format!("every {} hour", ordinal(*step)),
            Shape::EachFrom(step, first, last) => {
                format!("every {} hour from {first} to {last}", ordinal(*step))
            }
            Shape::List(hours) => format!("hours {}", numbers(hours)),
        };
        let joint = if minute.starts_with("at") {
            "past"
        } else {
            "of"
        };
        format!("{minute} {joint} {hour}")
    }
}

fn describe_days(days: Bits) -> String {
    match Shape::of(days, 1, 31) {
        Shape::All => "on every day of the month".to_owned(),
        Shape::One(day) => format!("on day {day} of the month"),
        Shape::Range(first, last) => format!("on days {first} to {last} of the month"),
        Shape::Each(step) => format!("on every {} day of the month", ordinal(step)),
        Shape::EachFrom(step, first, last) => format!(
            "on every {} day from {first} to {last} of the month",
            ordinal(step)
        ),
        Shape::List(days) => format!("on days {} of the month", numbers(&days)),
    }
}

/// The names of the numbers. The first name is for the number `min`.
fn named(bits: Bits, min: u32, names: &[&str]) -> String {
    let numbered: Vec<(u32, &str)> = (min..).zip(names.iter().copied()).collect();
    let name = |number: u32| {
        let found = numbered.iter().find(|(known, _)| *known == number);
        found.map_or("", |(_, name)| name)
    };
    let max = numbered.last().map_or(min, |(number, _)| *number);
    match Shape::of(bits, min, max) {
        Shape::Range(first, last) => format!("{} to {}", name(first), name(last)),
        Shape::All | Shape::One(_) | Shape::Each(_) | Shape::EachFrom(..) | Shape::List(_) => list(
            bits.numbers()
                .map(|number| name(number).to_owned())
                .collect(),
        ),
    }
}

fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

fn numbers(numbers: &[u32]) -> String {
    list(numbers.iter().map(u32::to_string).collect())
}

fn list(mut items: Vec<String>) -> String {
    match items.pop() {
        Some(last) if items.is_empty() => last,
        Some(last) => format!("{} and {last}", items.join(", ")),
        None => String::new(),
    }
}
