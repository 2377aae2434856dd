//! The credentials that a restored backup must not bring back: credentials that had ended after the backup, according
//! to a later audit log, and all others if an operator requests it.

use std::collections::HashSet;
use std::sync::Arc;

use crate::audit::{AuditAction, AuditKind};
use crate::decide::InitialToken;
use crate::user::UserState;
use crate::world::World;
use crate::{BlobLinkId, ProjectId, Scope, SessionId, Timestamp, Token, TokenId, UserId};

/// A credential of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Credential {
    Token(TokenId),
    /// A session of a user.
    Session(UserId, SessionId),
    Link(BlobLinkId),
    OfUser(UserId, UserPart),
}

/// What a user can lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UserPart {
    /// The account, which is deactivated.
    Account,
    /// The open invitation or reset.
    Link,
    Sessions,
    Role(ProjectId),
    Administrator,
}

impl UserPart {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Account => "user",
            Self::Link => "user link",
            Self::Sessions => "sessions",
            Self::Role(_) => "role",
            Self::Administrator => "administrator",
        }
    }
}

/// A line of the later audit log that is not in the log of the backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Later {
    pub at: Timestamp,
    pub action: AuditAction,
}

/// A credential that must end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    pub credential: Credential,
    /// The name of the token or user, the browser of a session, or the path of a link.
    pub name: String,
    /// The action that ended it, with its time. None if the operator revokes all credentials.
    pub because: Option<(AuditKind, Timestamp)>,
}

/// The credentials that must end in a restored world. Sessions end with their token and are not listed.
pub fn endings(world: &World, later: &[Later], revoke_tokens: bool) -> Vec<Ending> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut add = |credential: Credential, name: &str, because| {
        if seen.insert(credential) {
            let name = name.to_owned();
            found.push(Ending {
                credential,
                name,
                because,
            });
        }
    };
    for Later { at, action } in later {
        if let Some((credential, name)) = ended_by(world, action) {
            add(credential, &name, Some((action.kind, *at)));
        }
    }
    if revoke_tokens {
        let initial = initial_admin(world).map(|token| token.id);
        for token in sorted(world) {
            if Some(token.id) != initial {
                add(Credential::Token(token.id), &token.name, None);
            }
        }
        for session in world.sessions() {
            let credential = Credential::Session(session.user, session.id);
            add(credential, &session.device, None);
        }
        for user in world.users().filter(|user| user.link.is_some()) {
            let credential = Credential::OfUser(user.id, UserPart::Link);
            add(credential, user.name.as_str(), None);
        }
    }
    // What ends with a token or an account is not listed.
    found.retain(|ending| {
        let (user, token) = match ending.credential {
            Credential::Session(user, session) => {
                let session = world.session(session);
                (
                    Some(user),
                    session.and_then(|it| it.with).map(|it| it.token),
                )
            }
            Credential::Token(token) => (world.token(token).map(|it| it.owner), None),
            Credential::OfUser(_, UserPart::Account) | Credential::Link(_) => (None, None),
            Credential::OfUser(user, _) => (Some(user), None),
        };
        let account = user.map(|user| Credential::OfUser(user, UserPart::Account));
        let mut wholes = account.into_iter().chain(token.map(Credential::Token));
        !wholes.any(|whole| seen.contains(&whole))
    });
    found
}

/// The tokens, oldest first.
pub fn sorted(world: &World) -> Vec<&Arc<Token>> {
    let mut tokens: Vec<_> = world.tokens().collect();
    tokens.sort_by_key(|token| (token.created_at, token.id));
    tokens
}

/// The first admin token of the daemon, found by its name. No older token can have this name.
fn initial_admin(world: &World) -> Option<&Arc<Token>> {
    let is_initial =
        |token: &&Arc<Token>| token.name == InitialToken::NAME && token.scopes.allow(Scope::Admin);
    sorted(world).into_iter().find(is_initial)
}

