//! Scans with several schedules.

use std::collections::BTreeMap;

use super::*;

const SEVERAL: &str = "['0 * * * *', '*/20 * * * *', '10 11 * * *']";

fn of(cron: &str) -> String {
    format!("scans: {{hosts: {{on: {{cron: {cron}, catch_up: all}}, steps: [{{run: x}}]}}}}")
}

/// The time and the schedule of each record of one slot.
fn slots(ledger: &[LedgerRecord]) -> Vec<(String, Option<&str>)> {
    let named = ledger.iter().filter_map(|record| match &record.cause {
        Cause::Slots {
            first,
            count: 1,
            schedule,
            ..
        } => Some((first, schedule.as_deref())),
        Cause::Resumed { slot, schedule } => Some((slot, schedule.as_deref())),
        _ => None,
    });
    named
        .map(|(at, schedule)| (at.format("%H:%M").to_string(), schedule))
        .collect()
}

#[test]
fn each_slot_names_its_schedule_and_a_shared_minute_names_the_first() {
    let mut scene = Scene::new(&of(SEVERAL));
    scene.pass(50);
    let job = scene.fire("hosts").unwrap();
    assert_eq!(
        slots(&scene.ledger("hosts")),
        [
            ("10:40".to_owned(), Some("*/20 * * * *")),
            ("11:00".to_owned(), Some("0 * * * *")),
            ("11:10".to_owned(), Some("10 11 * * *")),
            ("11:20".to_owned(), Some("*/20 * * * *")),
        ]
    );
    assert_eq!(scene.jobs("hosts").len(), 4, "one job for a shared minute");
    assert_eq!(
        scene.test.world.job(job).unwrap().reason,
        Reason::SlotDue {
            slot: at("2026-11-21T11:20:00Z"),
            schedule: Some("*/20 * * * *".to_owned()),
        }
    );
    let hosts = key(scene.workflow, "hosts");
    assert_eq!(
        (
            scene.test.world.cursor(&hosts),
            scene.test.world.next_slot_of(&hosts)
        ),
        (
            Some(at("2026-11-21T11:20:00Z")),
            Some(at("2026-11-21T11:40:00Z"))
        )
    );
}

#[test]
fn a_list_of_one_schedule_is_the_schedule() {
    let mut scene = Scene::new(&of("['0 * * * *']"));
    scene.test.push("loop", &of("'0 * * * *'"));
    scene.pass(30);
    scene.fire("hosts").unwrap();
    assert_eq!(slots(&scene.ledger("hosts")), [("11:00".to_owned(), None)]);
}

#[test]
fn a_very_long_schedule_is_cut_in_records() {
    let long = format!("0{} * * * *", ",0".repeat(1_000));
    let mut scene = Scene::new(&of(&format!("['{long}', '30 * * * *']")));
    scene.pass(30);
    scene.fire("hosts").unwrap();
    let ledger = scene.ledger("hosts");
    assert_eq!(slots(&ledger), [("11:00".to_owned(), Some(&long[..400]))]);
}

#[test]
fn a_changed_list_starts_now() {
    let mut scene = Scene::new(&of(SEVERAL));
    scene.pass(15);
    scene
        .test
        .push("loop", &of("['*/20 * * * *', '0 * * * *']"));
    assert_eq!(scene.fire("hosts"), None, "the slot of 10:40 is gone");
    scene.pass(15);
    scene.fire("hosts").unwrap();
    assert_eq!(
        slots(&scene.ledger("hosts")),
        [("11:00".to_owned(), Some("*/20 * * * *"))]
    );
}

/// Random passes of time: the scan with the list has the slots that the scans with one schedule each have.
#[test]
fn a_list_has_the_slots_of_its_schedules() {
    const SCHEDULES: [&str; 5] = [
        "*/7 * * * *",
        "5,35 * * * *",
        "0 */2 * * *",
        "30 9-17 * * 1-5",
        "0 * 1-31/3 * *",
    ];
    let mut random = 35_u64;
    let mut below = |bound: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    for _ in 0..20 {
        let chosen: Vec<&str> = (0..2 + below(3))
            .map(|_| SCHEDULES[below(5) as usize])
            .collect();
        let mut list: Vec<&str> = Vec::new();
        for schedule in chosen {
            if !list.contains(&schedule) {
                list.push(schedule);
            }
        }
        let scan = |name: &str, cron: &str| {
            format!("  {name}: {{on: {{cron: {cron}, catch_up: all}}, steps: [{{run: x}}]}}\n")
        };
        let mut text = format!(
            "scans:\n{}",
            scan("list", &format!("['{}']", list.join("', '")))
        );
        for (at, schedule) in list.iter().enumerate() {
            text += &scan(&format!("s{at}"), &format!("'{schedule}'"));
        }
        let mut scene = Scene::new(&text);
        let names: Vec<String> = (0..list.len()).map(|at| format!("s{at}")).collect();
        for _ in 0..40 {
            scene.pass(1 + i64::try_from(below(25)).unwrap());
            for name in names.iter().map(String::as_str).chain(["list"]) {
                scene.fire(name);
                // An unfinished job prevents the next one.
                for job in scene.jobs(name) {
                    let actor = Actor::Daemon;
                    scene.test.run(Cancel { job, actor }).unwrap();
                }
            }
        }
        let mut union = BTreeMap::new();
        for (name, schedule) in names.iter().zip(&list) {
            for record in scene.ledger(name) {
                if let Cause::Slots { first, .. } = record.cause {
                    union.entry(first).or_insert((*schedule).to_owned());
                }
            }
        }
        let ledger = scene.ledger("list");
        let found: BTreeMap<_, _> = ledger
            .iter()
            .filter_map(|record| match &record.cause {
                Cause::Slots {
                    first, schedule, ..
                } => Some((
                    *first,
                    schedule.clone().unwrap_or_else(|| list[0].to_owned()),
                )),
                _ => None,
            })
            .collect();
        assert_eq!(found, union, "{list:?}");
    }
}
