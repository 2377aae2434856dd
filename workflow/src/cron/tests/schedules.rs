//! Random schedules, zones, and the clock changes of a zone.

use chrono::{DateTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use super::at;
use crate::random::Random;

/// Special zones: changes by half an hour or by two hours, at midnight, four times a year, no changes, and a skipped day.
pub(super) const ZONES: [Tz; 14] = [
    Tz::UTC,
    chrono_tz::Europe::Berlin,
    chrono_tz::Europe::London,
    chrono_tz::America::New_York,
    chrono_tz::America::Sao_Paulo,
    chrono_tz::America::Santiago,
    chrono_tz::America::Havana,
    chrono_tz::Africa::Cairo,
    chrono_tz::Africa::Casablanca,
    chrono_tz::Asia::Beirut,
    chrono_tz::Asia::Kathmandu,
    chrono_tz::Australia::Lord_Howe,
    chrono_tz::Antarctica::Troll,
    chrono_tz::Pacific::Apia,
];

/// The form of a schedule's minute and hour.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    /// Anything.
    Any,
    /// One minute of one hour, or with `*` or `/`: all programs agree on these at clock changes.
    Agreed,
}

/// Five random fields. The days are mostly `*`, so that the schedule is due soon.
pub(super) fn schedule(random: &mut Random, time: Time) -> String {
    let [minute, hour] = loop {
        let fields = [field(random, 0, 59), field(random, 0, 23)];
        let is_single = fields.iter().all(|field| field.parse::<u32>().is_ok());
        let is_periodic = fields.iter().any(|field| field.contains(['*', '/']));
        if time == Time::Any || is_single || is_periodic {
            break fields;
        }
    };
    let mut open = |min, max| match random.below(3) {
        0 => field(random, min, max),
        _ => "*".to_owned(),
    };
    let [day, month, weekday] = [open(1, 31), open(1, 12), open(0, 7)];
    format!("{minute} {hour} {day} {month} {weekday}")
}

fn field(random: &mut Random, min: u64, max: u64) -> String {
    let any = |random: &mut Random| min + random.below(max - min + 1);
    let step = |random: &mut Random| 2 + random.below(max.min(13) - 1);
    let range = |random: &mut Random| {
        let (one, other) = (any(random), any(random));
        (one.min(other), one.max(other))
    };
    match random.below(8) {
        0 | 1 => "*".to_owned(),
        2 => format!("*/{}", step(random)),
        3 => {
            let (first, last) = range(random);
            format!("{first}-{last}")
        }
        4 => {
            let (first, last) = range(random);
            format!("{first}-{last}/{}", step(random))
        }
        5 => format!("{}/{}", any(random), step(random)),
        6 => format!("{},{},{}", any(random), any(random), any(random)),
        _ => any(random).to_string(),
    }
}

/// The minutes from 2000 to 2040 in which the clocks of the zone change.
pub(super) fn changes(zone: Tz) -> Vec<DateTime<Utc>> {
    let offset = |time: DateTime<Utc>| zone.offset_from_utc_datetime(&time.naive_utc()).fix();
    let (day, minute) = (TimeDelta::days(1), TimeDelta::minutes(1));
    let mut changes = Vec::new();
    let mut time = at("2000-01-01T00:00:00Z");
    while time < at("2040-01-01T00:00:00Z") {
        let (mut before, mut after) = (time, time + day);
        if offset(before) != offset(after) {
            while after - before > minute {
                let middle =
                    before + minute * ((after - before) / 2).num_minutes().try_into().unwrap();
                if offset(middle) == offset(before) {
                    before = middle;
                } else {
                    after = middle;
                }
            }
            changes.push(after);
        }
        time += day;
    }
    changes
}
