//! Personal access tokens: none is stronger than the one it was made with.

use std::sync::Arc;

use chrono::TimeDelta;

use crate::decide::{
    CreateToken, InitialToken, NewToken, Refusal, RegenerateToken, RevokeToken, SignIn,
};
use crate::limits::{SESSIONS, TOKENS};
use crate::testing::House;
use crate::{Change, Projects, Rights, Scope, Scopes, Token, TokenHash, TokenId};

fn create(scopes: &[Scope]) -> CreateToken {
    CreateToken {
        name: "ci".to_owned(),
        scopes: scopes.iter().copied().collect(),
        life: Some(TimeDelta::days(1)),
        projects: Projects::All,
        granted_by: Rights::admin(),
    }
}

#[test]
fn a_token_is_found_by_its_hash_until_it_ends() {
    let mut house = House::new();
    let made = house.run(create(&[Scope::JobRead])).unwrap();
    let found = house.world.token_of(&made.secret.hash()).unwrap();
    assert_eq!(found, &made.token);
    assert!(found.is_valid(house.now + TimeDelta::days(1) - TimeDelta::seconds(1)));
    assert!(!found.is_valid(house.now + TimeDelta::days(1)));

    let record = serde_json::to_string(&*made.token).unwrap();
    assert!(!record.contains(made.secret.reveal()));
}

#[test]
fn no_token_makes_a_stronger_one() {
    let mut house = House::new();
    let by = |scopes: &[Scope]| CreateToken {
        granted_by: Rights {
            scopes: [Scope::TokenWrite, Scope::JobRead].into_iter().collect(),
            projects: Projects::All,
        },
        ..create(scopes)
    };
    assert!(house.run(by(&[Scope::JobRead])).is_ok());
    for stronger in [
        &[Scope::Admin][..],
        &[Scope::JobRead, Scope::JobWrite],
        &[Scope::Dispatch],
    ] {
        let refusal = house.run(by(stronger)).map(drop);
        assert_eq!(refusal, Err(Refusal::TooStrong));
    }
}

#[test]
fn names_scopes_and_lives_have_bounds() {
    let mut house = House::new();
    let mut field = |command: CreateToken| match house.run(command) {
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
fn the_first_token_is_made_once_from_the_hash_of_its_secret() {
    let mut house = House::new();
    let hash = TokenHash::of("first");
    let (changes, ()) = house.changes(InitialToken { hash }).unwrap();
    let [Change::Token(token)] = changes.as_slice() else {
        panic!("{changes:?}");
    };
    assert_eq!(token.hash, hash);
    assert_eq!(token.scopes, Scopes::admin());
    assert!(token.is_valid(house.now + TimeDelta::days(36_500)));

    let hash = TokenHash::of("second");
    let (changes, ()) = house.changes(InitialToken { hash }).unwrap();
    assert!(changes.is_empty());
}

#[test]
fn the_number_of_tokens_is_bounded() {
    let mut house = House::new();
    let first = house.run(create(&[Scope::JobRead])).unwrap().token;
    for number in 2..TOKENS {
        let token = Token {
            id: TokenId::random(&mut house.entropy),
            hash: TokenHash::of(&number.to_string()),
            ..Token::clone(&first)
        };
        house.world.apply(&Change::Token(Arc::new(token)));
    }
    house.run(create(&[Scope::JobRead])).unwrap();
    let refusal = house.run(create(&[Scope::JobRead])).unwrap_err();
    assert_eq!(refusal, Refusal::TooManyTokens { tokens: TOKENS });
}

#[test]
fn sessions_are_bounded_and_end_with_their_token() {
    let mut house = House::new();
    let made = house.run(create(&[Scope::JobRead])).unwrap();
    let other = house.run(create(&[Scope::JobRead])).unwrap();
    let sign_in = |house: &mut House, of: &NewToken| {
        house.pass(TimeDelta::seconds(1));
        let signed_in = house.run(SignIn {
            token: of.token.id,
            secret: of.secret.hash(),
            device: "a browser".to_owned(),
            address: "192.0.2.1".parse().unwrap(),
        });
        signed_in.unwrap().session
    };
    let of_other = sign_in(&mut house, &other);
    let all: Vec<_> = (0..=SESSIONS).map(|_| sign_in(&mut house, &made)).collect();
    let now = house.steady();
    let valid = house.world.signed_in(made.token.id, now);
    assert!(valid.into_iter().eq(&all[1..]), "the oldest is gone");

    let regenerate = RegenerateToken {
        token: made.token.id,
        overlap: TimeDelta::zero(),
        life: None,
        by: Rights::admin(),
    };
    house.run(regenerate).unwrap();
    assert!(house.world.signed_in(made.token.id, now).is_empty());
    let revoke = RevokeToken {
        token: made.token.id,
        by: Rights::admin(),
    };
    house.run(revoke).unwrap();
    assert!(house.world.sessions().eq([&of_other]), "no record is left");
}
