//! Users: invitations, passwords, roles, and the end of accounts.

use chrono::TimeDelta;

use crate::blob::LinkUse;
use crate::decide::{
    CreateBlobLink, CreateRegistration, CreateToken, CreateUser, DeleteUser, EndOfUser, Giver,
    InitialToken, MakeUserLink, Maker, NewUser, NoteUse, Refusal, RegisterRunner, RevokeToken,
    SeeSession, SetMember, SetPassword, SignIn, SignOutEverywhere, SignedIn, SignedInBy,
    UpdateUser, UseUserLink,
};
use crate::limits::{INVITATION, INVITATIONS_OF_USER, PASSWORD_RESET, RECENT_SIGN_IN};
use crate::restored::UserPart;
use crate::testing::{TestWorld, source};
use crate::{
    BlobLinkId, Change, PasswordHash, PlainToken, Principal, ProjectId, Projects, RegistrationId,
    Rights, Role, Scope, Scopes, TokenHash, TokenId, TokenManager, User, UserId, UserState,
};

mod invitations;
mod sessions;

fn project() -> ProjectId {
    ProjectId::of_source(&source())
}

fn other_project() -> ProjectId {
    ProjectId::of_source(&"vault".parse().unwrap())
}

fn admin() -> Giver {
    Giver {
        user: UserId::OWNER,
        rights: Rights::admin(),
        token: None,
    }
}

/// A person who acts as the whole person.
fn by(test: &TestWorld, user: UserId) -> Giver {
    Giver {
        user,
        rights: Rights::of(test.world.user(user).unwrap(), None),
        token: None,
    }
}

fn invite(
    test: &mut TestWorld,
    name: &str,
    roles: &[(ProjectId, Role)],
    by: Giver,
) -> Result<NewUser, Refusal> {
    test.run(CreateUser {
        name: name.parse().unwrap(),
        is_service: false,
        is_administrator: false,
        roles: roles.iter().copied().collect(),
        by,
    })
}

fn accept(test: &mut TestWorld, link: &PlainToken) -> Result<UserId, Refusal> {
    let used = test.run(UseUserLink {
        link: link.hash(),
        password: PasswordHash::new("$argon2id$".to_owned()),
    });
    used.map(|user| user.id)
}

/// A person with a password and these roles.
fn person(test: &mut TestWorld, name: &str, roles: &[(ProjectId, Role)]) -> UserId {
    let made = invite(test, name, roles, admin()).unwrap();
    accept(test, &made.secret.unwrap()).unwrap()
}

fn user(test: &TestWorld, id: UserId) -> User {
    User::clone(test.world.user(id).unwrap())
}

fn sign_in(test: &mut TestWorld, id: UserId) -> Result<SignedIn, Refusal> {
    let epoch = user(test, id).epoch;
    sign_in_at(test, id, epoch)
}

fn sign_in_at(test: &mut TestWorld, user: UserId, epoch: u64) -> Result<SignedIn, Refusal> {
    test.run(SignIn {
        by: SignedInBy::Person {
            user,
            epoch,
            signed_in_at: None,
        },
        is_device: false,
        device: "a browser".to_owned(),
        address: "192.0.2.1".parse().unwrap(),
    })
}

fn token(test: &mut TestWorld, owner: UserId) -> Result<TokenHash, Refusal> {
    let made = test.run(CreateToken {
        name: "ci".to_owned(),
        scopes: Scopes::from_iter([Scope::JobRead, Scope::Dispatch]),
        projects: Projects::All,
        owner,
        by: owner,
        life: None,
        granted_by: Rights::admin(),
        ends_by: None,
    });
    made.map(|made| made.secret.hash())
}

fn rights_of(test: &TestWorld, secret: TokenHash) -> Option<Rights> {
    let token = test.world.token_of(&secret)?;
    Principal::of_token(token, secret).rights(&test.world, test.steady())
}

fn update(
    test: &mut TestWorld,
    user: UserId,
    active: Option<bool>,
    administrator: Option<bool>,
) -> Result<(), Refusal> {
    loop {
        let update = UpdateUser {
            user,
            active,
            administrator,
        };
        if !test.run(update)?.is_unfinished {
            return Ok(());
        }
    }
}

/// What a user has made: a link to read a blob, one to store a blob, a registration and an invitation.
struct Made {
    get: BlobLinkId,
    put: BlobLinkId,
    registration: RegistrationId,
    /// Of the registration.
    secret: PlainToken,
    invitation: UserId,
}

