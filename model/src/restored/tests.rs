//! What a restored backup must not bring back.

use chrono::TimeDelta;

use super::*;
use crate::blob::{BlobPath, LinkUse};
use crate::decide::{
    CreateBlobLink, CreateToken, CreateUser, DeleteUser, EndOfUser, EndToken, Giver, MakeUserLink,
    NewToken, RegenerateToken, RevokeBlobLink, RevokeToken, SetMember, SetPassword, SignIn,
    SignOut, SignOutEverywhere, SignedInBy, UpdateUser, UseUserLink,
};
use crate::testing::{TestWorld, source};
use crate::{
    Change, PasswordHash, PlainToken, Projects, Rights, Scopes, TokenHash, TokenManager, UsedToken,
    actions,
};

fn token(test: &mut TestWorld, name: &str, scope: Scope) -> NewToken {
    let made = test.run(CreateToken {
        name: name.to_owned(),
        scopes: Scopes::from_iter([scope]),
        life: None,
        projects: Projects::All,
        owner: UserId::OWNER,
        by: UserId::OWNER,
        granted_by: Rights::admin(),
        ends_by: None,
    });
    test.now += TimeDelta::seconds(1);
    made.unwrap()
}

fn session(test: &mut TestWorld, of: &NewToken) -> SessionId {
    let signed_in = test.run(SignIn {
        by: SignedInBy::token(UsedToken {
            token: of.token.id,
            secret: of.secret.hash(),
        }),
        is_device: false,
        device: "Firefox".to_owned(),
        address: "192.0.2.1".parse().unwrap(),
    });
    signed_in.unwrap().session.id
}

fn names(endings: &[Ending]) -> Vec<(&str, Option<AuditKind>)> {
    let named = endings.iter();
    named
        .map(|it| (it.name.as_str(), it.because.map(|(kind, _)| kind)))
        .collect()
}

/// The lines of the audit log for a command. The world does not change.
fn later<C: crate::decide::Command>(test: &mut TestWorld, command: C) -> Vec<Later> {
    let before = test.world.clone();
    let (changes, _) = test.changes(command).unwrap();
    let at = test.now;
    let actions = actions(&before, at, &changes).into_iter();
    test.world = before;
    actions.map(|action| Later { at, action }).collect()
}

#[test]
fn only_credentials_that_ended_after_the_backup_end() {
    let mut test = TestWorld::new();
    test.run(InitialToken {
        hash: TokenHash::of("x"),
    })
    .unwrap();
    let by = TokenManager::owner();
    let revoked = token(&mut test, "revoked", Scope::JobRead);
    let renewed = token(&mut test, "renewed", Scope::JobRead);
    let kept = token(&mut test, "kept", Scope::BlobRead);
    let out = session(&mut test, &kept);
    session(&mut test, &kept);
    let with_it = session(&mut test, &revoked);
    let link = blob_link(&mut test, Some(kept.token.id), None);

    let (user, session) = (UserId::OWNER, out);
    let mut log = later(&mut test, SignOut { user, session });
    let session = with_it;
    log.extend(later(&mut test, SignOut { user, session }));
    let renew = RegenerateToken {
        token: renewed.token.id,
        overlap: TimeDelta::zero(),
        life: None,
        by: by.clone(),
        ends_by: None,
    };
    log.extend(later(&mut test, renew.clone()));
    let token = revoked.token.id;
    log.extend(later(
        &mut test,
        RevokeToken {
            token,
            by: by.clone(),
        },
    ));
    log.extend(later(&mut test, RevokeBlobLink { link }));
    // This token was created after the backup.
    let before = test.world.clone();
    let newer = self::token(&mut test, "newer", Scope::JobRead);
    let token = newer.token.id;
    log.extend(later(&mut test, RevokeToken { token, by }));
    test.world = before;
    // The same action twice ends the credential once.
    log.extend(later(&mut test, renew));

    let found = endings(&test.world, &log, false);
    assert_eq!(
        names(&found),
        [
            ("Firefox", Some(AuditKind::SignedOut)),
            ("renewed", Some(AuditKind::TokenRegenerated)),
            ("revoked", Some(AuditKind::TokenRevoked)),
            ("a/b", Some(AuditKind::BlobLinkRevoked)),
        ]
    );
    assert_eq!(endings(&test.world, &[], false), []);
}

