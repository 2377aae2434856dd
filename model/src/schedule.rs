//! Future slots of schedules, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use workflow::ScanName;

use crate::Timestamp;
use crate::revision::ActiveWorkflow;

#[derive(Debug, Clone)]
pub struct Upcoming {
    pub at: Timestamp,
    pub workflow: ActiveWorkflow,
    pub scan: ScanName,
}

/// The next `limit` slots of all schedules. `first` contains the next slot of each schedule. A slot in the past waits
/// for the end of a job, and represents all slots since then; the slot after it is in the future.
pub fn upcoming(first: Vec<Upcoming>, now: Timestamp, limit: usize) -> Vec<Upcoming> {
    let mut next: BinaryHeap<_> = first
        .iter()
        .enumerate()
        .map(|(schedule, slot)| Reverse((slot.at, schedule)))
        .collect();
    let mut slots = Vec::new();
    while slots.len() < limit
        && let Some(Reverse((at, schedule))) = next.pop()
        && let Some(slot) = first.get(schedule)
    {
        let scan = slot.workflow.scan(&slot.scan);
        let later = scan.and_then(|scan| scan.on.next_slot(at.max(now)));
        next.extend(later.map(|later| Reverse((later, schedule))));
        slots.push(Upcoming { at, ..slot.clone() });
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestWorld;

    const TWO: &str = "
scans:
  often: {on: {cron: '0 * * * *'}, steps: [{run: x}]}
  daily: {on: {cron: '30 2 * * *'}, steps: [{run: x}]}
";

    #[test]
    fn slots_of_all_schedules_are_in_order_of_time() {
        let mut test = TestWorld::new();
        let id = test.push("two", TWO);
        let workflow = test.world.workflow(id).unwrap();
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let slot = |scan: &str, time: &str| Upcoming {
            at: at(time),
            workflow: workflow.clone(),
            scan: scan.parse().unwrap(),
        };
        let first = vec![
            slot("daily", "2026-11-21T02:30:00Z"),
            // This slot has waited since midnight.
            slot("often", "2026-11-21T00:00:00Z"),
        ];
        let now = at("2026-11-21T01:10:00Z");
        let found: Vec<String> = upcoming(first, now, 5)
            .iter()
            .map(|slot| format!("{} {}", slot.scan, slot.at.format("%dT%H:%M")))
            .collect();
        assert_eq!(
            found,
            [
                "often 21T00:00",
                "often 21T02:00",
                "daily 21T02:30",
                "often 21T03:00",
                "often 21T04:00"
            ]
        );
        assert!(upcoming(Vec::new(), now, 5).is_empty());
    }
}
