//! Runners: registrations that are used once, names, sessions that are renewed.

use chrono::TimeDelta;

use crate::decide::{
    CreateRegistration, NewSession, Refusal, RegisterRunner, RemoveRunner, RenewSession,
};
use crate::limits::{
    NAME_CHARS, OPEN_REGISTRATIONS, REGISTRATION, RUNNER_CAPACITY, RUNNER_LABELS, RUNNER_RENEWAL,
    RUNNER_RENEWAL_OVERLAP, RUNNER_RENEWAL_RETRY, RUNNER_SESSION,
};
use crate::testing::{House, register};
use crate::{Runner, RunnerId, TokenHash};

fn registration(house: &mut House) -> TokenHash {
    house.run(CreateRegistration).unwrap().secret.hash()
}

/// A renewal for the holder of that token.
fn renew(house: &mut House, runner: RunnerId, token: TokenHash) -> Option<NewSession> {
    house.run(RenewSession { runner, token }).unwrap()
}

fn record(house: &House, runner: RunnerId) -> Runner {
    Runner::clone(house.world.runner(runner).unwrap())
}

#[test]
fn a_registration_is_used_once_and_lives_a_quarter_of_an_hour() {
    let mut house = House::new();
    let token = registration(&mut house);
    house.run(register(token, "first", &[])).unwrap();
    let again = house.run(register(token, "second", &[]));
    assert_eq!(again.map(drop), Err(Refusal::BadRegistration));

    let token = registration(&mut house);
    house.pass(REGISTRATION);
    let late = house.run(register(token, "second", &[]));
    assert_eq!(late.map(drop), Err(Refusal::BadRegistration));
}

#[test]
fn a_refused_runner_may_use_its_registration_again() {
    let mut house = House::new();
    let token = registration(&mut house);
    let refused = house.run(register(token, "", &[]));
    assert!(matches!(
        refused,
        Err(Refusal::InvalidField { field: "name", .. })
    ));
    assert!(house.run(register(token, "first", &[])).is_ok());
}

#[test]
fn expired_registrations_do_not_count() {
    let mut house = House::new();
    for _ in 0..OPEN_REGISTRATIONS {
        registration(&mut house);
    }
    let refused = house.run(CreateRegistration).map(drop);
    let waiting = OPEN_REGISTRATIONS;
    assert_eq!(refused, Err(Refusal::TooManyRegistrations { waiting }));

    house.pass(REGISTRATION);
    for _ in 0..OPEN_REGISTRATIONS {
        registration(&mut house);
    }
    assert_eq!(house.world.registrations().count(), OPEN_REGISTRATIONS);
}

#[test]
fn a_runner_name_is_taken_unless_it_is_replaced() {
    let mut house = House::new();
    let old = house.runner("first", &[]);
    let token = registration(&mut house);
    let taken = house.run(register(token, "first", &[])).map(drop);
    let name = "first".to_owned();
    assert_eq!(taken, Err(Refusal::NameTaken { name }));

    let replace = RegisterRunner {
        replace: true,
        ..register(token, "first", &["linux"])
    };
    let new = house.run(replace).unwrap();
    assert_eq!(new.replaced, Some(old));
    assert!(house.world.runner(old).is_none());
    assert_eq!(record(&house, new.session.runner).labels, ["linux"]);
}

