//! A schedule in words, for people who do not read cron.

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

/// Times of day that are still listed one by one.
const LISTED_TIMES: usize = 6;

impl Cron {
    /// The schedule in words, such as `at 03:30, on Monday and Friday`.
    pub fn describe(&self) -> String {
        let mut parts = vec![self.describe_time()];
        let days =
            (self.restricts_days).then(|| format!("on day {} of the month", numbers(self.days)));
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
        let minute = match minutes.as_slice() {
            all if all.len() == 60 => "every minute".to_owned(),
            [0, second, ..] if is_every(&minutes, *second, 60) => format!("every {second} minutes"),
            _ => format!("at minute {}", numbers(self.minutes)),
        };
        match hours.as_slice() {
            all if all.len() == 24 && minutes.len() == 60 => minute,
            all if all.len() == 24 => format!("{minute} of every hour"),
            [0, second, ..] if is_every(&hours, *second, 24) => {
                format!("{minute} of every {second} hours")
            }
            _ => format!("{minute} of hour {}", numbers(self.hours)),
        }
    }
}

/// Whether `values` are 0, `step`, twice `step` and so on through the whole of `span`.
fn is_every(values: &[u32], step: u32, span: u32) -> bool {
    step > 0
        && span.is_multiple_of(step)
        && (0..span).step_by(step as usize).eq(values.iter().copied())
}

fn numbers(bits: Bits) -> String {
    list(bits.numbers().map(|number| number.to_string()).collect())
}

fn named(bits: Bits, first: u32, names: &[&str]) -> String {
    list(
        (first..)
            .zip(names)
            .filter(|(number, _)| bits.has(*number))
            .map(|(_, name)| (*name).to_owned())
            .collect(),
    )
}

fn list(mut items: Vec<String>) -> String {
    match items.pop() {
        Some(last) if items.is_empty() => last,
        Some(last) => format!("{} and {last}", items.join(", ")),
        None => String::new(),
    }
}