impl Made {
    fn by(test: &mut TestWorld, maker: UserId, token: Option<TokenId>, name: &str) -> Self {
        let mut link = |use_for| {
            let create = CreateBlobLink {
                project: project(),
                path: "a/b".parse().unwrap(),
                use_for,
                life: TimeDelta::days(1),
                token,
                user: Some(maker),
            };
            test.run(create).unwrap().link.id
        };
        let (get, put) = (link(LinkUse::Get), link(LinkUse::Put));
        let register = CreateRegistration {
            projects: Some([project()].into()),
            labels: None,
            maker: Some(Maker {
                token,
                user: maker,
                rights: by(test, maker).rights,
            }),
        };
        let giver = Giver {
            token,
            ..by(test, maker)
        };
        let invited = invite(test, name, &[(project(), Role::Viewer)], giver);
        let registered = test.run(register).unwrap();
        Self {
            get,
            put,
            registration: registered.id,
            secret: registered.secret,
            invitation: invited.unwrap().user.id,
        }
    }

    /// Which of them exist, in the same order.
    fn left(&self, test: &TestWorld) -> [bool; 4] {
        let mut registrations = test.world.registrations();
        [
            test.world.blob_link(self.get).is_some(),
            test.world.blob_link(self.put).is_some(),
            registrations.any(|one| one.id == self.registration),
            user(test, self.invitation).link.is_some(),
        ]
    }
}

/// The owner with an admin token.
fn with_token(test: &mut TestWorld) -> Giver {
    let create = CreateToken {
        name: "admin".to_owned(),
        scopes: Scopes::admin(),
        projects: Projects::All,
        owner: UserId::OWNER,
        by: UserId::OWNER,
        life: None,
        granted_by: Rights::admin(),
        ends_by: None,
    };
    let token = Some(test.run(create).unwrap().token.id);
    Giver { token, ..admin() }
}

fn set_role(test: &mut TestWorld, user: UserId, role: Option<Role>) {
    let set = SetMember {
        user,
        project: project(),
        role,
        by: admin(),
    };
    while test.run(set.clone()).unwrap().is_unfinished {}
}

#[test]
fn what_a_lost_right_allowed_stays_ended_when_the_right_comes_back() {
    type Set = fn(&mut TestWorld, UserId);
    let maintainer: Set = |test, mia| set_role(test, mia, Some(Role::Maintainer));
    let administrator: Set = |test, mia| update(test, mia, None, Some(true)).unwrap();
    let cases: [(Set, Set, [bool; 4]); 4] = [
        (
            maintainer,
            |test, mia| set_role(test, mia, Some(Role::Operator)),
            [true, true, false, false],
        ),
        (
            maintainer,
            |test, mia| set_role(test, mia, Some(Role::Viewer)),
            [true, false, false, false],
        ),
        (
            maintainer,
            |test, mia| set_role(test, mia, None),
            [false; 4],
        ),
        (
            administrator,
            |test, mia| update(test, mia, None, Some(false)).unwrap(),
            [false; 4],
        ),
    ];
    for (rise, fall, left) in cases {
        let mut test = TestWorld::new();
        let [mia, other] = ["mia", "oda"].map(|name| person(&mut test, name, &[]));
        rise(&mut test, mia);
        rise(&mut test, other);
        let token = token(&mut test, mia).unwrap();
        let token = test.world.token_of(&token).unwrap().id;
        let of_person = Made::by(&mut test, mia, None, "kim");
        let of_others = Made::by(&mut test, other, None, "lee");
        fall(&mut test, mia);
        assert_eq!(of_person.left(&test), left);
        rise(&mut test, mia);
        assert_eq!(of_person.left(&test), left);
        assert_eq!(of_others.left(&test), [true; 4]);
        // The token has no scope for blobs or runners, so what is made with it ends with the next change of its owner's rights.
        let of_token = Made::by(&mut test, mia, Some(token), "max");
        fall(&mut test, mia);
        assert_eq!(of_token.left(&test)[..3], [false; 3]);
    }
}

