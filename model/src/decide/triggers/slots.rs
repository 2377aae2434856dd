//! The slots of a schedule between two times.

use chrono::TimeDelta;
use workflow::Triggers;

use crate::Timestamp;
use crate::limits::{CATCH_UP, SLOTS_COUNTED};

/// The slots for which `on.catch_up` may create jobs, and the slot before them: the last missed slot.
const KEPT: usize = CATCH_UP + 1;

/// The slots between two times, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slots {
    pub(super) first: Timestamp,
    /// The newest slots, in order, at most [`KEPT`].
    pub(super) newest: Vec<Timestamp>,
    /// Number of slots, counted up to [`SLOTS_COUNTED`].
    pub(super) count: u64,
}

/// The slots of a schedule after `after` and not after `until`.
pub(super) fn slots(on: &Triggers, after: Timestamp, until: Timestamp) -> Option<Slots> {
    let first = on.next_slot(after).filter(|first| *first <= until)?;
    let mut newest = vec![first];
    let mut count = 1;
    let mut last = first;
    while let Some(next) = on.next_slot(last).filter(|next| *next <= until) {
        if count == SLOTS_COUNTED {
            newest = newest_of(on, last, until);
            break;
        }
        newest.push(next);
        if newest.len() > KEPT {
            newest.remove(0);
        }
        count += 1;
        last = next;
    }
    Some(Slots {
        first,
        newest,
        count,
    })
}

/// The newest of very many slots. The search window before `until` doubles until it contains enough slots.
fn newest_of(on: &Triggers, after: Timestamp, until: Timestamp) -> Vec<Timestamp> {
    let mut window = TimeDelta::minutes(2);
    loop {
        let from = after.max(until - window);
        let found: Vec<Timestamp> =
            std::iter::successors(on.next_slot(from), |slot| on.next_slot(*slot))
                .take_while(|slot| *slot <= until)
                .collect();
        if found.len() >= KEPT || from == after {
            return found[found.len().saturating_sub(KEPT)..].to_vec();
        }
        window = window * 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::definition;

    fn triggers(cron: &str) -> Triggers {
        let text = format!("scans: {{a: {{on: {{cron: '{cron}'}}, steps: [{{run: x}}]}}}}");
        definition(&text).scan("a").unwrap().on.clone()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn slots_are_after_the_first_time_and_up_to_the_second_time() {
        let on = triggers("*/10 * * * *");
        let found = |after, until| slots(&on, at(after), at(until));
        assert_eq!(found("2026-11-21T10:00:00Z", "2026-11-21T10:09:59Z"), None);
        assert_eq!(
            found("2026-11-21T10:00:00Z", "2026-11-21T10:20:00Z"),
            Some(Slots {
                first: at("2026-11-21T10:10:00Z"),
                newest: vec![at("2026-11-21T10:10:00Z"), at("2026-11-21T10:20:00Z")],
                count: 2,
            })
        );
    }

    #[test]
    fn the_newest_of_very_many_slots_are_found_without_visiting_all() {
        let on = triggers("* * * * *");
        let found = slots(&on, at("2016-01-01T00:00:00Z"), at("2026-11-21T10:00:30Z")).unwrap();
        assert_eq!(found.first, at("2016-01-01T00:01:00Z"));
        assert_eq!(found.count, SLOTS_COUNTED);
        assert_eq!(found.newest.len(), KEPT);
        assert_eq!(found.newest.last(), Some(&at("2026-11-21T10:00:00Z")));
    }
}
