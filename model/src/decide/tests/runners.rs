//! Runners: registration tokens, names, and the renewal of sessions.

use chrono::TimeDelta;

use crate::decide::{
    CreateRegistration, NewSession, Refusal, RegisterRunner, RemoveRunner, RenewSession,
};
use crate::limits::{
    NAME_CHARS, OPEN_REGISTRATIONS, REGISTRATION, RUNNER_CAPACITY, RUNNER_LABELS, RUNNER_RENEWAL,
    RUNNER_RENEWAL_OVERLAP, RUNNER_RENEWAL_RETRY, RUNNER_SESSION,
};
use crate::testing::{TestWorld, register};
use crate::{Runner, RunnerId, TokenHash};

fn registration(test: &mut TestWorld) -> TokenHash {
    test.run(CreateRegistration::default())
        .unwrap()
        .secret
        .hash()
}

/// Renews the session of the runner that presents this token.
fn renew(test: &mut TestWorld, runner: RunnerId, token: TokenHash) -> Option<NewSession> {
    test.run(RenewSession { runner, token }).unwrap()
}

fn record(test: &TestWorld, runner: RunnerId) -> Runner {
    Runner::clone(test.world.runner(runner).unwrap())
}

#[test]
fn a_registration_token_is_valid_once_and_for_fifteen_minutes() {
    let mut test = TestWorld::new();
    let token = registration(&mut test);
    test.run(register(token, "first", &[])).unwrap();
    let again = test.run(register(token, "second", &[]));
    assert_eq!(again.map(drop), Err(Refusal::BadRegistration));

    let token = registration(&mut test);
    test.pass(REGISTRATION);
    let late = test.run(register(token, "second", &[]));
    assert_eq!(late.map(drop), Err(Refusal::BadRegistration));
}

#[test]
fn a_refused_runner_can_use_its_registration_token_again() {
    let mut test = TestWorld::new();
    let token = registration(&mut test);
    let refused = test.run(register(token, "", &[]));
    assert!(matches!(
        refused,
        Err(Refusal::InvalidField { field: "name", .. })
    ));
    assert!(test.run(register(token, "first", &[])).is_ok());
}

#[test]
fn expired_registrations_do_not_count() {
    let mut test = TestWorld::new();
    for _ in 0..OPEN_REGISTRATIONS {
        registration(&mut test);
    }
    let refused = test.run(CreateRegistration::default()).map(drop);
    let full = Refusal::TooManyRegistrations {
        waiting: OPEN_REGISTRATIONS,
        project: None,
    };
    assert_eq!(refused, Err(full));

    test.pass(REGISTRATION);
    for _ in 0..OPEN_REGISTRATIONS {
        registration(&mut test);
    }
    assert_eq!(test.world.registrations().count(), OPEN_REGISTRATIONS);
}

#[test]
fn a_runner_name_is_unique_unless_the_runner_is_replaced() {
    let mut test = TestWorld::new();
    let old = test.runner("first", &[]);
    let token = registration(&mut test);
    let taken = test.run(register(token, "first", &[])).map(drop);
    let name = "first".to_owned();
    assert_eq!(taken, Err(Refusal::NameTaken { name }));

    let replace = RegisterRunner {
        replace: true,
        ..register(token, "first", &["linux"])
    };
    let new = test.run(replace).unwrap();
    assert_eq!(new.replaced, Some(old));
    assert!(test.world.runner(old).is_none());
    assert_eq!(record(&test, new.session.runner).labels, ["linux"]);
}

#[test]
fn names_labels_and_capacities_have_limits() {
    let mut test = TestWorld::new();
    let token = registration(&mut test);
    let longest = "ä".repeat(NAME_CHARS);
    let long = format!("{longest}ä");
    let mut field = |change: &dyn Fn(&mut RegisterRunner)| {
        let mut command = register(token, "first", &[]);
        change(&mut command);
        match test.run(command) {
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
    let new = test.run(good).unwrap();
    assert_eq!(new.replaced, None);
    assert_eq!(record(&test, new.session.runner).version, "1.0[31m");
}

#[test]
fn the_old_session_is_valid_for_ten_minutes_after_a_renewal() {
    let mut test = TestWorld::new();
    let runner = test.runner("first", &[]);
    let old = record(&test, runner).session.token;
    assert!(renew(&mut test, runner, old).is_none());
    test.pass(RUNNER_RENEWAL);
    let stranger = TokenHash::of("stranger");
    assert!(renew(&mut test, runner, stranger).is_none());

    let renewed = renew(&mut test, runner, old).unwrap();
    assert_eq!(renewed.expires_at, test.now + RUNNER_SESSION);
    let record = record(&test, runner);
    let end = test.now + RUNNER_RENEWAL_OVERLAP;
    assert!(record.is_held_by(renewed.secret.hash(), end));
    assert!(record.is_held_by(old, end - TimeDelta::seconds(1)));
    assert!(!record.is_held_by(old, end));
    assert!(!record.is_held_by(stranger, test.now));
}

#[test]
fn a_renewal_does_not_extend_the_old_session() {
    let mut test = TestWorld::new();
    let runner = test.runner("first", &[]);
    let old = record(&test, runner).session;
    test.pass(RUNNER_SESSION - TimeDelta::minutes(1));
    assert!(renew(&mut test, runner, old.token).is_some());
    let previous = record(&test, runner).previous_session.unwrap();
    assert_eq!(previous.expires_at, old.expires_at);
}

#[test]
fn a_renewal_is_repeated_if_its_answer_was_lost() {
    let mut test = TestWorld::new();
    let runner = test.runner("first", &[]);
    let old = record(&test, runner).session.token;
    test.pass(RUNNER_RENEWAL);
    let lost = renew(&mut test, runner, old).unwrap().secret.hash();

    // Requests in transit still use the old token. Later requests show that the answer was lost.
    assert!(renew(&mut test, runner, old).is_none());
    test.pass(RUNNER_RENEWAL_RETRY);
    let new = renew(&mut test, runner, old).unwrap().secret.hash();
    let record = record(&test, runner);
    assert!(record.is_held_by(new, test.now));
    assert!(record.is_held_by(old, test.now));
    assert!(!record.is_held_by(lost, test.now));
}

#[test]
fn only_one_of_two_concurrent_renewals_returns_a_token() {
    let mut test = TestWorld::new();
    let runner = test.runner("first", &[]);
    let old = record(&test, runner).session.token;
    test.pass(RUNNER_RENEWAL);
    let one = renew(&mut test, runner, old).unwrap().secret.hash();
    assert!(renew(&mut test, runner, old).is_none());
    let record = record(&test, runner);
    assert!(record.is_held_by(one, test.now) && record.is_held_by(old, test.now));
}

#[test]
fn a_removed_runner_no_longer_exists() {
    let mut test = TestWorld::new();
    let runner = test.runner("first", &[]);
    let token = record(&test, runner).session.token;
    test.run(RemoveRunner {
        runner,
        by: crate::Rights::admin(),
    })
    .unwrap();
    let gone = Err(Refusal::NoSuchRunner);
    assert_eq!(
        test.run(RemoveRunner {
            runner,
            by: crate::Rights::admin()
        }),
        gone
    );
    assert_eq!(
        test.run(RenewSession { runner, token }).map(drop),
        Err(Refusal::NoSuchRunner)
    );
}
