//! The credentials that a restored backup must not bring back: credentials that had ended after the backup, according
//! to a later audit log, and all others if an operator requests it.

use std::collections::HashSet;
use std::sync::Arc;

use crate::audit::{AuditAction, AuditKind};
use crate::decide::{InitialToken, has_made_in_sessions};
use crate::role::Role;
use crate::user::UserState;
use crate::world::World;
use crate::{BlobLinkId, ProjectId, Scope, SessionId, Timestamp, Token, TokenId, User, UserId};

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
    /// The account, for ever. Only the name is left.
    Everything,
    /// The account, which is deactivated.
    Account,
    /// The open invitation or reset.
    Link,
    /// The password with all sessions. The user needs a new link.
    Password,
    Sessions,
    /// What is more than this role in a project.
    Role(ProjectId, Option<Role>),
    Administrator,
}

impl UserPart {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Everything | Self::Account => "user",
            Self::Link => "user link",
            Self::Password => "password",
            Self::Sessions => "sessions",
            Self::Role(..) => "role",
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
        for (credential, name) in ended_by(world, action) {
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
        for link in world.blob_links() {
            add(Credential::Link(link.id), &link.path.to_string(), None);
        }
    }
    found.retain(|ending| {
        let mut wholes = wholes(world, ending.credential).into_iter();
        !wholes.any(|whole| seen.contains(&whole))
    });
    found
}

