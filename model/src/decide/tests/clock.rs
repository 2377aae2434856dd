//! Somebody sets the wall clock.

use chrono::TimeDelta;
use serde_json::json;

use crate::decide::{CreateRegistration, CreateToken, FollowClock, KeepEnd};
use crate::limits::{REGISTRATION, RUNNER_SESSION, WORKER_SESSION};
use crate::testing::{House, NIGHTLY};
use crate::{Change, Scope, Scopes, Timestamp};

const LIFE: TimeDelta = TimeDelta::days(1);

/// What is left of each end, in a fixed order.
fn left(house: &House) -> Vec<TimeDelta> {
    let world = &house.world;
    let tokens = world.tokens().filter_map(|token| token.expires_at);
    let sessions = world.runners().map(|runner| runner.session.expires_at);
    let registrations = world.registrations().map(|it| it.expires_at);
    let runs = world.running().filter_map(|job| job.state.run());
    let runs = runs.flat_map(|run| [Some(run.expires_at), run.deadline]);
    let ends = tokens
        .chain(sessions)
        .chain(registrations)
        .chain(runs.flatten());
    let now = world.time(house.steady());
    ends.map(|end| end - now).collect()
}

/// A token, a runner, a registration and a running job with a deadline.
fn begin(house: &mut House) {
    let create = CreateToken {
        name: "ci".to_owned(),
        scopes: std::iter::once(Scope::JobRead).collect(),
        life: Some(LIFE),
        granted_by: Scopes::admin(),
    };
    house.run(create).unwrap();
    let workflow = house.push("nightly", NIGHTLY);
    let runner = house.runner("r", &["linux", "gpu"]);
    house.run(CreateRegistration).unwrap();
    let job = house
        .dispatch(workflow, "strict", json!({"target": "x"}))
        .unwrap();
    house.claim(job, runner).unwrap();
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
            house.run(FollowClock { by }).unwrap();
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
    house.run(FollowClock { by }).unwrap();
    let mut stored: Vec<Timestamp> = Vec::new();
    for holder in house.world.holders() {
        let (changes, ()) = house.changes(KeepEnd { holder }).unwrap();
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