#[test]
fn a_right_that_comes_back_waits_until_everything_of_an_interrupted_command_has_ended() {
    let mut test = TestWorld::new();
    let mia = person(&mut test, "mia", &[(project(), Role::Maintainer)]);
    let made: Vec<Made> = (0..10)
        .map(|number| Made::by(&mut test, mia, None, &format!("kim{number}")))
        .collect();
    let fall = SetMember {
        user: mia,
        project: project(),
        role: None,
        by: admin(),
    };
    assert!(test.run(fall).unwrap().is_unfinished);
    assert!(user(&test, mia).roles.is_empty(), "the role ends at once");
    // The daemon ends here, and an administrator gives the role again.
    set_role(&mut test, mia, Some(Role::Maintainer));
    assert!(user(&test, mia).roles.get(project()).is_some());
    assert!(made.iter().all(|made| made.left(&test) == [false; 4]));
}

#[test]
fn a_user_was_last_seen_on_the_day_of_the_last_use_of_a_session_or_token() {
    let mut test = TestWorld::new();
    let kim = person(&mut test, "kim", &[(project(), Role::Operator)]);
    assert_eq!(user(&test, kim).last_seen, None);
    let session = sign_in(&mut test, kim).unwrap().session.id;
    let today = |test: &TestWorld| Some(test.now.date_naive());
    assert_eq!(user(&test, kim).last_seen, today(&test));
    test.pass(TimeDelta::days(1));
    test.run(SeeSession { session }).unwrap();
    assert_eq!(user(&test, kim).last_seen, today(&test));
    test.pass(TimeDelta::days(1));
    let secret = token(&mut test, kim).unwrap();
    let (token, day) = (
        test.world.token_of(&secret).unwrap().id,
        test.now.date_naive(),
    );
    test.run(NoteUse { token, day }).unwrap();
    assert_eq!(user(&test, kim).last_seen, Some(day));
    // It stays when all sessions and tokens end.
    test.run(DeleteUser { user: kim }).unwrap();
    assert_eq!(user(&test, kim).last_seen, Some(day));
    // A second use on one day writes the user no more.
    let oda = person(&mut test, "oda", &[]);
    sign_in(&mut test, oda).unwrap();
    let epoch = user(&test, oda).epoch;
    let again = SignIn {
        by: SignedInBy::Person {
            user: oda,
            epoch,
            signed_in_at: None,
        },
        is_device: true,
        device: "a laptop".to_owned(),
        address: "192.0.2.1".parse().unwrap(),
    };
    let (changes, _) = test.changes(again).unwrap();
    assert!(
        !changes
            .iter()
            .any(|change| matches!(change, Change::User(_)))
    );
}

#[test]
fn nobody_gives_more_than_the_own_rights() {
    let mut test = TestWorld::new();
    let mia = person(
        &mut test,
        "mia",
        &[
            (project(), Role::Maintainer),
            (other_project(), Role::Operator),
        ],
    );
    let kim = person(&mut test, "kim", &[(other_project(), Role::Viewer)]);
    let maker = || by(&test, mia);
    let (give, project_of) = (maker(), [project(), other_project()]);
    for roles in [
        vec![],
        vec![(other_project(), Role::Viewer)],
        project_of.map(|it| (it, Role::Viewer)).to_vec(),
    ] {
        let refused = invite(&mut test, "lee", &roles, give.clone()).map(drop);
        assert_eq!(refused, Err(Refusal::MayNotGive));
    }
    for (is_service, is_administrator) in [(true, false), (false, true)] {
        let refused = test.run(CreateUser {
            name: "lee".parse().unwrap(),
            is_service,
            is_administrator,
            roles: [(project(), Role::Viewer)].into(),
            by: give.clone(),
        });
        assert_eq!(refused.map(drop), Err(Refusal::MayNotGive));
    }
    let set = |project, by: &Giver| SetMember {
        user: kim,
        project,
        role: Some(Role::Maintainer),
        by: by.clone(),
    };
    let refused = test.run(set(other_project(), &give)).map(drop);
    assert_eq!(refused, Err(Refusal::MayNotGive));
    test.run(set(project(), &give)).unwrap();
    let reset = MakeUserLink {
        user: kim,
        by: Some(give),
    };
    assert_eq!(test.run(reset).map(drop), Err(Refusal::MayNotGive));
    // Nobody adds to the invitation of somebody else.
    let lee = invite(
        &mut test,
        "lee",
        &[(other_project(), Role::Viewer)],
        admin(),
    )
    .unwrap();
    let add = SetMember {
        user: lee.user.id,
        project: project(),
        role: Some(Role::Viewer),
        by: by(&test, mia),
    };
    assert!(matches!(test.run(add), Err(Refusal::InvalidField { .. })));
    // Whoever has made an invitation may have kept its link, and would get what others add.
    let give = by(&test, mia);
    let max = invite(&mut test, "max", &[(project(), Role::Viewer)], give).unwrap();
    let add = SetMember {
        user: max.user.id,
        project: other_project(),
        role: Some(Role::Maintainer),
        by: admin(),
    };
    let refused = test.run(add.clone());
    assert!(matches!(refused, Err(Refusal::InvalidField { .. })));
    let again = MakeUserLink {
        user: max.user.id,
        by: Some(admin()),
    };
    test.run(again).unwrap();
    test.run(add).unwrap();
}

