//! Checks that each slot of a schedule has one record, and that other times have none.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use model::limits::CATCH_UP;
use model::{Cause, Outcome, Reason, ScanHead, ScanKey, Timestamp};
use workflow::{CatchUp, Scan, Triggers};

use super::{News, OfScan, Oracle};

/// A schedule that is in effect.
pub(super) struct Schedule {
    on: Triggers,
    /// Slots up to this time have a record.
    cursor: Timestamp,
    /// How often a resumption returned to each slot.
    resumed: BTreeMap<Timestamp, usize>,
    /// The slots during a suspension, to which its end must return.
    passed: BTreeSet<Timestamp>,
}

impl Schedule {
    /// The schedule after `before`. A changed or new schedule begins now.
    pub(super) fn following(
        before: Option<Self>,
        scan: Option<&Scan>,
        cursor: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<Self> {
        let on = scan.filter(|scan| scan.on.cron.is_some())?.on.clone();
        let text = |on: &Triggers| {
            let cron = on.cron.as_ref().map(|cron| cron.source().to_owned());
            (cron, on.timezone.name().to_owned())
        };
        match before.filter(|before| text(&before.on) == text(&on)) {
            Some(before) => Some(Self { on, ..before }),
            None => Some(Self {
                on,
                cursor: cursor.map_or(now, |cursor| cursor.max(now)),
                resumed: BTreeMap::new(),
                passed: BTreeSet::new(),
            }),
        }
    }

    /// Its slots after `after`, up to `until`.
    fn slots(&self, after: Timestamp, until: Timestamp) -> BTreeSet<Timestamp> {
        std::iter::successors(self.on.next_slot(after), |slot| self.on.next_slot(*slot))
            .take_while(|slot| *slot <= until)
            .collect()
    }
}

impl Oracle {
    pub(super) fn check_slots(
        &mut self,
        key: &ScanKey,
        head: &ScanHead,
        news: &News,
        wall: Timestamp,
    ) {
        let Some(of_scan) = self.scans.get_mut(key) else {
            return;
        };
        let (resumptions, is_suspended) = (of_scan.resumptions, of_scan.is_suspended);
        let name = &key.scan;
        let cursor = head.cron_cursor;
        of_scan.cursor = of_scan.cursor.max(cursor);
        let Some(schedule) = &mut of_scan.schedule else {
            let of_slots = |cause: &Cause| matches!(cause, Cause::Slots { .. });
            let mut records = news.records.iter();
            assert!(
                !records.any(|record| of_slots(&record.cause)),
                "{name} has a record of a slot but no schedule"
            );
            return;
        };
        let until = cursor.map_or(schedule.cursor, |cursor| cursor.max(schedule.cursor));
        let new = schedule.slots(schedule.cursor, until);
        let mut due = new.clone();
        let mut came_back = news.counted;
        for record in &news.records {
            match &record.cause {
                Cause::Slots {
                    first, last, count, ..
                } => {
                    let slots: Vec<_> = due.range(first..=last).copied().collect();
                    assert_eq!(
                        (slots.len() as u64, slots.first(), slots.last()),
                        (*count, Some(first), Some(last)),
                        "{name} had these due slots since {}: {due:?}, not {record:?}",
                        schedule.cursor
                    );
                    due.retain(|slot| slot < first || slot > last);
                }
                Cause::Resumed { slot, .. } => {
                    came_back += 1;
                    assert!(
                        *slot <= schedule.cursor,
                        "{name} returns to {slot} too early"
                    );
                    let times = schedule.resumed.entry(*slot).or_default();
                    *times += 1;
                    assert!(
                        *times <= resumptions,
                        "{name} returns to {slot} {times} times after {resumptions} resumptions"
                    );
                    assert!(
                        !is_suspended,
                        "{name} returns to {slot} while it is suspended"
                    );
                }
                Cause::Success { .. }
                | Cause::Failure { .. }
                | Cause::Activation { .. }
                | Cause::Interactions { .. }
                | Cause::Claim { .. } => {}
                Cause::Clock { .. } => panic!("the clock is never set by a whole day: {record:?}"),
                Cause::Repeats { .. } => {}
            }
            if let Outcome::Made { job } = &record.outcome
                && let Some(known) = self.jobs.get(job)
                && let Reason::SlotDue { slot, .. } = known.record.reason
            {
                let is_of = match &record.cause {
                    Cause::Slots { first, .. } => *first == slot,
                    Cause::Resumed { slot: of, .. } => *of == slot,
                    _ => false,
                };
                assert!(is_of, "{job} belongs to the slot {slot}: {record:?}");
            }
        }
        // The other slots were only counted: one evaluation each, or one for all slots that were missed together. A
        // resumption may also return to slots that have a record.
        let counted = news.counted;
        let again = if of_scan.has_passed { CATCH_UP } else { 0 };
        let least = u64::from(!due.is_empty());
        let most = (due.len() + again) as u64;
        assert!(
            (least..=most).contains(&counted),
            "{name} counted {counted} evaluations for the slots {due:?}"
        );
        if is_suspended {
            schedule.passed.extend(new);
        } else if !news.records.is_empty() || counted > 0 {
            // After the clock was set back, some slots are in the future again.
            let ahead = schedule
                .passed
                .split_off(&(wall + TimeDelta::milliseconds(1)));
            let all = schedule.passed.len() + new.len();
            if schedule.on.catch_up == CatchUp::All && all <= CATCH_UP {
                let wanted = (schedule.passed.len() + due.len()) as u64;
                assert!(
                    came_back >= wanted,
                    "{name} returned only to {came_back} slots of {:?} and {due:?}",
                    schedule.passed
                );
            }
            schedule.passed = ahead;
        }
        schedule.cursor = until;
        of_scan.has_passed = head.passed_slots.is_some();
    }
}

impl OfScan {
    pub(super) fn check_slots_at_rest(&self, key: &ScanKey, wall: Timestamp) {
        if let Some(schedule) = &self.schedule {
            let due = schedule.slots(schedule.cursor, wall);
            assert!(due.is_empty(), "{} has no record of {due:?}", key.scan);
            let passed = &schedule.passed;
            let is_settled = passed.first().is_none_or(|slot| *slot > wall);
            let waits = self.is_suspended || schedule.on.catch_up == CatchUp::None;
            assert!(
                is_settled || waits,
                "{} never returned to {passed:?}",
                key.scan
            );
        }
    }
}