/// What a credential ends with. If this ends, the credential is not listed.
fn wholes(world: &World, of: Credential) -> Vec<Credential> {
    use UserPart::{Account, Administrator, Everything, Link, Password, Role, Sessions};
    let (user, parts, token): (_, &[UserPart], _) = match of {
        Credential::Session(user, id) => {
            let with = world.session(id).and_then(|session| session.with);
            let parts = &[Everything, Account, Password, Sessions];
            (Some(user), parts, with.map(|with| with.token))
        }
        Credential::Token(token) => {
            let owner = world.token(token).map(|token| token.owner);
            (owner, &[Everything, Account], None)
        }
        Credential::Link(link) => {
            let link = world.blob_link(link);
            let token = link.and_then(|link| link.token);
            let owner = token.and_then(|token| Some(world.token(token)?.owner));
            match link.and_then(|link| link.user) {
                Some(user) => (Some(user), &[Everything, Account, Password, Sessions], None),
                None => (owner, &[Everything, Account], token),
            }
        }
        Credential::OfUser(user, Everything) => (Some(user), &[], None),
        Credential::OfUser(user, Account) => (Some(user), &[Everything], None),
        Credential::OfUser(user, Sessions) => (Some(user), &[Everything, Account, Password], None),
        Credential::OfUser(user, Link) => (Some(user), &[Everything, Account], None),
        // An activated account would have them again.
        Credential::OfUser(user, Password | Role(..) | Administrator) => {
            (Some(user), &[Everything], None)
        }
    };
    let parts = parts.iter().copied();
    let parts = parts.filter_map(|part| Some(Credential::OfUser(user?, part)));
    parts.chain(token.map(Credential::Token)).collect()
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

/// The credentials that an action ended, with their names, if the backup contains them. A regenerated token would return with
/// its old secret, and a user with the old password.
fn ended_by(world: &World, action: &AuditAction) -> Vec<(Credential, String)> {
    use AuditKind as Kind;
    let Some(id) = action.id else {
        return Vec::new();
    };
    let of_user = |parts: &[UserPart]| lost_by(world, UserId::from_uuid(id), parts, action);
    match action.kind {
        Kind::TokenRevoked | Kind::TokenRegenerated => {
            let token = world.token(TokenId::from_uuid(id));
            let named = token.map(|token| (Credential::Token(token.id), token.name.clone()));
            named.into_iter().collect()
        }
        Kind::SignedOut => {
            let session = world.session(SessionId::from_uuid(id));
            let named = session.map(|session| {
                let credential = Credential::Session(session.user, session.id);
                (credential, session.device.clone())
            });
            named.into_iter().collect()
        }
        Kind::UserDeleted => of_user(&[UserPart::Everything]),
        Kind::UserDeactivated => of_user(&[UserPart::Account]),
        Kind::UserLinkCreated | Kind::UserLinkEnded => of_user(&[UserPart::Link]),
        Kind::SignedOutEverywhere => of_user(&[UserPart::Sessions]),
        Kind::PasswordChanged | Kind::UserLinkUsed => {
            of_user(&[UserPart::Link, UserPart::Password, UserPart::Sessions])
        }
        Kind::AdministratorRemoved => of_user(&[UserPart::Administrator]),
        Kind::MemberRemoved | Kind::MemberSet => {
            let source = action.project.as_ref().and_then(|name| name.parse().ok());
            let role: Option<Role> = action.reason.as_ref().and_then(|it| it.parse().ok());
            // A role that this program does not know takes nothing.
            let is_known = action.kind == Kind::MemberRemoved || role.is_some();
            let part = source.map(|source| UserPart::Role(ProjectId::of_source(&source), role));
            let part = part.filter(|_| is_known);
            part.map_or_else(Vec::new, |part| of_user(&[part]))
        }
        Kind::BlobLinkRevoked => {
            let link = world.blob_link(BlobLinkId::from_uuid(id));
            let named = link.map(|link| (Credential::Link(link.id), link.path.to_string()));
            named.into_iter().collect()
        }
        // A restore ends the sessions of all runners.
        Kind::RunnerLimited
        | Kind::RunnerRemoved
        | Kind::TokenCreated
        | Kind::TokenMoved
        | Kind::UserCreated
        | Kind::UserActivated
        | Kind::AdministratorAdded
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
        | Kind::CallbackCreated
        | Kind::CallbackDeleted
        | Kind::CallbackRulesSet
        | Kind::CallbackTokenCreated
        | Kind::CallbackTokenEnded
        | Kind::PayloadGroupCreated
        | Kind::PayloadGroupChanged
        | Kind::PayloadGroupDeleted
        | Kind::PayloadStored
        | Kind::PayloadDeleted
        | Kind::BlobStored
        | Kind::BlobDeleted
        | Kind::BlobLinkCreated => Vec::new(),
    }
}

/// Those parts that the user of the backup has.
fn lost_by(
    world: &World,
    user: UserId,
    parts: &[UserPart],
    action: &AuditAction,
) -> Vec<(Credential, String)> {
    let Some(user) = world.user(user) else {
        return Vec::new();
    };
    let name = match &action.project {
        Some(project) => format!("{} in {project}", user.name),
        None => user.name.to_string(),
    };
    let lost = parts.iter().filter(|part| has(world, user, **part));
    lost.map(|part| (Credential::OfUser(user.id, *part), name.clone()))
        .collect()
}

fn has(world: &World, user: &User, part: UserPart) -> bool {
    match part {
        UserPart::Everything => !user.is_deleted(),
        UserPart::Account => user.is_active() || user.state == UserState::Invited,
        UserPart::Link => user.link.is_some(),
        UserPart::Password => user.password().is_some(),
        UserPart::Sessions => {
            world.sessions_of(user.id).next().is_some() || has_made_in_sessions(world, user)
        }
        UserPart::Role(project, role) => user.roles.get(project) > role,
        UserPart::Administrator => user.is_administrator,
    }
}

/// False if the credential has ended, alone or together with another one.
pub fn is_left(world: &World, credential: Credential) -> bool {
    match credential {
        Credential::Token(token) => world.token(token).is_some(),
        Credential::Session(_, session) => world.session(session).is_some(),
        Credential::Link(link) => world.blob_link(link).is_some(),
        Credential::OfUser(user, part) => {
            world.user(user).is_some_and(|user| has(world, user, part))
        }
    }
}

/// What the owner loses, without an action of the log. Nobody is an administrator any more, so the owner becomes one again, and
/// only the new token is to let in.
pub fn lost_by_owner(world: &World) -> Vec<Credential> {
    let is_able = |user: &Arc<User>| user.is_active() && user.is_administrator;
    if world.users().any(is_able) {
        return Vec::new();
    }
    let parts = [UserPart::Password, UserPart::Account];
    parts
        .map(|part| Credential::OfUser(UserId::OWNER, part))
        .into()
}

#[cfg(test)]
mod tests;
