//! Several schedules of one scan, compared with each of them alone.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::schedules::{self, Time, ZONES};
use super::{Cron, at, cron};
use crate::cron::Schedules;
use crate::random::Random;

#[test]
fn a_list_is_due_when_one_of_its_schedules_is_due_and_names_the_first() {
    let mut random = Random::new(35);
    let (mut slots, mut shared) = (0, 0);
    while slots < 2_000 {
        let zone = ZONES[usize::try_from(random.below(ZONES.len() as u64)).unwrap()];
        let count = 1 + random.below(4);
        let all: Vec<Cron> = (0..count)
            .filter_map(|_| Cron::parse(&schedules::schedule(&mut random, Time::Any)).ok())
            .collect();
        let Some(list) = Schedules::new(all.clone()) else {
            continue;
        };
        let changes = schedules::changes(zone);
        let from = match random.below(2) {
            0 if !changes.is_empty() => {
                changes[usize::try_from(random.below(changes.len() as u64)).unwrap()]
            }
            _ => at("2026-01-01T00:00:00Z"),
        };
        // Each schedule alone.
        let single: Vec<BTreeSet<DateTime<Utc>>> = all
            .iter()
            .map(|cron| {
                let first = cron.next_after(from, zone);
                std::iter::successors(first, |last| cron.next_after(*last, zone))
                    .take(30)
                    .collect()
            })
            .collect();
        let union: BTreeSet<DateTime<Utc>> = single.iter().flatten().copied().collect();
        let mut time = from;
        // The first 30 times of the union are among the first 30 times of each schedule.
        for expected in union.into_iter().take(30) {
            time = list.next_after(time, zone).unwrap();
            assert_eq!(time, expected, "`{list}` in {zone} from {from}");
            let naming: Vec<_> = single.iter().map(|times| times.contains(&time)).collect();
            let first = naming.iter().position(|names| *names).unwrap();
            assert_eq!(
                list.due_at(time, zone),
                all.get(first),
                "`{list}` in {zone} at {time}"
            );
            slots += 1;
            shared += usize::from(naming.iter().filter(|names| **names).count() > 1);
        }
    }
    assert!(
        shared > 50,
        "{shared} of {slots} slots belong to several schedules"
    );
}

#[test]
fn a_time_that_is_no_slot_has_no_schedule() {
    let list = Schedules::new(vec![cron("0 3 * * *"), cron("30 3 * * *")]).unwrap();
    for time in ["2026-01-01T03:01:00Z", "2026-01-01T03:00:30Z"] {
        assert_eq!(list.due_at(at(time), chrono_tz::UTC), None, "{time}");
    }
    assert_eq!(Schedules::new(Vec::new()), None);
}

#[test]
fn the_order_and_the_number_of_schedules_have_a_meaning() {
    let list = |all: &[&str]| Schedules::new(all.iter().map(|it| cron(it)).collect()).unwrap();
    let one = list(&["0 3 * * 0", "0 4 * * *"]);
    assert_eq!(one.source(), "0 3 * * 0; 0 4 * * *");
    assert_eq!(one.describe(), "at 03:00, on Sunday; at 04:00");
    assert!(one.means_the_same(&list(&["0 3 * * 7", "0 4 * * *"])));
    assert!(!one.means_the_same(&list(&["0 4 * * *", "0 3 * * 0"])));
    assert!(!one.means_the_same(&list(&["0 3 * * 0"])));
}