#[test]
fn names_labels_and_capacities_have_bounds() {
    let mut house = House::new();
    let token = registration(&mut house);
    let longest = "ä".repeat(NAME_CHARS);
    let long = format!("{longest}ä");
    let mut field = |change: &dyn Fn(&mut RegisterRunner)| {
        let mut command = register(token, "first", &[]);
        change(&mut command);
        match house.run(command) {
            Err(Refusal::InvalidField { field, .. }) => field,
            other => panic!("{other:?}"),
        }
    };
    for bad in [
        "",
        " ",
        " a",
        "a ",
        "a\nb",
        "a\u{200b}b",
        "a\u{202e}b",
        &long,
    ] {
        assert_eq!(
            field(&|runner| runner.name = bad.to_owned()),
            "name",
            "{bad:?}"
        );
        assert_eq!(
            field(&|runner| runner.labels = vec![bad.to_owned()]),
            "labels"
        );
    }
    for bad in [0, RUNNER_CAPACITY + 1] {
        assert_eq!(field(&|runner| runner.capacity = bad), "capacity");
    }
    let many = vec!["linux".to_owned(); RUNNER_LABELS + 1];
    assert_eq!(field(&|runner| runner.labels = many.clone()), "labels");

    let good = RegisterRunner {
        capacity: RUNNER_CAPACITY,
        version: "1.0\u{1b}[31m".to_owned(),
        ..register(token, &longest, &[&longest, "arm 64"])
    };
    let new = house.run(good).unwrap();
    assert_eq!(new.replaced, None);
    assert_eq!(record(&house, new.session.runner).version, "1.0[31m");
}

#[test]
fn the_old_session_outlives_a_renewal_by_ten_minutes() {
    let mut house = House::new();
    let runner = house.runner("first", &[]);
    let old = record(&house, runner).session.token;
    assert!(renew(&mut house, runner, old).is_none());
    house.pass(RUNNER_RENEWAL);
    let stranger = TokenHash::of("stranger");
    assert!(renew(&mut house, runner, stranger).is_none());

    let renewed = renew(&mut house, runner, old).unwrap();
    assert_eq!(renewed.expires_at, house.now + RUNNER_SESSION);
    let record = record(&house, runner);
    let end = house.now + RUNNER_RENEWAL_OVERLAP;
    assert!(record.is_held_by(renewed.secret.hash(), end));
    assert!(record.is_held_by(old, end - TimeDelta::seconds(1)));
    assert!(!record.is_held_by(old, end));
    assert!(!record.is_held_by(stranger, house.now));
}

#[test]
fn an_old_session_near_its_end_does_not_live_longer_by_a_renewal() {
    let mut house = House::new();
    let runner = house.runner("first", &[]);
    let old = record(&house, runner).session;
    house.pass(RUNNER_SESSION - TimeDelta::minutes(1));
    assert!(renew(&mut house, runner, old.token).is_some());
    let previous = record(&house, runner).previous_session.unwrap();
    assert_eq!(previous.expires_at, old.expires_at);
}

#[test]
fn a_renewal_whose_answer_was_lost_is_made_up_for() {
    let mut house = House::new();
    let runner = house.runner("first", &[]);
    let old = record(&house, runner).session.token;
    house.pass(RUNNER_RENEWAL);
    let lost = renew(&mut house, runner, old).unwrap().secret.hash();

    // Requests that were on their way already still come with the old token; later ones tell of the loss.
    assert!(renew(&mut house, runner, old).is_none());
    house.pass(RUNNER_RENEWAL_RETRY);
    let new = renew(&mut house, runner, old).unwrap().secret.hash();
    let record = record(&house, runner);
    assert!(record.is_held_by(new, house.now));
    assert!(record.is_held_by(old, house.now));
    assert!(!record.is_held_by(lost, house.now));
}

#[test]
fn only_one_of_two_concurrent_renewals_returns_a_token() {
    let mut house = House::new();
    let runner = house.runner("first", &[]);
    let old = record(&house, runner).session.token;
    house.pass(RUNNER_RENEWAL);
    let one = renew(&mut house, runner, old).unwrap().secret.hash();
    assert!(renew(&mut house, runner, old).is_none());
    let record = record(&house, runner);
    assert!(record.is_held_by(one, house.now) && record.is_held_by(old, house.now));
}

#[test]
fn a_removed_runner_no_longer_exists() {
    let mut house = House::new();
    let runner = house.runner("first", &[]);
    let token = record(&house, runner).session.token;
    house.run(RemoveRunner { runner }).unwrap();
    let gone = Err(Refusal::NoSuchRunner);
    assert_eq!(house.run(RemoveRunner { runner }), gone);
    assert_eq!(
        house.run(RenewSession { runner, token }).map(drop),
        Err(Refusal::NoSuchRunner)
    );
}
