//! Invitations: how long they are open, with what they end, and how many there may be.

use super::*;

#[test]
fn an_invitation_is_used_once_and_within_three_days() {
    let mut test = TestWorld::new();
    let made = invite(&mut test, "kim", &[(project(), Role::Viewer)], admin()).unwrap();
    let (kim, link) = (made.user.id, made.secret.unwrap());
    assert!(
        !serde_json::to_string(&user(&test, kim))
            .unwrap()
            .contains(link.reveal())
    );
    assert_eq!(sign_in(&mut test, kim).map(drop), Err(Refusal::NoSuchUser));
    assert_eq!(accept(&mut test, &link), Ok(kim));
    assert!(user(&test, kim).is_active());
    assert_eq!(accept(&mut test, &link), Err(Refusal::NoSuchUserLink));
    sign_in(&mut test, kim).unwrap();

    let late = invite(&mut test, "lee", &[(project(), Role::Viewer)], admin()).unwrap();
    test.pass(INVITATION);
    assert_eq!(
        accept(&mut test, &late.secret.unwrap()),
        Err(Refusal::NoSuchUserLink)
    );
    // A new link takes the place of an open one.
    let make = || MakeUserLink {
        user: late.user.id,
        by: Some(admin()),
    };
    let first = test.run(make()).unwrap().secret.unwrap();
    let second = test.run(make()).unwrap().secret.unwrap();
    assert_eq!(accept(&mut test, &first), Err(Refusal::NoSuchUserLink));
    assert_eq!(accept(&mut test, &second), Ok(late.user.id));
    // The name is never given again, not even with a deleted user.
    test.run(DeleteUser { user: kim }).unwrap();
    let again = invite(&mut test, "kim", &[], admin()).map(drop);
    assert!(matches!(again, Err(Refusal::UserExists { .. })));
}

#[test]
fn an_invitation_ends_with_the_right_of_its_maker() {
    type Fall = fn(&mut TestWorld, UserId);
    let falls: [Fall; 4] = [
        |test, mia| update(test, mia, Some(false), None).unwrap(),
        |test, mia| drop(test.run(DeleteUser { user: mia }).unwrap()),
        |test, mia| {
            let set = SetMember {
                user: mia,
                project: project(),
                role: Some(Role::Operator),
                by: admin(),
            };
            test.run(set).unwrap();
        },
        |test, mia| {
            let set = SetMember {
                user: mia,
                project: project(),
                role: None,
                by: admin(),
            };
            test.run(set).unwrap();
        },
    ];
    for fall in falls {
        let mut test = TestWorld::new();
        let mia = person(&mut test, "mia", &[(project(), Role::Maintainer)]);
        let maker = by(&test, mia);
        let made = invite(&mut test, "kim", &[(project(), Role::Maintainer)], maker).unwrap();
        let link = made.secret.unwrap();
        assert!(
            test.world
                .user_of_link(&link.hash(), test.steady())
                .is_some()
        );
        fall(&mut test, mia);
        assert_eq!(accept(&mut test, &link), Err(Refusal::NoSuchUserLink));
        // A fallen maker who rises again does not bring it back.
        let is_deleted = user(&test, mia).is_deleted();
        if !is_deleted {
            update(&mut test, mia, Some(true), None).unwrap();
            set_role(&mut test, mia, Some(Role::Maintainer));
        }
        assert_eq!(accept(&mut test, &link), Err(Refusal::NoSuchUserLink));
    }
}

#[test]
fn an_invitation_ends_with_the_token_and_with_all_sessions_of_its_maker() {
    let mut test = TestWorld::new();
    let (giver, _) = (with_token(&mut test), with_token(&mut test));
    let token = giver.token.unwrap();
    let made = invite(&mut test, "kim", &[], giver).unwrap();
    let revoke = RevokeToken {
        token,
        by: TokenManager::owner(),
    };
    test.run(revoke).unwrap();
    let link = made.secret.unwrap();
    assert_eq!(accept(&mut test, &link), Err(Refusal::NoSuchUserLink));

    let mia = person(&mut test, "mia", &[(project(), Role::Maintainer)]);
    let giver = by(&test, mia);
    let lee = invite(&mut test, "lee", &[(project(), Role::Viewer)], giver).unwrap();
    let of_other = invite(&mut test, "max", &[(project(), Role::Viewer)], admin()).unwrap();
    let (user, with) = (mia, None);
    test.run(SignOutEverywhere { user, with }).unwrap();
    let (lee, other) = (lee.secret.unwrap(), of_other.secret.unwrap());
    assert_eq!(accept(&mut test, &lee), Err(Refusal::NoSuchUserLink));
    accept(&mut test, &other).unwrap();
}

#[test]
fn the_open_invitations_of_a_person_are_bounded() {
    let mut test = TestWorld::new();
    let mia = person(&mut test, "mia", &[(project(), Role::Maintainer)]);
    let giver = by(&test, mia);
    let mut invite_as = |name: usize, by: &Giver| {
        let name = format!("kim{name}");
        let made = invite(&mut test, &name, &[(project(), Role::Viewer)], by.clone());
        made.map(|made| made.user.id)
    };
    let first = invite_as(0, &giver).unwrap();
    for n in 1..INVITATIONS_OF_USER {
        invite_as(n, &giver).unwrap();
    }
    let invitations = INVITATIONS_OF_USER;
    let refused = Err(Refusal::TooManyInvitations { invitations });
    assert_eq!(invite_as(invitations, &giver), refused);
    let of_other = invite_as(invitations, &admin()).unwrap();
    // A new invitation instead of one of the own is no further one.
    let again = |user| MakeUserLink {
        user,
        by: Some(giver.clone()),
    };
    test.run(again(first)).unwrap();
    assert_eq!(test.run(again(of_other)).map(|made| made.user.id), refused);
    test.pass(INVITATION);
    test.run(again(of_other)).unwrap();
}
