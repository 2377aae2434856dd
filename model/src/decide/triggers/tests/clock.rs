//! Schedules and changes of the clock.

use super::*;

const YEAR: TimeDelta = TimeDelta::days(400);

impl Scene {
    fn rewind(&mut self, scan: &str) -> Option<Timestamp> {
        let scan = key(self.workflow, scan);
        self.test.run(Rewind { scan }).unwrap()
    }

    fn next_slot(&self, scan: &str) -> Option<Timestamp> {
        self.test.world.next_slot_of(&key(self.workflow, scan))
    }
}

#[test]
fn a_schedule_far_ahead_of_the_clock_is_reset_to_now_and_recorded() {
    let mut scene = Scene::new(LOOP);
    scene.test.jump(YEAR);
    let wrong = scene.fire("hosts").unwrap();
    scene.succeed(wrong);
    scene.test.jump(-YEAR);
    let cursor = at("2027-12-26T10:00:00Z");
    let hosts = key(scene.workflow, "hosts");
    let beyond = |scene: &Scene| {
        let found = scene.test.world.followed_beyond(scene.test.now);
        found
            .map(|(at, scan)| (at, scan.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(beyond(&scene), [(cursor, hosts)]);
    assert_eq!(scene.rewind("hosts"), Some(cursor));
    assert_eq!(beyond(&scene), []);
    let record = scene.ledger("hosts").pop().unwrap();
    assert_eq!(record.cause, Cause::Clock { cursor });
    let reason = Reason::ClockSetBack { cursor };
    assert_eq!(record.outcome, Outcome::NotMade { reason });
    assert_eq!(scene.next_slot("hosts"), Some(at("2026-11-21T11:00:00Z")));
    assert_eq!(scene.rewind("hosts"), None, "once");
    scene.pass(30);
    assert!(scene.fire("hosts").is_some());
}

#[test]
fn a_schedule_activated_while_the_clock_was_wrong_is_reset_to_now() {
    let mut scene = Scene::new("scans: {bystander: {on: {dispatch: {}}, steps: [{run: x}]}}");
    scene.test.jump(YEAR);
    scene.test.push("loop", LOOP);
    scene.test.jump(-YEAR);
    assert!(scene.rewind("hosts").is_some());
    assert_eq!(scene.next_slot("hosts"), Some(at("2026-11-21T11:00:00Z")));
    assert!(scene.test.world.due(scene.test.now).is_empty());
}

#[test]
fn setting_the_clock_back_by_up_to_a_day_repeats_no_slot() {
    for hours in [1, 24] {
        let mut scene = Scene::new(LOOP);
        scene.test.jump(TimeDelta::hours(hours));
        let job = scene.fire("hosts").unwrap();
        scene.succeed(job);
        scene.test.jump(TimeDelta::hours(-hours));
        assert_eq!(scene.rewind("hosts"), None);
        for _ in 0..hours {
            assert_eq!(scene.fire("hosts"), None, "{hours}");
            scene.pass(60);
        }
        scene.pass(60);
        assert!(scene.fire("hosts").is_some(), "{hours}");
    }
}