/// The credential that an action ended, and its name, if the backup contains it. A regenerated token would return with
/// its old secret.
fn ended_by(world: &World, action: &AuditAction) -> Option<(Credential, String)> {
    use AuditKind as Kind;
    let id = action.id?;
    match action.kind {
        Kind::TokenRevoked | Kind::TokenRegenerated => {
            let token = world.token(TokenId::from_uuid(id))?;
            Some((Credential::Token(token.id), token.name.clone()))
        }
        Kind::SignedOut => {
            let session = world.session(SessionId::from_uuid(id))?;
            let credential = Credential::Session(session.user, session.id);
            Some((credential, session.device.clone()))
        }
        Kind::UserDeactivated
        | Kind::UserDeleted
        | Kind::UserLinkUsed
        | Kind::PasswordChanged
        | Kind::SignedOutEverywhere
        | Kind::MemberRemoved
        | Kind::AdministratorRemoved => {
            let user = world.user(UserId::from_uuid(id))?;
            let part = match action.kind {
                Kind::UserLinkUsed if user.link.is_some() => UserPart::Link,
                Kind::UserLinkUsed | Kind::PasswordChanged | Kind::SignedOutEverywhere => {
                    UserPart::Sessions
                }
                Kind::MemberRemoved => UserPart::Role(ProjectId::of_source(
                    &action.project.as_deref()?.parse().ok()?,
                )),
                Kind::AdministratorRemoved => UserPart::Administrator,
                _ => UserPart::Account,
            };
            let has_it = match part {
                UserPart::Account => user.is_active() || user.state == UserState::Invited,
                UserPart::Link => user.link.is_some(),
                UserPart::Sessions => world.sessions_of(user.id).next().is_some(),
                UserPart::Role(project) => user.roles.contains_key(&project),
                UserPart::Administrator => user.is_administrator,
            };
            let credential = Credential::OfUser(user.id, part);
            has_it.then(|| (credential, user.name.to_string()))
        }
        Kind::BlobLinkRevoked => {
            let link = world.blob_link(BlobLinkId::from_uuid(id))?;
            Some((Credential::Link(link.id), link.path.to_string()))
        }
        // A restore ends the sessions of all runners.
        Kind::RunnerLimited
        | Kind::RunnerRemoved
        | Kind::TokenCreated
        | Kind::TokenMoved
        | Kind::UserCreated
        | Kind::UserLinkCreated
        | Kind::UserActivated
        | Kind::AdministratorAdded
        | Kind::MemberSet
        | Kind::SignedIn
        | Kind::SignInRefused
        | Kind::SignInLinkCreated
        | Kind::RegistrationCreated
        | Kind::ConditionAcknowledged
        | Kind::ConditionSilenced
        | Kind::ChannelSet
        | Kind::ChannelDeleted
        | Kind::SourceSynced
        | Kind::SourceApproved
        | Kind::VarSet
        | Kind::VarDeleted
        | Kind::SecretSet
        | Kind::SecretDeleted
        | Kind::SecretRead
        | Kind::RuleSet
        | Kind::RuleDeleted
        | Kind::JobDispatched
        | Kind::JobScheduled
        | Kind::JobCancelled
        | Kind::JobEnded
        | Kind::JobDeleted
        | Kind::ArtifactDeleted
        | Kind::WorkflowSuspended
        | Kind::WorkflowResumed
        | Kind::ScanSuspended
        | Kind::ScanResumed
        | Kind::BlobStored
        | Kind::BlobDeleted
        | Kind::BlobLinkCreated => None,
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::blob::{BlobPath, LinkUse};
    use crate::decide::{
        CreateBlobLink, CreateToken, EndToken, NewToken, RegenerateToken, RevokeBlobLink,
        RevokeToken, SignIn, SignOut, SignedInBy,
    };
    use crate::testing::{TestWorld, source};
    use crate::{
        Change, ProjectId, Projects, Rights, Scopes, TokenHash, TokenManager, UsedToken, actions,
    };

    fn token(test: &mut TestWorld, name: &str, scope: Scope) -> NewToken {
        let made = test.run(CreateToken {
            name: name.to_owned(),
            scopes: Scopes::from_iter([scope]),
            life: None,
            projects: Projects::All,
            owner: UserId::OWNER,
            granted_by: Rights::admin(),
            ends_by: None,
        });
        test.now += TimeDelta::seconds(1);
        made.unwrap()
    }

    fn session(test: &mut TestWorld, of: &NewToken) -> SessionId {
        let signed_in = test.run(SignIn {
            by: SignedInBy::Token(UsedToken {
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
        let link = test.run(CreateBlobLink {
            project: ProjectId::of_source(&source()),
            path: "a/b".parse::<BlobPath>().unwrap(),
            use_for: LinkUse::Get,
            life: TimeDelta::days(1),
            token: Some(kept.token.id),
            user: None,
        });
        let link = link.unwrap().link.id;

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
}