fn giver() -> Giver {
    Giver {
        user: UserId::OWNER,
        rights: Rights::admin(),
        token: None,
    }
}

fn set_member(user: UserId, role: Option<Role>) -> SetMember {
    SetMember {
        user,
        project: ProjectId::of_source(&source()),
        role,
        by: giver(),
    }
}

fn update(user: UserId, active: Option<bool>, administrator: Option<bool>) -> UpdateUser {
    UpdateUser {
        user,
        active,
        administrator,
    }
}

fn person(test: &mut TestWorld, name: &str) -> (UserId, PlainToken) {
    let create = CreateUser {
        name: name.parse().unwrap(),
        is_service: false,
        is_administrator: true,
        roles: [(ProjectId::of_source(&source()), Role::Maintainer)].into(),
        by: giver(),
    };
    let made = test.run(create).unwrap();
    (made.user.id, made.secret.unwrap())
}

fn with_link(link: &PlainToken) -> UseUserLink {
    UseUserLink {
        link: link.hash(),
        password: PasswordHash::new("$argon2id$".to_owned()),
    }
}

fn device(test: &mut TestWorld, user: UserId) -> SessionId {
    let signed_in = test.run(SignIn {
        by: SignedInBy::Person {
            user,
            epoch: test.world.user(user).unwrap().epoch,
            signed_in_at: None,
        },
        is_device: true,
        device: "laptop".to_owned(),
        address: "192.0.2.1".parse().unwrap(),
    });
    signed_in.unwrap().session.id
}

/// A person with a password, a reset link and two devices. Each act happens after the backup.
#[test]
fn what_a_user_lost_after_the_backup_does_not_come_back() {
    type Act = fn(&mut TestWorld, UserId, SessionId) -> Vec<Later>;
    let project = || ProjectId::of_source(&source());
    let role = |role| UserPart::Role(project(), role);
    let cases: [(Act, Vec<UserPart>); 12] = [
        (
            |test, user, _| later(test, set_member(user, Some(Role::Viewer))),
            vec![role(Some(Role::Viewer))],
        ),
        (
            |test, user, _| later(test, set_member(user, None)),
            vec![role(None)],
        ),
        (
            |test, user, _| later(test, set_member(user, Some(Role::Maintainer))),
            vec![],
        ),
        (
            |test, user, _| later(test, update(user, None, Some(false))),
            vec![UserPart::Administrator],
        ),
        (
            |test, user, _| later(test, update(user, Some(false), None)),
            vec![UserPart::Account],
        ),
        (
            |test, user, _| {
                let mut log = later(test, update(user, Some(false), None));
                log.extend(later(test, DeleteUser { user }));
                log
            },
            vec![UserPart::Everything],
        ),
        (
            |test, user, _| later(test, MakeUserLink { user, by: None }),
            vec![UserPart::Link],
        ),
        (
            |test, user, _| later(test, SignOutEverywhere { user, with: None }),
            vec![UserPart::Sessions],
        ),
        (
            |test, user, session| {
                let password = PasswordHash::new("$argon2id$new".to_owned());
                let set = SetPassword {
                    user,
                    session,
                    password,
                };
                // The session that is kept signs out later.
                let mut log = later(test, set);
                log.extend(later(test, SignOut { user, session }));
                log
            },
            vec![UserPart::Link, UserPart::Password],
        ),
        (
            |test, user, session| later(test, SignOut { user, session }),
            vec![],
        ),
        // An account that is activated again must not have what was lost before.
        (
            |test, user, _| {
                let mut log = later(test, set_member(user, None));
                log.extend(later(test, update(user, None, Some(false))));
                log.extend(later(test, update(user, Some(false), None)));
                log
            },
            vec![role(None), UserPart::Administrator, UserPart::Account],
        ),
        (
            |test, user, session| {
                let password = PasswordHash::new("$argon2id$new".to_owned());
                let set = SetPassword {
                    user,
                    session,
                    password,
                };
                let mut log = later(test, set);
                log.extend(later(test, update(user, Some(false), None)));
                log
            },
            vec![UserPart::Password, UserPart::Account],
        ),
    ];
    for (act, parts) in cases {
        let mut test = TestWorld::new();
        let (user, link) = person(&mut test, "ann");
        test.run(with_link(&link)).unwrap();
        let other = person(&mut test, "kim").1;
        test.run(with_link(&other)).unwrap();
        let (kept, session) = (device(&mut test, user), device(&mut test, user));
        test.run(MakeUserLink { user, by: None }).unwrap();
        let log = act(&mut test, user, session);
        let found = endings(&test.world, &log, false);
        let of_user = found.iter().filter_map(|ending| match ending.credential {
            Credential::OfUser(of, part) => Some((of, part)),
            _ => None,
        });
        let expected: Vec<_> = parts.iter().map(|part| (user, *part)).collect();
        assert_eq!(of_user.collect::<Vec<_>>(), expected);
        let is_signed_out = log.iter().any(|it| it.action.kind == AuditKind::SignedOut);
        for ending in found {
            match ending.credential {
                Credential::OfUser(user, part) => {
                    let end = EndOfUser { user, part };
                    while test.run(end.clone()).unwrap().is_unfinished {}
                }
                Credential::Session(user, session) => {
                    test.run(SignOut { user, session }).unwrap();
                }
                Credential::Token(_) | Credential::Link(_) => panic!("{ending:?}"),
            }
        }
        let after = test.world.user(user).unwrap();
        let has = |part| parts.contains(&part);
        let is_gone = has(UserPart::Everything);
        assert_eq!(after.is_deleted(), is_gone);
        assert_eq!(after.is_active(), !has(UserPart::Account) && !is_gone);
        assert_eq!(
            after.password().is_some(),
            !has(UserPart::Password) && !is_gone
        );
        assert_eq!(
            after.link.is_some(),
            !has(UserPart::Link) && !has(UserPart::Account) && !is_gone
        );
        assert_eq!(
            after.is_administrator,
            !has(UserPart::Administrator) && !is_gone
        );
        let expected = match (has(role(None)) || is_gone, has(role(Some(Role::Viewer)))) {
            (true, _) => None,
            (_, true) => Some(Role::Viewer),
            _ => Some(Role::Maintainer),
        };
        assert_eq!(after.roles.get(project()), expected);
        let signed_in = test.world.signed_in(user, test.steady());
        let signed_in: Vec<_> = signed_in.iter().map(|it| it.id).collect();
        let all = [
            UserPart::Everything,
            UserPart::Account,
            UserPart::Password,
            UserPart::Sessions,
        ];
        match (all.iter().any(|part| has(*part)), is_signed_out) {
            (true, _) => assert_eq!(signed_in, []),
            (false, true) => assert_eq!(signed_in, [kept]),
            (false, false) => assert_eq!(signed_in.len(), 2),
        }
    }
}

