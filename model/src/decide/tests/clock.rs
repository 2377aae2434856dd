//! Somebody sets the wall clock.

use std::collections::HashMap;

use chrono::TimeDelta;
use serde_json::json;

use crate::Holder;
use crate::decide::{
    CreateRegistration, CreateToken, EndSessions, FollowClock, ForgetClocks, NoteClocks, NoteUse,
    StoreExpiry,
};
use crate::limits::{
    CLOCK_NOTE, CLOCKS, IDEMPOTENCY, REGISTRATION, RUNNER_SESSION, WORKER_SESSION,
};
use crate::testing::{House, NIGHTLY};
use crate::{Change, IdempotencyKey, Scope, Timestamp, WorkflowId};

const LIFE: TimeDelta = TimeDelta::days(1);

/// Each end, in a fixed order.
fn ends(house: &House) -> Vec<Timestamp> {
    let world = &house.world;
    let tokens = world.tokens().filter_map(|token| token.expires_at);
    let sessions = world.runners().map(|runner| runner.session.expires_at);
    let registrations = world.registrations().map(|it| it.expires_at);
    let runs = world.running().filter_map(|job| job.state.run());
    let runs = runs.flat_map(|run| [Some(run.expires_at), run.deadline]);
    tokens
        .chain(sessions)
        .chain(registrations)
        .chain(runs.flatten())
        .collect()
}

/// What is left of each end.
fn left(house: &House) -> Vec<TimeDelta> {
    let now = house.world.time(house.steady());
    ends(house).into_iter().map(|end| end - now).collect()
}

fn create_token() -> CreateToken {
    CreateToken {
        name: "ci".to_owned(),
        scopes: std::iter::once(Scope::JobRead).collect(),
        life: Some(LIFE),
        projects: crate::Projects::All,
        granted_by: crate::Rights::admin(),
    }
}

/// A token, a runner, a registration and a running job with a deadline.
fn begin(house: &mut House) -> WorkflowId {
    house.run(create_token()).unwrap();
    let workflow = house.push("nightly", NIGHTLY);
    let runner = house.runner("r", &["linux", "gpu"]);
    house.run(CreateRegistration).unwrap();
    let job = house
        .dispatch(workflow, "strict", json!({"target": "x"}))
        .unwrap();
    house.claim(job, runner).unwrap();
    workflow
}

/// Dispatches a job under a key that is always the same.
fn dispatch(house: &mut House, workflow: WorkflowId) {
    let mut dispatch = house.dispatch_of(workflow, "probe", json!({})).unwrap();
    dispatch.idempotency = Some(IdempotencyKey {
        key: "k".to_owned(),
        request: "r".to_owned(),
    });
    house.run(dispatch).unwrap();
}

#[test]
fn an_end_that_was_loaded_stays_until_a_new_one_is_set() {
    for by in [TimeDelta::days(400), TimeDelta::days(-400)] {
        let mut house = House::new();
        let workflow = begin(&mut house);
        dispatch(&mut house, workflow);
        house.world.finish_loading(house.now, HashMap::new());
        let loaded = ends(&house);
        let requested = house.world.idempotency("k").unwrap().expires_at;
        house.jump(by);
        house.run(FollowClock).unwrap();
        assert_eq!(ends(&house), loaded, "{by}");
        let request = house.world.idempotency("k").unwrap();
        assert_eq!(request.expires_at, requested);
        let over = house.world.idempotency_over(requested);
        assert_eq!(over.count(), 1, "it is found by its age");
        assert_eq!(house.world.holders(), []);

        let token = house.run(create_token()).unwrap().token.id;
        let runner = house.world.runners().next().unwrap().id;
        house.run(EndSessions { runner }).unwrap();
        house.pass(TimeDelta::days(800) + IDEMPOTENCY);
        dispatch(&mut house, workflow);
        let mut set = house.world.holders();
        set.sort_by_key(|holder| format!("{holder:?}"));
        let request = Holder::Idempotency("k".to_owned());
        let mut expected = vec![request, Holder::Runner(runner), Holder::Token(token)];
        if by > TimeDelta::zero() {
            // By this clock the session had ended before.
            expected.remove(1);
        }
        assert_eq!(set, expected);
    }
}

