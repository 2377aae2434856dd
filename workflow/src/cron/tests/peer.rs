//! A comparison with a library, as far as both have the same rules. The library treats lists and ranges as following elapsed
//! time, and cannot cross a gap of more than two hours.

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use cron::parser::{CronParser, Seconds, Year};

use super::schedules::{self, Time, ZONES};
use super::{Cron, at};
use crate::random::Random;

/// The number of comparisons.
const QUESTIONS: usize = 10_000;

/// The same schedule in the library's syntax, which has no `a/n`.
fn translated(source: &str) -> String {
    let maxima = ["59", "23", "31", "12", "7"];
    let fields: Vec<String> = source
        .split(' ')
        .zip(maxima)
        .map(|(field, max)| match field.split_once('/') {
            Some((first, step)) if first.parse::<u32>().is_ok() => format!("{first}-{max}/{step}"),
            _ => field.to_owned(),
        })
        .collect();
    fields.join(" ")
}

/// A random time, often near a clock change.
fn moment(random: &mut Random, changes: &[DateTime<Utc>]) -> DateTime<Utc> {
    let seconds = |random: &mut Random, days: u64| {
        TimeDelta::seconds(i64::try_from(random.below(days * 24 * 60 * 60)).unwrap())
    };
    let count = changes.len() as u64;
    if count > 0 && random.below(4) > 0 {
        let change = changes[usize::try_from(random.below(count)).unwrap()];
        change - TimeDelta::days(1) + seconds(random, 2)
    } else {
        at("2000-01-01T00:00:00Z") + seconds(random, 40 * 365)
    }
}

#[test]
fn a_library_agrees_on_ten_thousand_questions() {
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build();
    let zones: Vec<(Tz, Vec<DateTime<Utc>>)> = ZONES
        .into_iter()
        // The gap of this zone is a whole day.
        .filter(|zone| *zone != chrono_tz::Pacific::Apia)
        .map(|zone| (zone, schedules::changes(zone)))
        .collect();
    let mut random = Random::new(97);
    let mut asked = 0;
    while asked < QUESTIONS {
        let (zone, changes) = &zones[usize::try_from(random.below(zones.len() as u64)).unwrap()];
        let rules = if *zone == Tz::UTC {
            Time::Any
        } else {
            Time::Agreed
        };
        let source = schedules::schedule(&mut random, rules);
        let Ok(ours) = Cron::parse(&source) else {
            continue;
        };
        let theirs = parser.parse(&translated(&source)).unwrap();
        let after = moment(&mut random, changes);
        let expected = theirs
            .find_next_occurrence(&after.with_timezone(zone), false)
            .unwrap();
        assert_eq!(
            ours.next_after(after, *zone),
            Some(expected.with_timezone(&Utc)),
            "`{source}` in {zone} after {after}"
        );
        asked += 1;
    }
}
