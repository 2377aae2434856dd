//! What makes a secret is made once for each key.

use chrono::TimeDelta;

use crate::decide::{CreateRegistration, CreateToken, Once, Refusal, RegenerateToken};
use crate::limits::IDEMPOTENCY;
use crate::testing::House;
use crate::{IdempotencyKey, Made, Projects, Rights, Scopes, TokenId};

fn once<C>(command: C, key: &str, body: &str) -> Once<C> {
    let caller = TokenId::from_uuid(uuid::Uuid::nil());
    Once {
        command,
        key: Some(IdempotencyKey::new(caller, "make", key, body.as_bytes())),
    }
}

fn create() -> CreateToken {
    CreateToken {
        name: "ci".to_owned(),
        scopes: Scopes::admin(),
        life: None,
        projects: Projects::All,
        granted_by: Rights::admin(),
    }
}

#[test]
fn a_repeat_is_refused_with_what_the_first_request_made() {
    let mut house = House::new();
    let token = house.run(once(create(), "k", "{}")).unwrap().token;
    let made = Made::Token(token.id);
    let repeat = house.run(once(create(), "k", "{}")).map(drop);
    assert_eq!(repeat, Err(Refusal::AlreadyDone { made }));
    let other = house.run(once(create(), "k", "{ }")).map(drop);
    assert_eq!(other, Err(Refusal::IdempotencyMismatch));
    assert_eq!(house.world.tokens().len(), 1);

    let registration = house.run(once(CreateRegistration, "r", "")).unwrap();
    let made = Made::Registration(registration.id);
    let repeat = house.run(once(CreateRegistration, "r", "")).map(drop);
    assert_eq!(repeat, Err(Refusal::AlreadyDone { made }));

    house.pass(IDEMPOTENCY - TimeDelta::seconds(1));
    house.run(once(create(), "k", "{}")).unwrap_err();
    house.pass(TimeDelta::seconds(1));
    house.run(once(create(), "k", "{}")).unwrap();
    assert_eq!(house.world.tokens().len(), 2);
}

#[test]
fn a_repeated_regeneration_does_not_end_the_overlap_of_the_first() {
    let mut house = House::new();
    let before = house.run(create()).unwrap().token;
    let regenerate = once(
        RegenerateToken {
            token: before.id,
            overlap: TimeDelta::minutes(1),
            life: None,
            by: Rights::admin(),
        },
        "k",
        "{}",
    );
    let after = house.run(regenerate.clone()).unwrap().token;
    let made = Made::Token(before.id);
    let repeat = house.run(regenerate).map(drop);
    assert_eq!(repeat, Err(Refusal::AlreadyDone { made }));
    let now = house.world.token(before.id).unwrap();
    assert!(now.accepts(&before.hash, house.now) && now.accepts(&after.hash, house.now));
}

#[test]
fn a_request_that_was_refused_leaves_its_key_free() {
    let mut house = House::new();
    let unnamed = CreateToken {
        name: String::new(),
        ..create()
    };
    house.run(once(unnamed, "k", "{}")).unwrap_err();
    house.run(once(create(), "k", "{ }")).unwrap();
}
