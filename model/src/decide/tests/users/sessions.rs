//! Passwords and sessions, and what ends with them.

use super::*;

#[test]
fn a_new_password_ends_all_sessions_and_needs_a_recent_sign_in() {
    let mut test = TestWorld::new();
    let kim = person(&mut test, "kim", &[]);
    let session = sign_in(&mut test, kim).unwrap().session.id;
    sign_in(&mut test, kim).unwrap();
    let before = user(&test, kim).epoch;
    let set = |session| SetPassword {
        user: kim,
        session,
        password: PasswordHash::new("$argon2id$new".to_owned()),
    };
    test.run(set(session)).unwrap();
    assert!(test.world.signed_in(kim, test.steady()).is_empty());
    // A sign-in that was checked against the former password comes too late.
    assert_eq!(
        sign_in_at(&mut test, kim, before).map(drop),
        Err(Refusal::NoSuchUser)
    );
    let session = sign_in(&mut test, kim).unwrap().session.id;
    test.pass(RECENT_SIGN_IN);
    assert_eq!(test.run(set(session)).map(drop), Err(Refusal::SignInAgain));
    // A link resets it, and signs out everywhere.
    let make = MakeUserLink {
        user: kim,
        by: Some(admin()),
    };
    let link = test.run(make).unwrap().secret.unwrap();
    test.pass(PASSWORD_RESET - TimeDelta::seconds(1));
    accept(&mut test, &link).unwrap();
    assert!(test.world.signed_in(kim, test.steady()).is_empty());
    assert_eq!(
        test.run(set(session)).map(drop),
        Err(Refusal::NoSuchSession)
    );
}

#[test]
fn a_token_sets_only_the_first_password_of_its_owner() {
    let mut test = TestWorld::new();
    let with_token = with_token(&mut test);
    let make = || MakeUserLink {
        user: UserId::OWNER,
        by: Some(with_token.clone()),
    };
    let link = test.run(make()).unwrap().secret.unwrap();
    accept(&mut test, &link).unwrap();
    assert_eq!(test.run(make()).map(drop), Err(Refusal::OwnPassword));
    // Somebody who may change the state folder always finds a way back.
    let local = MakeUserLink {
        user: UserId::OWNER,
        by: None,
    };
    let link = test.run(local).unwrap().secret.unwrap();
    accept(&mut test, &link).unwrap();
}

#[test]
fn a_sign_out_everywhere_ends_sessions_but_not_tokens() {
    let mut test = TestWorld::new();
    let kim = person(&mut test, "kim", &[(project(), Role::Operator)]);
    let secret = token(&mut test, kim).unwrap();
    for _ in 0..30 {
        sign_in(&mut test, kim).unwrap();
    }
    let out = SignOutEverywhere {
        user: kim,
        with: None,
    };
    test.run(out).unwrap();
    assert!(test.world.signed_in(kim, test.steady()).is_empty());
    assert!(
        rights_of(&test, secret)
            .unwrap()
            .may(Scope::Dispatch, project())
    );
}

#[test]
fn what_was_made_in_sessions_ends_with_all_of_them() {
    type End = fn(&mut TestWorld, UserId);
    let ends: [End; 3] = [
        |test, user| test.run(SignOutEverywhere { user, with: None }).unwrap(),
        |test, user| {
            let session = sign_in(test, user).unwrap().session.id;
            let password = PasswordHash::new("$argon2id$new".to_owned());
            let set = SetPassword {
                user,
                session,
                password,
            };
            test.run(set).unwrap();
        },
        |test, user| {
            let made = test.run(MakeUserLink { user, by: None }).unwrap();
            accept(test, &made.secret.unwrap()).unwrap();
        },
    ];
    let cases = ends.into_iter().flat_map(|end| [(end, 1), (end, 8)]);
    for (end, count) in cases {
        let mut test = TestWorld::new();
        let [mia, oda] =
            ["mia", "oda"].map(|name| person(&mut test, name, &[(project(), Role::Maintainer)]));
        let token = with_token(&mut test).token;
        let many: Vec<Made> = (0..count)
            .map(|n| Made::by(&mut test, mia, None, &format!("kim{n}")))
            .collect();
        let of_other = Made::by(&mut test, oda, None, "lee");
        let of_token = Made::by(&mut test, UserId::OWNER, token, "max");
        end(&mut test, UserId::OWNER);
        end(&mut test, mia);
        assert_eq!(of_other.left(&test), [true; 4]);
        assert_eq!(of_token.left(&test), [true; 4]);
        if count == 1 {
            assert_eq!(many[0].left(&test), [false; 4]);
        }
        // What does not fit into the commit is of no use.
        let now = test.steady();
        for made in &many {
            for link in [made.get, made.put] {
                let link = test.world.blob_link(link);
                let link = link.and_then(|link| Principal::of_link(&test.world, link));
                assert_eq!(link.and_then(|link| link.rights(&test.world, now)), None);
            }
            let invited = user(&test, made.invitation);
            let link = invited.link.as_ref();
            assert!(link.is_none_or(|link| !test.world.is_open(&invited, link, now)));
            let register = register(made.secret.hash(), "late");
            assert_eq!(test.run(register).map(drop), Err(Refusal::BadRegistration));
        }
        test.run(register(of_other.secret.hash(), "of other"))
            .unwrap();
        test.run(register(of_token.secret.hash(), "of token"))
            .unwrap();
    }
}

fn register(registration: TokenHash, name: &str) -> RegisterRunner {
    RegisterRunner {
        registration,
        name: name.to_owned(),
        labels: Vec::new(),
        exclusive: false,
        capacity: 1,
        version: "0.1.0".to_owned(),
        replace: false,
    }
}

#[test]
fn a_first_token_always_has_an_administrator() {
    for part in [
        UserPart::Administrator,
        UserPart::Account,
        UserPart::Everything,
    ] {
        let mut test = TestWorld::new();
        let user = UserId::OWNER;
        test.run(EndOfUser { user, part }).unwrap();
        let hash = TokenHash::of("first");
        test.run(InitialToken { hash }).unwrap();
        assert!(rights_of(&test, hash).unwrap().is_administrator());
        // It can set a password, as after the first start.
        let by = Some(Giver {
            token: test.world.token_of(&hash).map(|token| token.id),
            ..admin()
        });
        let made = test.run(MakeUserLink { user, by }).unwrap();
        accept(&mut test, &made.secret.unwrap()).unwrap();
        assert!(self::user(&test, user).can_administrate());
    }
}
