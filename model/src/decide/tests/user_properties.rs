//! Users, roles, tokens and sessions change at random while their holders act. A naive record of who may do what decides which
//! acts may be accepted. The seed is fixed, so a failure is reproducible.

mod action;
mod commands;
mod credentials;
mod known;

use std::cell::Cell;

use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use self::action::{Action, What, action};
use self::known::{Credential, Kind, Known, Person};
use crate::decide::{
    Activate, ConfigureSource, EndJob, Loss, MakeUserLink, NoteProgram, RevokeToken,
    SignOutEverywhere,
};
use crate::testing::{NIGHTLY, TestWorld, activate, source};
use crate::{
    Guard, JOB_TOKEN, PlainToken, Principal, ProjectId, Rights, RunnerId, Scope, Scopes,
    SourceName, TokenManager, UserId,
};

const TOKEN_LIFE: TimeDelta = TimeDelta::hours(1);

/// An act that has begun.
struct Act {
    by: usize,
    guard: Guard,
    what: What,
    at: ProjectId,
    whom: UserId,
    role: u8,
}

struct Story {
    test: TestWorld,
    runner: RunnerId,
    known: Known,
    /// The invited user, and who has made the invitation.
    links: Vec<(UserId, UserId, PlainToken)>,
    acts: Vec<Act>,
    names: usize,
    accepted: usize,
    refused: usize,
    was_administrated: bool,
}

fn vault() -> SourceName {
    "vault".parse().unwrap()
}

fn projects() -> [ProjectId; 2] {
    [source(), vault()].map(|name| ProjectId::of_source(&name))
}

impl Story {
    fn new() -> Self {
        let mut test = TestWorld::new();
        let configure = ConfigureSource {
            name: vault(),
            url: "/srv/vault.git".to_owned(),
            reference: None,
            folder: "workflows".to_owned(),
            interval_seconds: 60,
        };
        test.run(configure).unwrap();
        for source in [source(), vault()] {
            let push = Activate {
                source,
                ..activate("nightly", NIGHTLY)
            };
            test.run(push).unwrap();
        }
        let runner = test.runner("first", &[]);
        let note = NoteProgram {
            runner,
            version: "1".to_owned(),
            capabilities: vec![JOB_TOKEN.to_owned()],
        };
        test.run(note).unwrap();
        let owner = Person {
            is_active: true,
            is_administrator: true,
            ..Person::default()
        };
        let mut story = Self {
            test,
            runner,
            known: Known {
                users: [(UserId::OWNER, owner)].into(),
                ..Known::default()
            },
            links: Vec::new(),
            acts: Vec::new(),
            names: 0,
            accepted: 0,
            refused: 0,
            was_administrated: false,
        };
        // The owner acts with a token that never ends, and as a person.
        story.make_token(UserId::OWNER, Scopes::admin(), None, None);
        story.sign_in(UserId::OWNER, None);
        let user = UserId::OWNER;
        let link = story.test.run(MakeUserLink { user, by: None }).unwrap();
        story.links.push((user, user, link.secret.unwrap()));
        story
    }

    fn user(&self, choice: u8) -> UserId {
        let all: Vec<&UserId> = self.known.users.keys().collect();
        *all[usize::from(choice) % all.len()]
    }

    fn credential(&self, choice: u8) -> usize {
        // The newest act most often.
        let count = self.known.credentials.len();
        count - 1 - usize::from(choice) % count.min(8)
    }

    /// The principal that a request with the credential gets.
    fn principal(&self, credential: &Credential) -> Option<Principal> {
        let world = &self.test.world;
        match credential.kind {
            Kind::Token(_) => {
                let token = world.token_of(&credential.secret)?;
                Some(Principal::of_token(token, credential.secret))
            }
            Kind::Session(id, ..) => {
                let session = world.session(id)?;
                Principal::of_session(world, session)
            }
            Kind::Job(_) => Principal::of_job(world, credential.secret),
        }
    }

