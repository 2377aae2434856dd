//! Users: invitations, passwords, roles, and the end of an account.

use std::sync::Arc;

use chrono::NaiveDate;

use super::tokens::is_admin_token;
use super::user_ends::{Updated, ended, left_of, unbacked, with_rights};
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::limits::{
    INVITATION, INVITATIONS_OF_USER, PASSWORD_RESET, RECORDS_OF_USER_REMOVED, SESSIONS_REMOVED,
    USERS,
};
use crate::moment::Moment;
use crate::rights::Rights;
use crate::role::Role;
use crate::roles::Roles;
use crate::scope::Scope;
use crate::token::{PlainToken, TokenHash, TokenKind};
use crate::user::{PasswordHash, User, UserKind, UserLink, UserName, UserState};
use crate::world::World;
use crate::{ProjectId, SessionId, Timestamp, TokenId, UserId};

/// Who changes users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Giver {
    pub user: UserId,
    /// Nobody gives more than these.
    pub rights: Rights,
    /// The token with which the user acts. None for the whole person.
    pub token: Option<TokenId>,
}

/// Make a user. A person gets an invitation.
#[derive(Debug, Clone)]
pub struct CreateUser {
    pub name: UserName,
    pub is_service: bool,
    pub is_administrator: bool,
    pub roles: Roles,
    pub by: Giver,
}

/// A user with the secret of a new link.
#[derive(Debug, Clone)]
pub struct NewUser {
    pub user: Arc<User>,
    /// Shown once. None for a service.
    pub secret: Option<PlainToken>,
}

impl Command for CreateUser {
    type Answer = NewUser;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<NewUser>, Refusal> {
        let may_give = self.by.rights.may_give(self.is_administrator, &self.roles);
        if !may_give || self.is_service && !self.by.rights.is_administrator() {
            return Err(Refusal::MayNotGive);
        }
        if world.user_named(&self.name).is_some() {
            let name = self.name.to_string();
            return Err(Refusal::UserExists { name });
        }
        let users = world.user_count();
        if users >= USERS {
            return Err(Refusal::TooManyUsers { users });
        }
        let user = User {
            id: UserId::random(moment.entropy),
            name: self.name,
            kind: match self.is_service {
                true => UserKind::Service,
                false => UserKind::Person { password: None },
            },
            state: match self.is_service {
                true => UserState::Active,
                false => UserState::Invited,
            },
            is_administrator: self.is_administrator,
            roles: self.roles,
            epoch: 0,
            link: None,
            created_at: moment.now,
            last_seen: None,
        };
        if self.is_service {
            return Ok(changed(user, None));
        }
        with_link(world, user, Some(&self.by), moment)
    }
}

fn changed(user: User, secret: Option<PlainToken>) -> Decision<NewUser> {
    let user = Arc::new(user);
    Decision {
        changes: vec![Change::User(user.clone())],
        answer: NewUser { user, secret },
    }
}

/// Gives a user a new link. The former one ends.
fn with_link(
    world: &World,
    mut user: User,
    by: Option<&Giver>,
    moment: &mut Moment<'_>,
) -> Result<Decision<NewUser>, Refusal> {
    let life = match user.state {
        UserState::Invited => INVITATION,
        UserState::Active | UserState::Deactivated | UserState::Deleted => PASSWORD_RESET,
    };
    let maker = by.and_then(|by| world.user(by.user));
    let invited_by = maker.filter(|_| user.state == UserState::Invited);
    if let Some(maker) = invited_by {
        let is_its = |other: &&Arc<User>| {
            let link = other.link.as_ref();
            let link = link.filter(|it| it.made_by == Some(maker.id) && other.id != user.id);
            other.state == UserState::Invited
                && link.is_some_and(|link| world.is_open(other, link, moment.steady))
        };
        let invitations = world.users().filter(is_its).count();
        if invitations >= INVITATIONS_OF_USER {
            return Err(Refusal::TooManyInvitations { invitations });
        }
    }
    let secret = PlainToken::random(TokenKind::UserLink, moment.entropy);
    user.link = Some(Box::new(UserLink {
        hash: secret.hash(),
        made_by: by.map(|by| by.user),
        token: by.and_then(|by| by.token),
        epoch: world.epoch_of(by.map(|by| by.user)),
        expires_at: moment.steady + life,
    }));
    Ok(changed(user, Some(secret)))
}

