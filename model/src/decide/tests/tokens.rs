//! Personal access tokens: no token is stronger than the token that created it.

use std::sync::Arc;

use chrono::TimeDelta;

use crate::decide::{
    CreateToken, InitialToken, NewToken, Refusal, RegenerateToken, RevokeToken, SignIn, SignedInBy,
};
use crate::limits::{SESSION_LIFE, SESSIONS, TOKENS, TOKENS_OF_USER};
use crate::testing::TestWorld;
use crate::{
    Change, Projects, Rights, Scope, Scopes, Token, TokenHash, TokenId, TokenManager, UsedToken,
    User, UserId, UserKind,
};

fn create(scopes: &[Scope]) -> CreateToken {
    CreateToken {
        name: "ci".to_owned(),
        scopes: scopes.iter().copied().collect(),
        life: Some(TimeDelta::days(1)),
        projects: Projects::All,
        owner: UserId::OWNER,
        by: UserId::OWNER,
        granted_by: Rights::admin(),
        ends_by: None,
    }
}

#[test]
fn a_token_is_found_by_its_hash_and_valid_until_it_expires() {
    let mut test = TestWorld::new();
    let made = test.run(create(&[Scope::JobRead])).unwrap();
    let found = test.world.token_of(&made.secret.hash()).unwrap();
    assert_eq!(found, &made.token);
    assert!(found.is_valid(test.now + TimeDelta::days(1) - TimeDelta::seconds(1)));
    assert!(!found.is_valid(test.now + TimeDelta::days(1)));

    let record = serde_json::to_string(&*made.token).unwrap();
    assert!(!record.contains(made.secret.reveal()));
}

#[test]
fn a_token_cannot_create_a_stronger_token() {
    let mut test = TestWorld::new();
    let by = |scopes: &[Scope]| CreateToken {
        granted_by: Rights::limited(
            [Scope::TokenWrite, Scope::JobRead].into_iter().collect(),
            Projects::All,
        ),
        ..create(scopes)
    };
    assert!(test.run(by(&[Scope::JobRead])).is_ok());
    for stronger in [
        &[Scope::Admin][..],
        &[Scope::JobRead, Scope::JobWrite],
        &[Scope::Dispatch],
    ] {
        let refusal = test.run(by(stronger)).map(drop);
        assert_eq!(refusal, Err(Refusal::TooStrong));
    }
}

#[test]
fn a_token_expires_no_later_than_its_maker() {
    let mut test = TestWorld::new();
    let maker = test.steady() + TimeDelta::days(2);
    let ends_by = Some(maker);
    for (life, end) in [
        (Some(TimeDelta::days(1)), maker - TimeDelta::days(1)),
        (Some(TimeDelta::days(90)), maker),
        (None, maker),
    ] {
        let made = test.run(CreateToken {
            life,
            ends_by,
            ..create(&[Scope::JobRead])
        });
        assert_eq!(made.unwrap().token.expires_at, Some(end));
    }

    // A new secret does not make it end later either. An end that is later already stays.
    let mut renewed = |present: i64, life: Option<i64>| {
        let made = test.run(CreateToken {
            life: Some(TimeDelta::days(present)),
            ..create(&[Scope::JobRead])
        });
        let renewed = test.run(RegenerateToken {
            token: made.unwrap().token.id,
            overlap: TimeDelta::zero(),
            life: life.map(TimeDelta::days),
            by: TokenManager::owner(),
            ends_by,
        });
        let end = renewed.unwrap().token.expires_at.unwrap();
        (end - test.steady()).num_days()
    };
    let ends = [
        (1, Some(90)),
        (1, None),
        (5, None),
        (5, Some(90)),
        (5, Some(1)),
    ];
    let ends = ends.map(|(present, life)| renewed(present, life));
    assert_eq!(ends, [2, 1, 5, 5, 1]);
}