    fn rights(&self, credential: &Credential) -> Option<(Principal, Rights)> {
        let principal = self.principal(credential)?;
        let now = self.test.world.time(self.test.steady());
        let rights = principal.rights(&self.test.world, now)?;
        Some((principal, rights))
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Begin {
                by,
                what,
                at,
                whom,
                role,
            } => {
                let by = self.credential(by);
                let (at, whom) = (projects()[usize::from(at % 2)], self.user(whom));
                let Some(found) = self.rights(&self.known.credentials[by]) else {
                    return;
                };
                let guard = Guard::begin(found, Some(what.scope()));
                self.acts.push(Act {
                    by,
                    guard,
                    what,
                    at,
                    whom,
                    role,
                });
            }
            Action::Finish { act } => {
                if let Some(at) = self.acts.len().checked_sub(1 + usize::from(act)) {
                    let act = self.acts.remove(at);
                    self.finish(act);
                }
            }
            Action::Accept { link } => self.accept(link),
            Action::SignIn { whom, with } => {
                let with = with.map(|with| self.credential(with));
                let whom = self.user(whom);
                self.sign_in(whom, with);
            }
            Action::SignOut { whom } => {
                let user = self.user(whom);
                self.test
                    .run(SignOutEverywhere { user, with: None })
                    .unwrap();
                self.known.users.get_mut(&user).unwrap().signed_out += 1;
            }
            Action::MakeToken { whom, scopes, at } => {
                let all = Scope::ALL.iter().copied().enumerate();
                let scopes = all.filter(|(bit, scope)| {
                    (scopes >> bit) & 1 == 1 && (at.is_none() || !scope.is_of_installation())
                });
                let scopes: Scopes = scopes.map(|(_, scope)| scope).collect();
                let at = at.map(|at| projects()[usize::from(at % 2)]);
                let whom = self.user(whom);
                self.make_token(whom, scopes, at, Some(TOKEN_LIFE));
            }
            Action::RevokeToken { token } => {
                // The first is the way in.
                let at = self.credential(token).max(1);
                if let Kind::Token(token) = self.known.credentials[at].kind {
                    let by = TokenManager::owner();
                    if self.test.run(RevokeToken { token, by }).is_ok() {
                        self.known.credentials[at].has_ended = true;
                    }
                }
            }
            Action::StartJob { at } => self.start_job(usize::from(at % 2)),
            Action::EndJob { job } => {
                let at = self.credential(job);
                if let Kind::Job(job) = self.known.credentials[at].kind
                    && self.test.run(EndJob::new(job, Loss::RunnerLost)).is_ok()
                {
                    // Its steps may clean up for two minutes.
                    let until = &mut self.known.credentials[at].until;
                    *until = until.map(|until| until.min(self.known.minute + 2));
                }
            }
            Action::Pass { minutes } => {
                self.test.pass(TimeDelta::minutes(minutes));
                self.known.minute += minutes;
            }
        }
        self.compare();
    }

    /// Decides the command of an act, as the committer does: the rights of its beginning are checked again.
    fn finish(&mut self, act: Act) {
        let now = self.test.world.time(self.test.steady());
        let rights = act.guard.rights(&self.test.world, now);
        let checked = act.guard.check(&self.test.world, now);
        let scope = act.what.scope();
        let sees = rights.scopes.allow(scope) && rights.sees(act.at);
        let is_allowed = self
            .known
            .allows(&self.known.credentials[act.by], scope, act.at);
        let is_accepted = checked.is_ok() && sees && self.decide(&act, rights).is_ok();
        assert!(
            is_allowed || !is_accepted,
            "{:?} by {:?}",
            act.what,
            self.known.credentials[act.by]
        );
        match is_accepted {
            true => self.accepted += 1,
            false => self.refused += 1,
        }
    }

    /// Compares the rights of every credential with the naive reading of them.
    fn compare(&mut self) {
        for credential in &self.known.credentials {
            let rights = self.rights(credential).map(|(_, rights)| rights);
            for scope in Scope::ALL.iter().copied() {
                for at in projects() {
                    let may = rights.as_ref().is_some_and(|rights| rights.may(scope, at));
                    let expected = self.known.allows(credential, scope, at);
                    assert_eq!(may, expected, "{scope}: {credential:?} {rights:?}");
                }
            }
        }
        let administrates =
            |person: &Person| person.is_active && person.is_administrator && person.has_password;
        let is_administrated = self.known.users.values().any(administrates);
        assert!(
            is_administrated || !self.was_administrated,
            "nobody administrates any more"
        );
        self.was_administrated = is_administrated;
    }
}

#[test]
fn nobody_does_more_than_scopes_and_roles_allow_while_they_change() {
    let config = Config {
        cases: 64,
        failure_persistence: None,
        ..Config::default()
    };
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let actions = prop::collection::vec(action(), 1..100);
    let (accepted, refused, users, administrated) =
        (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
    TestRunner::new_with_rng(config, seed)
        .run(&actions, |actions| {
            let mut story = Story::new();
            for action in actions {
                story.act(action);
            }
            accepted.set(accepted.get() + story.accepted);
            refused.set(refused.get() + story.refused);
            users.set(users.get().max(story.known.users.len()));
            administrated.set(administrated.get() + usize::from(story.was_administrated));
            Ok(())
        })
        .unwrap();
    // Check that the random actions cover all cases.
    let counts = [
        accepted.get(),
        refused.get(),
        users.get(),
        administrated.get(),
    ];
    let least = [200, 100, 4, 5];
    assert!(
        counts
            .iter()
            .zip(least)
            .all(|(count, least)| *count >= least),
        "{counts:?}"
    );
}