/// Make a new invitation for a user who has not accepted one, or a link for a new password.
#[derive(Debug, Clone)]
pub struct MakeUserLink {
    pub user: UserId,
    /// None: somebody who may change the state folder.
    pub by: Option<Giver>,
}

impl Command for MakeUserLink {
    type Answer = NewUser;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<NewUser>, Refusal> {
        let user = existing(world, self.user)?;
        if !user.is_person() {
            let problem = "a service user has no password";
            return Err(Refusal::NoPasswordOf { problem });
        }
        if user.state == UserState::Deactivated {
            let problem = "the user is deactivated; activate it first";
            return Err(Refusal::NoPasswordOf { problem });
        }
        if let Some(by) = &self.by {
            let is_invited = user.state == UserState::Invited;
            let may_invite = is_invited && by.rights.may_give(user.is_administrator, &user.roles);
            if !may_invite && !by.rights.is_administrator() {
                return Err(Refusal::MayNotGive);
            }
            // A token that somebody has stolen must not become the whole person.
            if by.user == user.id && by.token.is_some() && user.password().is_some() {
                return Err(Refusal::OwnPassword);
            }
        }
        with_link(world, User::clone(user), self.by.as_ref(), moment)
    }
}

/// Set a password with an invitation or a reset, which is used up. All sessions of the user end.
#[derive(Debug, Clone)]
pub struct UseUserLink {
    pub link: TokenHash,
    pub password: PasswordHash,
}

impl Command for UseUserLink {
    type Answer = Arc<User>;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Arc<User>>, Refusal> {
        let user = world.user_of_link(&self.link, moment.steady);
        let user = user.ok_or(Refusal::NoSuchUserLink)?;
        let user = User {
            state: UserState::Active,
            link: None,
            ..with_password(user, self.password)
        };
        Ok(signed_out(world, user))
    }
}

fn with_password(user: &User, password: PasswordHash) -> User {
    User {
        kind: UserKind::Person {
            password: Some(password),
        },
        epoch: user.epoch + 1,
        ..User::clone(user)
    }
}

/// Stores a user whose epoch was raised. So all sessions end, and what the user has made in them. What does not fit into the
/// commit stays without being of use to anybody.
pub(super) fn signed_out(world: &World, user: User) -> Decision<Arc<User>> {
    let user = Arc::new(user);
    let mut changes = vec![Change::User(user.clone())];
    changes.extend(sessions_removed(world, user.id));
    let made = unbacked(world, user.id, Some(&user));
    changes.extend(made.take(RECORDS_OF_USER_REMOVED));
    Decision {
        changes,
        answer: user,
    }
}

/// Change the own password. All sessions of the user end; the browser signs in again with the new password.
#[derive(Debug, Clone)]
pub struct SetPassword {
    pub user: UserId,
    /// The session of the request. The person has just signed in.
    pub session: SessionId,
    pub password: PasswordHash,
}

impl Command for SetPassword {
    type Answer = Arc<User>;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Arc<User>>, Refusal> {
        let now = moment.steady;
        let user = existing(world, self.user)?;
        let session = world.session(self.session).filter(|session| {
            session.user == user.id && session.with.is_none() && world.is_signed_in(session, now)
        });
        let session = session.ok_or(Refusal::NoSuchSession)?;
        if !session.is_recent(now) {
            return Err(Refusal::SignInAgain);
        }
        let user = User {
            link: None,
            ..with_password(user, self.password)
        };
        Ok(signed_out(world, user))
    }
}

/// Activate or deactivate a user, or make an administrator of a user. Only administrators do.
#[derive(Debug, Clone)]
pub struct UpdateUser {
    pub user: UserId,
    pub active: Option<bool>,
    pub administrator: Option<bool>,
}

impl Command for UpdateUser {
    type Answer = Updated;
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<Updated>, Refusal> {
        let before = existing(world, self.user)?;
        let mut user = User::clone(before);
        user.is_administrator = self.administrator.unwrap_or(before.is_administrator);
        match self.active {
            Some(false) => user.state = UserState::Deactivated,
            Some(true) if before.state == UserState::Deactivated => {
                // Nothing that ended with the deactivation comes back.
                if left_of(world, before.id).next().is_some() {
                    let mut decision = ended(world, before, User::clone(before));
                    decision.answer.is_unfinished = true;
                    return Ok(decision);
                }
                user.state = match before.kind {
                    // Whoever never had a password needs an invitation, except the owner.
                    UserKind::Person { password: None } if before.id != UserId::OWNER => {
                        UserState::Invited
                    }
                    UserKind::Person { .. } | UserKind::Service => UserState::Active,
                };
            }
            Some(true) | None => {}
        }
        keep_an_administrator(world, moment.steady, &user)?;
        if self.active == Some(false) {
            return Ok(ended(world, before, user));
        }
        Ok(with_rights(world, before, user))
    }
}

