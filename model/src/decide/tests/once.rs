//! Commands that create a secret run once per key.

use chrono::TimeDelta;

use crate::decide::{CreateRegistration, CreateToken, Once, Refusal, RegenerateToken};
use crate::limits::IDEMPOTENCY;
use crate::testing::TestWorld;
use crate::{IdempotencyKey, Made, Projects, Rights, Scopes, TokenId, TokenManager, UserId};

fn once<C>(command: C, key: &str, body: &str) -> Once<C> {
    let caller = TokenId::from_uuid(uuid::Uuid::nil());
    Once {
        command,
        key: Some(IdempotencyKey::new(
            caller.uuid(),
            "make",
            key,
            body.as_bytes(),
        )),
    }
}

fn create() -> CreateToken {
    CreateToken {
        name: "ci".to_owned(),
        scopes: Scopes::admin(),
        life: None,
        projects: Projects::All,
        owner: UserId::OWNER,
        by: UserId::OWNER,
        granted_by: Rights::admin(),
        ends_by: None,
    }
}

#[test]
fn a_repeat_is_refused_with_the_result_of_the_first_request() {
    let mut test = TestWorld::new();
    let token = test.run(once(create(), "k", "{}")).unwrap().token;
    let made = Made::Token(token.id);
    let repeat = test.run(once(create(), "k", "{}")).map(drop);
    assert_eq!(repeat, Err(Refusal::AlreadyDone { made }));
    let other = test.run(once(create(), "k", "{ }")).map(drop);
    assert_eq!(other, Err(Refusal::IdempotencyMismatch));
    assert_eq!(test.world.tokens().len(), 1);

    let registration = test
        .run(once(CreateRegistration::default(), "r", ""))
        .unwrap();
    let made = Made::Registration(registration.id);
    let repeat = test
        .run(once(CreateRegistration::default(), "r", ""))
        .map(drop);
    assert_eq!(repeat, Err(Refusal::AlreadyDone { made }));

    test.pass(IDEMPOTENCY - TimeDelta::seconds(1));
    test.run(once(create(), "k", "{}")).unwrap_err();
    test.pass(TimeDelta::seconds(1));
    test.run(once(create(), "k", "{}")).unwrap();
    assert_eq!(test.world.tokens().len(), 2);
}

#[test]
fn a_repeated_regeneration_does_not_end_the_overlap_of_the_first() {
    let mut test = TestWorld::new();
    let before = test.run(create()).unwrap().token;
    let regenerate = once(
        RegenerateToken {
            token: before.id,
            overlap: TimeDelta::minutes(1),
            life: None,
            by: TokenManager::owner(),
            ends_by: None,
        },
        "k",
        "{}",
    );
    let after = test.run(regenerate.clone()).unwrap().token;
    let made = Made::Token(before.id);
    let repeat = test.run(regenerate).map(drop);
    assert_eq!(repeat, Err(Refusal::AlreadyDone { made }));
    let now = test.world.token(before.id).unwrap();
    assert!(now.accepts(&before.hash, test.now) && now.accepts(&after.hash, test.now));
}

#[test]
fn a_refused_request_leaves_its_key_free() {
    let mut test = TestWorld::new();
    let unnamed = CreateToken {
        name: String::new(),
        ..create()
    };
    test.run(once(unnamed, "k", "{}")).unwrap_err();
    test.run(once(create(), "k", "{ }")).unwrap();
}