#[test]
fn what_a_deactivated_user_loses_does_not_come_back() {
    let mut test = TestWorld::new();
    let (user, _) = person(&mut test, "ann");
    let backup = test.world.clone();
    let off = update(user, Some(false), None);
    let mut log = later(&mut test, off.clone());
    while test.run(off.clone()).unwrap().is_unfinished {}
    log.extend(later(&mut test, set_member(user, None)));
    log.extend(later(&mut test, update(user, None, Some(false))));
    let found = endings(&backup, &log, false);
    let found: Vec<_> = found.iter().map(|ending| ending.credential).collect();
    let project = ProjectId::of_source(&source());
    let parts = [
        UserPart::Account,
        UserPart::Role(project, None),
        UserPart::Administrator,
    ];
    assert_eq!(found, parts.map(|part| Credential::OfUser(user, part)));
}

/// A link to a blob.
fn blob_link(test: &mut TestWorld, token: Option<TokenId>, user: Option<UserId>) -> BlobLinkId {
    let link = test.run(CreateBlobLink {
        project: ProjectId::of_source(&source()),
        path: "a/b".parse::<BlobPath>().unwrap(),
        use_for: LinkUse::Get,
        life: TimeDelta::days(1),
        token,
        user,
    });
    link.unwrap().link.id
}