#[test]
fn no_span_changes_however_the_clock_jumps() {
    let spans = [
        LIFE,
        RUNNER_SESSION,
        REGISTRATION,
        WORKER_SESSION,
        TimeDelta::minutes(30),
    ];
    for by in [TimeDelta::days(400), TimeDelta::days(-400)] {
        // Begun before the jump, during it, and after it was followed.
        let mut before = House::new();
        begin(&mut before);
        before.jump(by);
        assert_eq!(left(&before), spans, "{by}");
        let mut during = House::new();
        during.jump(by);
        begin(&mut during);
        assert_eq!(left(&during), spans, "{by}");
        for house in [&mut before, &mut during] {
            house.run(FollowClock).unwrap();
            house.run(FollowClock).unwrap();
            assert_eq!(left(house), spans, "{by}");
            assert_eq!(house.world.time(house.steady()), house.now);
            house.pass(TimeDelta::minutes(1));
            let minute_later = spans.map(|span| span - TimeDelta::minutes(1));
            assert_eq!(left(house), minute_later, "{by}");
        }
    }
}

#[test]
fn every_end_that_followed_the_clock_is_stored() {
    let mut house = House::new();
    begin(&mut house);
    let by = TimeDelta::days(-3);
    house.jump(by);
    house.run(FollowClock).unwrap();
    let mut stored: Vec<Timestamp> = Vec::new();
    for holder in house.world.holders() {
        let (changes, ()) = house.changes(StoreExpiry { holder }).unwrap();
        stored.extend(changes.into_iter().map(|change| match change {
            Change::Token(token) => token.expires_at.unwrap(),
            Change::Runner(runner) => runner.session.expires_at,
            Change::Registration(registration) => registration.expires_at,
            Change::Job(job) => job.state.run().unwrap().expires_at,
            other => panic!("{other:?}"),
        }));
    }
    let spans = [LIFE, RUNNER_SESSION, REGISTRATION, WORKER_SESSION];
    assert_eq!(stored, spans.map(|span| house.now + span));
}

#[test]
fn a_jump_is_noted_with_both_readings_until_every_end_has_followed_it() {
    let mut house = House::new();
    begin(&mut house);
    let (five, start) = (TimeDelta::hours(5), house.steady());
    let is_noted = |house: &House| {
        let time = house.world.time(house.steady());
        house.world.is_noted(house.now, time)
    };
    assert!(is_noted(&house), "there is nothing to note");
    house.jump(five);
    assert!(!is_noted(&house));
    house.run(NoteClocks).unwrap();
    assert!(is_noted(&house));
    let noted = house.world.clocks().unwrap();
    assert_eq!(noted.wall, start + five);
    assert_eq!(noted.readings.values().collect::<Vec<_>>(), [&start]);
    // It is undone, and done again. In the end the note is old.
    house.jump(-five);
    assert!(!is_noted(&house));
    house.jump(five);
    assert!(is_noted(&house));
    house.pass(CLOCK_NOTE);
    assert!(!is_noted(&house));

    house.run(FollowClock).unwrap();
    let noted = house.world.clocks().unwrap();
    assert_eq!(noted.wall, house.now);
    let readings: Vec<_> = noted.readings.values().collect();
    assert_eq!(readings, [&(house.now - five), &house.now]);
    assert!(house.world.has_earlier_clocks());
    for holder in house.world.holders() {
        house.run(StoreExpiry { holder }).unwrap();
    }
    house.run(ForgetClocks).unwrap();
    assert_eq!(house.world.clocks(), None);
    assert!(!house.world.has_earlier_clocks());
    assert!(house.run(ForgetClocks).is_ok(), "it is gone already");
}

#[test]
fn a_jump_that_is_followed_again_and_again_keeps_a_short_note() {
    let mut house = House::new();
    for _ in 0..100 {
        house.jump(TimeDelta::hours(2));
        house.run(FollowClock).unwrap();
    }
    let readings = house.world.clocks().unwrap().readings.clone();
    assert_eq!(readings.len(), CLOCKS);
    let last: Vec<_> = readings.values().rev().take(2).copied().collect();
    assert_eq!(last, [house.now, house.now - TimeDelta::hours(2)]);
}

#[test]
fn each_record_names_the_clock_that_has_set_its_ends() {
    let mut house = House::new();
    let token = house.run(create_token()).unwrap().token.id;
    let loaded = HashMap::from([(Holder::Token(token), 7)]);
    house.world.finish_loading(house.now, loaded);
    // A note of its use sets no end.
    let day = house.now.date_naive();
    let (used, ()) = house.changes(NoteUse { token, day }).unwrap();
    assert_eq!(house.world.clock_of(&used[0]), Some(7));
    let (made, _) = house.changes(create_token()).unwrap();
    assert_eq!(house.world.clock_of(&made[0]), Some(8));
    house.jump(TimeDelta::hours(2));
    house.run(FollowClock).unwrap();
    assert_eq!(house.world.clock_of(&used[0]), Some(7));
    assert_eq!(house.world.clock_of(&made[0]), Some(9));
    let activated = house
        .decided
        .iter()
        .find(|it| matches!(it, Change::Source(_)));
    assert_eq!(house.world.clock_of(activated.unwrap()), None);
}