#[test]
fn names_scopes_and_lifetimes_have_limits() {
    let mut test = TestWorld::new();
    let mut field = |command: CreateToken| match test.run(command) {
        Err(Refusal::InvalidField { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    let unnamed = CreateToken {
        name: " ".to_owned(),
        ..create(&[Scope::Admin])
    };
    assert_eq!(field(unnamed), "name");
    assert_eq!(field(create(&[])), "scopes");
    for life in [TimeDelta::zero(), TimeDelta::seconds(-1), TimeDelta::MAX] {
        let command = CreateToken {
            life: Some(life),
            ..create(&[Scope::Admin])
        };
        assert_eq!(field(command), "expires_in_seconds", "{life:?}");
    }
}

#[test]
fn the_first_token_is_created_once_from_the_hash_of_its_secret() {
    let mut test = TestWorld::new();
    let hash = TokenHash::of("first");
    let (changes, ()) = test.changes(InitialToken { hash }).unwrap();
    let [Change::Token(token)] = changes.as_slice() else {
        panic!("{changes:?}");
    };
    assert_eq!(token.hash, hash);
    assert_eq!(token.scopes, Scopes::admin());
    assert!(token.is_valid(test.now + TimeDelta::days(36_500)));

    let hash = TokenHash::of("second");
    let (changes, ()) = test.changes(InitialToken { hash }).unwrap();
    assert!(changes.is_empty());
}

#[test]
fn the_number_of_tokens_is_bounded() {
    let mut test = TestWorld::new();
    let first = test.run(create(&[Scope::JobRead])).unwrap().token;
    for number in 2..TOKENS {
        let token = Token {
            id: TokenId::random(&mut test.entropy),
            hash: TokenHash::of(&number.to_string()),
            owner: UserId::random(&mut test.entropy),
            ..Token::clone(&first)
        };
        test.world.apply(&Change::Token(Arc::new(token)));
    }
    test.run(create(&[Scope::JobRead])).unwrap();
    let refusal = test.run(create(&[Scope::JobRead])).unwrap_err();
    assert_eq!(refusal, Refusal::TooManyTokens { tokens: TOKENS });
}

#[test]
fn a_user_has_a_bounded_number_of_tokens_and_no_service_uses_it_up() {
    let mut test = TestWorld::new();
    for _ in 0..TOKENS_OF_USER {
        test.run(create(&[Scope::JobRead])).unwrap();
    }
    let refusal = test.run(create(&[Scope::JobRead])).unwrap_err();
    let tokens = TOKENS_OF_USER;
    assert_eq!(refusal, Refusal::TooManyTokens { tokens });
    let other = User {
        id: UserId::random(&mut test.entropy),
        name: "deploy".parse().unwrap(),
        ..User::owner(test.now)
    };
    let owner = other.id;
    test.world.apply(&Change::User(Arc::new(other)));
    let of_other = CreateToken {
        owner,
        by: owner,
        ..create(&[Scope::JobRead])
    };
    test.run(of_other).unwrap();
}

#[test]
fn administrators_make_tokens_of_services_and_of_nobody_else() {
    let mut test = TestWorld::new();
    let mut user = |name: &str, kind| {
        let other = User {
            id: UserId::random(&mut test.entropy),
            name: name.parse().unwrap(),
            kind,
            ..User::owner(test.now)
        };
        test.world.apply(&Change::User(Arc::new(other.clone())));
        other.id
    };
    let person = user("kim", UserKind::Person { password: None });
    let service = user("deploy", UserKind::Service);
    let limited = Rights::limited(Scopes::from_iter([Scope::JobRead]), Projects::All);
    for (owner, by, granted_by, is_made) in [
        (service, UserId::OWNER, Rights::admin(), true),
        (service, service, limited.clone(), true),
        (person, UserId::OWNER, Rights::admin(), false),
        (service, person, limited, false),
    ] {
        let made = test.run(CreateToken {
            owner,
            by,
            granted_by,
            ..create(&[Scope::JobRead])
        });
        let expected = if is_made {
            Ok(())
        } else {
            Err(Refusal::NotForOthers)
        };
        assert_eq!(made.map(drop), expected);
    }
}

#[test]
fn a_session_that_another_one_made_ends_no_later_and_is_not_younger() {
    let mut test = TestWorld::new();
    let create = CreateToken {
        life: None,
        ..create(&[Scope::JobRead])
    };
    let made = test.run(create).unwrap();
    let used = UsedToken {
        token: made.token.id,
        secret: made.secret.hash(),
    };
    let person = SignedInBy::Person {
        user: UserId::OWNER,
        epoch: 0,
        signed_in_at: None,
    };
    for by in [person, SignedInBy::token(used)] {
        let sign_in = |test: &mut TestWorld, by| {
            let signed_in = test.run(SignIn {
                by,
                is_device: true,
                device: "laptop".to_owned(),
                address: "192.0.2.1".parse().unwrap(),
            });
            signed_in.unwrap().session
        };
        let mut last = sign_in(&mut test, by);
        let end = test.steady() + SESSION_LIFE;
        // Each makes the next one shortly before it would end.
        for _ in 0..4 {
            test.pass(TimeDelta::days(6));
            last = sign_in(&mut test, SignedInBy::of_session(&last));
            assert!(!last.is_recent(test.steady()));
        }
        test.pass(TimeDelta::days(5));
        last = sign_in(&mut test, SignedInBy::of_session(&last));
        assert_eq!(last.expires_at(), end);
    }
}

#[test]
fn sessions_are_bounded_and_end_with_their_token() {
    let mut test = TestWorld::new();
    let made = test.run(create(&[Scope::JobRead])).unwrap();
    let other = test.run(create(&[Scope::JobRead])).unwrap();
    let sign_in = |test: &mut TestWorld, of: &NewToken| {
        test.pass(TimeDelta::seconds(1));
        let signed_in = test.run(SignIn {
            by: SignedInBy::token(UsedToken {
                token: of.token.id,
                secret: of.secret.hash(),
            }),
            is_device: false,
            device: "a browser".to_owned(),
            address: "192.0.2.1".parse().unwrap(),
        });
        signed_in.unwrap().session
    };
    let of_other = sign_in(&mut test, &other);
    let all: Vec<_> = (0..=SESSIONS).map(|_| sign_in(&mut test, &made)).collect();
    let now = test.steady();
    let valid = test.world.signed_in(UserId::OWNER, now);
    assert!(
        valid
            .into_iter()
            .eq([&of_other].into_iter().chain(&all[1..])),
        "the oldest session of the token was removed, and none of the other"
    );

    let regenerate = RegenerateToken {
        token: made.token.id,
        overlap: TimeDelta::zero(),
        life: None,
        by: TokenManager::owner(),
        ends_by: None,
    };
    test.run(regenerate).unwrap();
    let valid = test.world.signed_in(UserId::OWNER, now);
    assert!(valid.into_iter().eq([&of_other]));
    let revoke = RevokeToken {
        token: made.token.id,
        by: TokenManager::owner(),
    };
    test.run(revoke).unwrap();
    // The next sign-in removes the records of the ended sessions.
    let last = sign_in(&mut test, &other);
    let left: Vec<_> = test.world.sessions().map(|it| it.id).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.contains(&of_other.id) && left.contains(&last.id));
}