pub(super) fn stored(before: &Arc<User>, user: User) -> Decision<Arc<User>> {
    if **before == user {
        return Decision::unchanged(before.clone());
    }
    let user = Arc::new(user);
    Decision {
        changes: vec![Change::User(user.clone())],
        answer: user,
    }
}

/// Remove a user for ever. Only the name is left, so that nobody else gets it.
#[derive(Debug, Clone)]
pub struct DeleteUser {
    pub user: UserId,
}

impl Command for DeleteUser {
    type Answer = Updated;
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<Updated>, Refusal> {
        let before = world.user(self.user).ok_or(Refusal::NoSuchUser)?;
        if before.is_deleted() && left_of(world, before.id).next().is_none() {
            return Err(Refusal::NoSuchUser);
        }
        let user = deleted(before);
        keep_an_administrator(world, moment.steady, &user)?;
        Ok(ended(world, before, user))
    }
}

pub(super) fn deleted(user: &User) -> User {
    User {
        kind: match user.kind {
            UserKind::Person { .. } => UserKind::Person { password: None },
            UserKind::Service => UserKind::Service,
        },
        state: UserState::Deleted,
        is_administrator: false,
        roles: Roles::default(),
        ..User::clone(user)
    }
}

/// Give a user a role in a project, change it, or take it.
#[derive(Debug, Clone)]
pub struct SetMember {
    pub user: UserId,
    pub project: ProjectId,
    /// None takes the role.
    pub role: Option<Role>,
    pub by: Giver,
}

impl Command for SetMember {
    type Answer = Updated;
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<Updated>, Refusal> {
        let before = existing(world, self.user)?;
        let rights = &self.by.rights;
        if !rights.is_administrator() && !rights.may(Scope::MemberWrite, self.project) {
            return Err(Refusal::MayNotGive);
        }
        let mut user = User::clone(before);
        user.roles.set(self.project, self.role);
        // Whoever has made the invitation may still have its link, and would get this role with it.
        let is_of_others = |link: &UserLink| link.made_by.is_some_and(|by| by != self.by.user);
        let is_invited = user.state == UserState::Invited;
        if self.role.is_some() && is_invited && user.link.as_deref().is_some_and(is_of_others) {
            let problem = "has not accepted the invitation of somebody else yet; make a new one first (`everscan user reset`)";
            return Err(Refusal::invalid("user", problem));
        }
        Ok(with_rights(world, before, user))
    }
}

pub(super) fn existing(world: &World, user: UserId) -> Result<&Arc<User>, Refusal> {
    let user = world.user(user).filter(|user| !user.is_deleted());
    user.ok_or(Refusal::NoSuchUser)
}

/// Records the day on which a user was seen.
pub(super) fn seen_on(world: &World, user: UserId, day: NaiveDate) -> Option<Change> {
    let user = world.user(user)?;
    let seen = User {
        last_seen: Some(day),
        ..User::clone(user)
    };
    (user.last_seen < Some(day)).then(|| Change::User(Arc::new(seen)))
}

/// Somebody must be able to manage the installation: with a password, as soon as anybody can, or else with a token.
fn keep_an_administrator(world: &World, now: Timestamp, after: &User) -> Result<(), Refusal> {
    let is_admin = |user: &User| user.is_active() && user.is_administrator;
    let loses = world.user(after.id).is_some_and(|it| is_admin(it)) && !is_admin(after);
    if !loses {
        return Ok(());
    }
    let is_other = |it: &&Arc<User>| it.id != after.id;
    let stays = if world.users().any(|user| user.can_administrate()) {
        let mut others = world.users().filter(is_other);
        others.any(|user| user.can_administrate())
    } else {
        let mut others = world.tokens().filter(|token| token.owner != after.id);
        others.any(|token| is_admin_token(world, token) && !token.expires_soon(now))
    };
    stays.then_some(()).ok_or(Refusal::LastAdministrator)
}

/// Removes sessions of a user whose epoch is raised. A later sign-in removes what is left of them.
pub(super) fn sessions_removed(world: &World, user: UserId) -> impl Iterator<Item = Change> {
    let some = world.sessions_of(user).take(SESSIONS_REMOVED).cloned();
    some.map(Change::SessionRemoved)
}
