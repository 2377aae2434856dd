//! Slots that are due during a suspension.

use super::*;

#[test]
fn each_suspended_slot_is_recorded_and_the_newest_runs_after_the_resumption() {
    let mut scene = Scene::new(LOOP);
    scene.suspend(Some("hosts"));
    scene.pass(40);
    assert!(scene.pull() && !scene.pull(), "once for the slot");
    scene.pass(130);
    assert!(scene.pull() && !scene.pull(), "two slots in one check");
    assert!(scene.jobs("hosts").is_empty());
    let [record] = scene.ledger("hosts").try_into().unwrap();
    let slot = at("2026-11-21T11:00:00Z");
    assert_eq!(
        record.cause,
        Cause::Slots {
            first: slot,
            last: slot,
            count: 1,
            schedule: None,
        }
    );
    let Outcome::NotMade { reason } = record.outcome else {
        panic!("{record:?}")
    };
    assert_eq!(reason.code(), "suspended");

    scene.resume(Some("hosts"));
    assert!(scene.pull() && !scene.pull());
    let slot = at("2026-11-21T13:00:00Z");
    assert_eq!(
        made(&scene, "hosts"),
        [Reason::SlotDue {
            slot,
            schedule: None
        }]
    );
    let [job] = scene.jobs("hosts").try_into().unwrap();
    let newest = scene.ledger("hosts").pop().unwrap();
    assert_eq!(
        (newest.cause, newest.outcome),
        (
            Cause::Resumed {
                slot,
                schedule: None
            },
            Outcome::Made { job }
        )
    );
}

#[test]
fn suspended_slots_of_a_list_name_their_schedules() {
    let list = "cron: ['0 * * * *', '*/30 * * * *'], catch_up: all";
    let mut scene = Scene::new(&LOOP.replace("cron: '0 * * * *'", list));
    scene.suspend(Some("hosts"));
    for _ in 0..3 {
        scene.pass(30);
        scene.pull();
    }
    scene.resume(Some("hosts"));
    while scene.pull() {}
    let slots = [
        ("11:00", "0 * * * *"),
        ("11:30", "*/30 * * * *"),
        ("12:00", "0 * * * *"),
    ]
    .map(|(time, schedule)| {
        (
            at(&format!("2026-11-21T{time}:00Z")),
            Some(schedule.to_owned()),
        )
    });
    let reasons = slots
        .clone()
        .map(|(slot, schedule)| Reason::SlotDue { slot, schedule });
    assert_eq!(made(&scene, "hosts"), reasons);
    let causes: Vec<Cause> = scene
        .ledger("hosts")
        .into_iter()
        .map(|it| it.cause)
        .collect();
    let (first, schedule) = slots[0].clone();
    let suspended = Cause::Slots {
        first,
        last: first,
        count: 1,
        schedule,
    };
    assert_eq!(causes.first(), Some(&suspended));
    let resumed = slots.map(|(slot, schedule)| Cause::Resumed { slot, schedule });
    assert_eq!(causes[causes.len() - 3..], resumed);
}

#[test]
fn a_resumption_applies_the_policy_for_missed_slots() {
    for (policy, slots) in [("none", 0), ("latest", 1), ("all", 3)] {
        let mut scene = Scene::new(&catching_up(policy));
        scene.suspend(None);
        for _ in 0..3 {
            scene.pass(60);
            scene.pull();
        }
        scene.pass(20);
        scene.resume(None);
        while scene.pull() {}
        assert_eq!(scene.jobs("hosts").len(), slots, "{policy}");
        let head = scene.test.world.head(&key(scene.workflow, "hosts"));
        assert_eq!(head.unwrap().passed_slots, None);
        // The next slot is handled as usual.
        for job in scene.jobs("hosts") {
            scene.succeed(job);
        }
        scene.pass(10);
        scene.pull();
        let slot = at("2026-11-21T14:00:00Z");
        assert_eq!(
            made(&scene, "hosts"),
            [Reason::SlotDue {
                slot,
                schedule: None
            }]
        );
    }
}

#[test]
fn without_catch_up_even_a_very_recent_slot_makes_no_job() {
    let mut scene = Scene::new(&catching_up("none"));
    scene.suspend(None);
    scene.pass(30);
    scene.pull();
    scene.test.pass(TimeDelta::seconds(14));
    scene.resume(None);
    while scene.pull() {}
    assert!(scene.jobs("hosts").is_empty());
}

#[test]
fn after_the_clock_is_set_back_a_suspended_slot_runs_at_its_time() {
    let mut scene = Scene::new(&catching_up("all"));
    scene.suspend(None);
    for _ in 0..3 {
        scene.pass(60);
        scene.pull();
    }
    scene.test.jump(TimeDelta::minutes(-160));
    scene.resume(None);
    // A check that is too early does not lose the slot.
    let scan = key(scene.workflow, "hosts");
    assert_eq!(scene.test.run(Fire { scan }).unwrap(), None);
    for hour in [11, 12, 13] {
        scene.pass(60);
        assert!(scene.pull() && !scene.pull(), "once at {hour}");
        let [job] = scene.jobs("hosts").try_into().unwrap();
        let slot = at(&format!("2026-11-21T{hour}:00:00Z"));
        let newest = scene.ledger("hosts").pop().unwrap();
        assert_eq!(
            (newest.cause, newest.outcome),
            (
                Cause::Resumed {
                    slot,
                    schedule: None
                },
                Outcome::Made { job }
            )
        );
        scene.succeed(job);
    }
}

#[test]
fn a_slot_due_before_the_catch_up_is_the_newest_and_has_its_own_record() {
    let mut scene = Scene::new(LOOP);
    scene.suspend(None);
    scene.pass(40);
    scene.pull();
    scene.resume(None);
    scene.pass(60);
    while scene.pull() {}
    let slot = at("2026-11-21T12:00:00Z");
    assert_eq!(
        made(&scene, "hosts"),
        [Reason::SlotDue {
            slot,
            schedule: None
        }]
    );
    let newest = scene.ledger("hosts").pop().unwrap();
    assert!(matches!(newest.cause, Cause::Slots { count: 1, .. }));
}