#[test]
fn what_sessions_made_does_not_come_back_with_a_sign_out_everywhere() {
    let mut test = TestWorld::new();
    let user = UserId::OWNER;
    let link = blob_link(&mut test, None, Some(user));
    let (kim, _) = person(&mut test, "kim");
    let log = later(&mut test, SignOutEverywhere { user, with: None });
    let kinds: Vec<_> = log.iter().map(|it| it.action.kind).collect();
    let (out, revoked) = (AuditKind::SignedOutEverywhere, AuditKind::BlobLinkRevoked);
    assert_eq!(kinds, [out, revoked, AuditKind::UserLinkEnded]);
    let found = endings(&test.world, &log, false);
    let found: Vec<_> = found.iter().map(|it| it.credential).collect();
    let sessions = Credential::OfUser(user, UserPart::Sessions);
    let invitation = Credential::OfUser(kim, UserPart::Link);
    assert_eq!(found, [sessions, invitation]);
    let part = UserPart::Sessions;
    test.run(EndOfUser { user, part }).unwrap();
    assert!(test.world.blob_link(link).is_none());
}

#[test]
fn all_links_to_blobs_end_with_all_tokens() {
    let mut test = TestWorld::new();
    test.run(InitialToken {
        hash: TokenHash::of("x"),
    })
    .unwrap();
    let first = sorted(&test.world)[0].id;
    let other = token(&mut test, "ci", Scope::BlobRead).token.id;
    let user = Some(UserId::OWNER);
    let of_first = blob_link(&mut test, Some(first), user);
    let of_session = blob_link(&mut test, None, user);
    let of_job = blob_link(&mut test, None, None);
    // This one ends with its token.
    blob_link(&mut test, Some(other), user);
    let found = endings(&test.world, &[], true);
    let found: std::collections::BTreeSet<_> = found
        .iter()
        .map(|ending| format!("{:?}", ending.credential))
        .collect();
    let links = [of_first, of_session, of_job].map(Credential::Link);
    let expected = links.into_iter().chain([Credential::Token(other)]);
    assert_eq!(found, expected.map(|it| format!("{it:?}")).collect());
}

#[test]
fn an_accepted_invitation_does_not_come_back() {
    let mut test = TestWorld::new();
    let (ann, link) = person(&mut test, "ann");
    let log = later(&mut test, with_link(&link));
    let found = endings(&test.world, &log, false);
    let link = Credential::OfUser(ann, UserPart::Link);
    assert_eq!(
        found.iter().map(|it| it.credential).collect::<Vec<_>>(),
        [link]
    );
}

#[test]
fn all_sessions_invitations_and_resets_end_with_all_tokens() {
    let mut test = TestWorld::new();
    let (ann, link) = person(&mut test, "ann");
    test.run(with_link(&link)).unwrap();
    test.run(MakeUserLink {
        user: ann,
        by: None,
    })
    .unwrap();
    let (kim, _) = person(&mut test, "kim");
    let session = device(&mut test, ann);
    let found = endings(&test.world, &[], true);
    let found: Vec<_> = found.iter().map(|ending| ending.credential).collect();
    let link = |user| Credential::OfUser(user, UserPart::Link);
    assert_eq!(
        found,
        [Credential::Session(ann, session), link(ann), link(kim)]
    );
}

#[test]
fn all_tokens_end_except_the_first_even_if_another_has_its_name() {
    let mut test = TestWorld::new();
    test.run(InitialToken {
        hash: TokenHash::of("x"),
    })
    .unwrap();
    test.now += TimeDelta::seconds(1);
    let twin = token(&mut test, InitialToken::NAME, Scope::Admin);
    let other = token(&mut test, "ci", Scope::JobRead);
    session(&mut test, &other);
    let found = endings(&test.world, &[], true);
    let of = |made: &NewToken| Credential::Token(made.token.id);
    let ended: Vec<_> = found.iter().map(|ending| ending.credential).collect();
    assert_eq!(ended, [of(&twin), of(&other)]);

    // The last admin token may be removed too. Then another first token can be created.
    let again = InitialToken {
        hash: TokenHash::of("y"),
    };
    for token in sorted(&test.world.clone()) {
        if token.scopes.allow(Scope::Admin) {
            let made = test.changes(again.clone()).unwrap().0;
            assert!(made.is_empty());
            test.run(EndToken { token: token.id }).unwrap();
        }
    }
    assert!(test.world.token(other.token.id).is_some());
    let made = test.changes(again).unwrap().0;
    assert!(matches!(&made[..], [Change::Token(_)]));
}