#[test]
fn a_token_does_what_its_owner_may_at_that_moment() {
    let mut test = TestWorld::new();
    let kim = person(&mut test, "kim", &[(project(), Role::Operator)]);
    let secret = token(&mut test, kim).unwrap();
    let may = |test: &TestWorld, scope| {
        let rights = rights_of(test, secret);
        rights.is_some_and(|rights| rights.may(scope, project()))
    };
    assert!(may(&test, Scope::Dispatch) && may(&test, Scope::JobRead));
    assert!(!may(&test, Scope::BlobRead), "the token lacks the scope");
    let set = |role| SetMember {
        user: kim,
        project: project(),
        role,
        by: admin(),
    };
    test.run(set(Some(Role::Viewer))).unwrap();
    assert!(!may(&test, Scope::Dispatch) && may(&test, Scope::JobRead));
    test.run(set(None)).unwrap();
    assert!(!may(&test, Scope::JobRead));
    update(&mut test, kim, None, Some(true)).unwrap();
    assert!(may(&test, Scope::Dispatch));
}

#[test]
fn nothing_of_a_deactivated_user_comes_back() {
    let mut test = TestWorld::new();
    let kim = person(&mut test, "kim", &[(project(), Role::Maintainer)]);
    let secrets: Vec<TokenHash> = (0..40).map(|_| token(&mut test, kim).unwrap()).collect();
    for _ in 0..30 {
        sign_in(&mut test, kim).unwrap();
    }
    let maker = by(&test, kim);
    let link = invite(&mut test, "lee", &[(project(), Role::Viewer)], maker)
        .unwrap()
        .secret
        .unwrap();
    // The first commit ends everything, and later ones remove the records.
    let first = UpdateUser {
        user: kim,
        active: Some(false),
        administrator: None,
    };
    assert!(test.run(first).unwrap().is_unfinished);
    assert!(
        secrets
            .iter()
            .all(|secret| rights_of(&test, *secret).is_none())
    );
    assert!(test.world.signed_in(kim, test.steady()).is_empty());
    assert_eq!(accept(&mut test, &link), Err(Refusal::NoSuchUserLink));
    update(&mut test, kim, Some(true), None).unwrap();
    assert!(user(&test, kim).is_active());
    assert!(
        secrets
            .iter()
            .all(|secret| test.world.token_of(secret).is_none())
    );
    assert!(test.world.signed_in(kim, test.steady()).is_empty());
    assert_eq!(accept(&mut test, &link), Err(Refusal::NoSuchUserLink));
    assert!(user(&test, kim).roles.get(project()).is_some());
}

#[test]
fn the_last_administrator_with_a_password_stays_one() {
    let mut test = TestWorld::new();
    // Without any password, an admin token is the way in.
    let refused = update(&mut test, UserId::OWNER, Some(false), None);
    assert_eq!(refused, Err(Refusal::LastAdministrator));
    let kim = person(&mut test, "kim", &[]);
    update(&mut test, kim, None, Some(true)).unwrap();
    for (active, administrator) in [(Some(false), None), (None, Some(false))] {
        let refused = update(&mut test, kim, active, administrator);
        assert_eq!(refused, Err(Refusal::LastAdministrator));
    }
    let refused = test.run(DeleteUser { user: kim }).map(drop);
    assert_eq!(refused, Err(Refusal::LastAdministrator));
    let lee = person(&mut test, "lee", &[]);
    update(&mut test, lee, None, Some(true)).unwrap();
    update(&mut test, kim, Some(false), None).unwrap();
    assert_eq!(user(&test, kim).state, UserState::Deactivated);
}
