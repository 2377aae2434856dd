//! Changes of the wall clock.

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
use crate::testing::{NIGHTLY, TestWorld};
use crate::{Change, IdempotencyKey, Scope, Timestamp, WorkflowId};

const LIFE: TimeDelta = TimeDelta::days(1);

/// All expiry times, in a fixed order.
fn ends(test: &TestWorld) -> Vec<Timestamp> {
    let world = &test.world;
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

/// The remaining time until each expiry.
fn left(test: &TestWorld) -> Vec<TimeDelta> {
    let now = test.world.time(test.steady());
    ends(test).into_iter().map(|end| end - now).collect()
}

fn create_token() -> CreateToken {
    CreateToken {
        name: "ci".to_owned(),
        scopes: std::iter::once(Scope::JobRead).collect(),
        life: Some(LIFE),
        projects: crate::Projects::All,
        owner: crate::UserId::OWNER,
        by: crate::UserId::OWNER,
        granted_by: crate::Rights::admin(),
        ends_by: None,
    }
}

/// A token, a runner, a registration and a running job with a deadline.
fn begin(test: &mut TestWorld) -> WorkflowId {
    test.run(create_token()).unwrap();
    let workflow = test.push("nightly", NIGHTLY);
    let runner = test.runner("r", &["linux", "gpu"]);
    test.run(CreateRegistration::default()).unwrap();
    let job = test
        .dispatch(workflow, "strict", json!({"target": "x"}))
        .unwrap();
    test.claim(job, runner).unwrap();
    workflow
}

/// Dispatches a job, always with the same idempotency key.
fn dispatch(test: &mut TestWorld, workflow: WorkflowId) {
    let mut dispatch = test.dispatch_of(workflow, "probe", json!({})).unwrap();
    dispatch.idempotency = Some(IdempotencyKey {
        key: "k".to_owned(),
        request: "r".to_owned(),
    });
    test.run(dispatch).unwrap();
}

#[test]
fn a_loaded_expiry_time_is_unchanged_until_it_is_set_again() {
    for by in [TimeDelta::days(400), TimeDelta::days(-400)] {
        let mut test = TestWorld::new();
        let workflow = begin(&mut test);
        dispatch(&mut test, workflow);
        test.world.finish_loading(test.now, HashMap::new());
        let loaded = ends(&test);
        let requested = test.world.idempotency("k").unwrap().expires_at;
        test.jump(by);
        test.run(FollowClock).unwrap();
        assert_eq!(ends(&test), loaded, "{by}");
        let request = test.world.idempotency("k").unwrap();
        assert_eq!(request.expires_at, requested);
        let over = test.world.idempotency_over(requested);
        assert_eq!(over.count(), 1, "it is found by its expiry time");
        assert_eq!(test.world.holders(), []);

        let token = test.run(create_token()).unwrap().token.id;
        let runner = test.world.runners().next().unwrap().id;
        test.run(EndSessions { runner }).unwrap();
        test.pass(TimeDelta::days(800) + IDEMPOTENCY);
        dispatch(&mut test, workflow);
        let mut set = test.world.holders();
        set.sort_by_key(|holder| format!("{holder:?}"));
        let request = Holder::Idempotency("k".to_owned());
        let mut expected = vec![request, Holder::Runner(runner), Holder::Token(token)];
        if by > TimeDelta::zero() {
            // By this clock the session had already ended.
            expected.remove(1);
        }
        assert_eq!(set, expected);
    }
}

#[test]
fn clock_jumps_change_no_remaining_time() {
    let spans = [
        LIFE,
        RUNNER_SESSION,
        REGISTRATION,
        WORKER_SESSION,
        TimeDelta::minutes(30),
    ];
    for by in [TimeDelta::days(400), TimeDelta::days(-400)] {
        // Created before the jump, and during it; then the jump is followed.
        let mut before = TestWorld::new();
        begin(&mut before);
        before.jump(by);
        assert_eq!(left(&before), spans, "{by}");
        let mut during = TestWorld::new();
        during.jump(by);
        begin(&mut during);
        assert_eq!(left(&during), spans, "{by}");
        for test in [&mut before, &mut during] {
            test.run(FollowClock).unwrap();
            test.run(FollowClock).unwrap();
            assert_eq!(left(test), spans, "{by}");
            assert_eq!(test.world.time(test.steady()), test.now);
            test.pass(TimeDelta::minutes(1));
            let minute_later = spans.map(|span| span - TimeDelta::minutes(1));
            assert_eq!(left(test), minute_later, "{by}");
        }
    }
}

#[test]
fn every_expiry_time_that_followed_the_clock_is_stored() {
    let mut test = TestWorld::new();
    begin(&mut test);
    let by = TimeDelta::days(-3);
    test.jump(by);
    test.run(FollowClock).unwrap();
    let mut stored: Vec<Timestamp> = Vec::new();
    for holder in test.world.holders() {
        let (changes, ()) = test.changes(StoreExpiry { holder }).unwrap();
        stored.extend(changes.into_iter().filter_map(|change| match change {
            Change::Token(token) => token.expires_at,
            Change::Runner(runner) => Some(runner.session.expires_at),
            Change::Registration(registration) => Some(registration.expires_at),
            Change::Job(job) => Some(job.state.run().unwrap().expires_at),
            Change::Condition(_) => None,
            other => panic!("{other:?}"),
        }));
    }
    let spans = [LIFE, RUNNER_SESSION, REGISTRATION, WORKER_SESSION];
    assert_eq!(stored, spans.map(|span| test.now + span));
}

#[test]
fn a_jump_is_recorded_until_every_expiry_time_has_followed_it() {
    let mut test = TestWorld::new();
    begin(&mut test);
    let (five, start) = (TimeDelta::hours(5), test.steady());
    let is_noted = |test: &TestWorld| {
        let time = test.world.time(test.steady());
        test.world.is_noted(test.now, time)
    };
    assert!(is_noted(&test), "there is no jump to record");
    test.jump(five);
    assert!(!is_noted(&test));
    test.run(NoteClocks).unwrap();
    assert!(is_noted(&test));
    let noted = test.world.clocks().unwrap();
    assert_eq!(noted.wall, start + five);
    assert_eq!(noted.readings.values().collect::<Vec<_>>(), [&start]);
    // The jump is undone and repeated. At the end, the record is old.
    test.jump(-five);
    assert!(!is_noted(&test));
    test.jump(five);
    assert!(is_noted(&test));
    test.pass(CLOCK_NOTE);
    assert!(!is_noted(&test));

    test.run(FollowClock).unwrap();
    let noted = test.world.clocks().unwrap();
    assert_eq!(noted.wall, test.now);
    let readings: Vec<_> = noted.readings.values().collect();
    assert_eq!(readings, [&(test.now - five), &test.now]);
    assert!(test.world.has_earlier_clocks());
    for holder in test.world.holders() {
        test.run(StoreExpiry { holder }).unwrap();
    }
    test.run(ForgetClocks).unwrap();
    assert_eq!(test.world.clocks(), None);
    assert!(!test.world.has_earlier_clocks());
    assert!(test.run(ForgetClocks).is_ok(), "it was already removed");
}

#[test]
fn the_record_of_many_followed_jumps_stays_short() {
    let mut test = TestWorld::new();
    for _ in 0..100 {
        test.jump(TimeDelta::hours(2));
        test.run(FollowClock).unwrap();
    }
    let readings = test.world.clocks().unwrap().readings.clone();
    assert_eq!(readings.len(), CLOCKS);
    let last: Vec<_> = readings.values().rev().take(2).copied().collect();
    assert_eq!(last, [test.now, test.now - TimeDelta::hours(2)]);
}

#[test]
fn each_record_has_the_number_of_the_clock_of_its_expiry_times() {
    let mut test = TestWorld::new();
    let token = test.run(create_token()).unwrap().token.id;
    let loaded = HashMap::from([(Holder::Token(token), 7)]);
    test.world.finish_loading(test.now, loaded);
    // Recording a use of the token sets no expiry time.
    let day = test.now.date_naive();
    let (used, ()) = test.changes(NoteUse { token, day }).unwrap();
    assert_eq!(test.world.clock_of(&used[0]), Some(7));
    let (made, _) = test.changes(create_token()).unwrap();
    assert_eq!(test.world.clock_of(&made[0]), Some(8));
    test.jump(TimeDelta::hours(2));
    test.run(FollowClock).unwrap();
    assert_eq!(test.world.clock_of(&used[0]), Some(7));
    assert_eq!(test.world.clock_of(&made[0]), Some(9));
    let activated = test
        .decided
        .iter()
        .find(|it| matches!(it, Change::Source(_)));
    assert_eq!(test.world.clock_of(activated.unwrap()), None);
}
