//! Slots of schedules.

use super::*;

#[test]
fn a_slot_makes_one_job_and_moves_the_cursor() {
    let mut scene = Scene::new(LOOP);
    let hosts = key(scene.workflow, "hosts");
    let next = |scene: &Scene| scene.test.world.next_slot_of(&hosts);
    assert_eq!(next(&scene), Some(at("2026-11-21T11:00:00Z")));
    assert!(scene.test.world.due(scene.test.now).is_empty());
    assert_eq!(scene.fire("hosts"), None);
    scene.pass(30);
    assert_eq!(
        scene.test.world.due(scene.test.now),
        std::slice::from_ref(&hosts)
    );
    let job = scene.fire("hosts").unwrap();
    let slot = at("2026-11-21T11:00:00Z");
    assert_eq!(
        scene.test.world.job(job).unwrap().reason,
        Reason::SlotDue {
            slot,
            schedule: None
        }
    );
    assert_eq!(scene.fire("hosts"), None, "a slot is checked once");
    assert_eq!(next(&scene), Some(at("2026-11-21T12:00:00Z")));
    assert!(scene.test.world.due(scene.test.now).is_empty());
}

#[test]
fn a_slot_during_an_unfinished_job_makes_no_job_and_repeats_are_counted() {
    let mut scene = Scene::new(LOOP);
    let running = scene.dispatch("hosts");
    for _ in 0..4 {
        scene.pass(60);
        assert_eq!(scene.fire("hosts"), None);
    }
    let reason = Reason::Overlap { job: running };
    let outcome = Outcome::NotMade { reason };
    assert_eq!(scene.ledger("hosts").len(), 1);
    assert_eq!(scene.ledger("hosts")[0].outcome, outcome);
    let cancel = Cancel {
        job: running,
        actor: Actor::Daemon,
    };
    scene.test.run(cancel).unwrap();
    scene.pass(60);
    let made = scene.fire("hosts").unwrap();
    let ledger = scene.ledger("hosts");
    assert_eq!(ledger.len(), 3);
    let Cause::Repeats { count, .. } = ledger[1].cause else {
        panic!("{:?}", ledger[1]);
    };
    assert_eq!((count, &ledger[1].outcome), (3, &outcome));
    assert_eq!(ledger[2].outcome, Outcome::Made { job: made });
}

#[test]
fn missed_slots_are_handled_as_the_scan_declares() {
    for (slots, catch_up, made, missed) in [
        (3, "latest", 1, 2),
        (3, "none", 0, 3),
        (3, "all", 3, 0),
        (1000, "latest", 1, 999),
        (1000, "none", 0, 1000),
        (1000, "all", 10, 990),
    ] {
        let text = LOOP.replace(
            "cron: '0 * * * *'",
            &format!("cron: '0 * * * *', catch_up: {catch_up}"),
        );
        let mut scene = Scene::new(&text);
        scene.pass(30 + (slots - 1) * 60 + 10);
        scene.fire("hosts");
        assert_eq!(scene.jobs("hosts").len(), made, "{catch_up}");
        let ledger = scene.ledger("hosts");
        let counted: u64 = ledger
            .iter()
            .filter(|record| {
                record.outcome
                    == Outcome::NotMade {
                        reason: Reason::SlotsMissed,
                    }
            })
            .map(|record| match record.cause {
                Cause::Slots { count, .. } => count,
                _ => 0,
            })
            .sum();
        assert_eq!(counted, missed, "{catch_up}");
        assert!(scene.test.world.due(scene.test.now).is_empty());
    }
}

/// There are more slots than the catch-up allows. The record of the other slots has the first and the last of them.
#[test]
fn the_record_of_missed_slots_has_the_first_and_the_last_slot() {
    let cron = "cron: '0 * * * *', catch_up: all";
    let mut scene = Scene::new(&LOOP.replace("cron: '0 * * * *'", cron));
    scene.pass(30 + 14 * 60 + 10);
    scene.fire("hosts");
    let ledger = scene.ledger("hosts");
    let Cause::Slots {
        first, last, count, ..
    } = ledger[0].cause
    else {
        panic!("{:?}", ledger[0]);
    };
    let Cause::Slots { first: next, .. } = ledger[1].cause else {
        panic!("{:?}", ledger[1]);
    };
    assert_eq!(last - first, TimeDelta::hours(4));
    assert_eq!((count, next - last), (5, TimeDelta::hours(1)));
    assert_eq!(scene.jobs("hosts").len(), 10);
}

#[test]
fn a_queued_slot_waits_for_the_unfinished_job() {
    let text = LOOP.replace(
        "dispatch: {}}\n    steps: [{run: x}]\n    artifacts",
        "dispatch: {}}\n    overlap: queue\n    steps: [{run: x}]\n    artifacts",
    );
    let mut scene = Scene::new(&text);
    let running = scene.dispatch("hosts");
    scene.pass(30 + 70);
    assert!(
        scene.test.world.due(scene.test.now).is_empty(),
        "an unfinished job prevents the slot"
    );
    assert_eq!(scene.fire("hosts"), None);
    scene.succeed(running);
    assert_eq!(scene.test.world.due(scene.test.now).len(), 1);
    assert!(scene.fire("hosts").is_some());
    assert_eq!(scene.jobs("hosts").len(), 1);
}

#[test]
fn a_newer_slot_replaces_jobs_that_were_not_dispatched() {
    let text = LOOP.replace(
        "dispatch: {}}\n    steps: [{run: x}]\n    artifacts",
        "dispatch: {}}\n    overlap: replace\n    steps: [{run: x}]\n    artifacts",
    );
    let mut scene = Scene::new(&text);
    scene.pass(30);
    let older = scene.fire("hosts").unwrap();
    scene.test.claim(older, scene.runner).unwrap();
    scene.pass(60);
    let scan = key(scene.workflow, "hosts");
    scene.test.logs.insert(older, 500);
    let newer = scene.fire("hosts").unwrap();
    assert_eq!(scene.jobs("hosts"), [newer]);
    let head = scene.test.world.head(&scan).unwrap();
    assert_eq!((head.totals.cancelled, head.totals.bytes), (1, 500));
    let replaced = scene
        .test
        .decided
        .iter()
        .rev()
        .find_map(|change| match change {
            Change::Job(job) if job.id == older => Some(job.state.end()?.reason.clone()),
            _ => None,
        });
    assert_eq!(replaced, Some(Reason::Replaced { by: newer }));
    let by_hand = scene.dispatch("hosts");
    scene.pass(60);
    assert_eq!(scene.fire("hosts"), None);
    assert!(scene.jobs("hosts").contains(&by_hand));
}

#[test]
fn a_changed_schedule_starts_now_and_other_edits_keep_the_cursor() {
    let mut scene = Scene::new(LOOP);
    scene.pass(20);
    scene.test.push("loop", &format!("{LOOP}# changed\n"));
    let hosts = key(scene.workflow, "hosts");
    scene.pass(10);
    assert_eq!(
        scene.test.world.due(scene.test.now),
        std::slice::from_ref(&hosts)
    );
    scene
        .test
        .push("loop", &LOOP.replace("0 * * * *", "*/5 * * * *"));
    assert!(scene.test.world.due(scene.test.now).is_empty());
    let next = at("2026-11-21T11:05:00Z");
    assert_eq!(scene.test.world.next_slot_of(&hosts), Some(next));
}
