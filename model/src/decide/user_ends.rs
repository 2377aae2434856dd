//! What ends with a right or an account of a user: tokens, sessions, and what the user has made for others.

use std::sync::Arc;

use super::users::{deleted, sessions_removed, signed_out, stored};
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::limits::RECORDS_OF_USER_REMOVED;
use crate::moment::Moment;
use crate::restored::UserPart;
use crate::rights::Rights;
use crate::runner::may_manage;
use crate::user::{User, UserKind, UserState};
use crate::world::World;
use crate::{TokenId, UserId};

/// A user, and whether the same command must be submitted again, because not everything fits into one commit.
#[derive(Debug, Clone)]
pub struct Updated {
    pub user: Arc<User>,
    pub is_unfinished: bool,
}

/// What a deactivated or deleted user still has.
pub(super) fn left_of(world: &World, user: UserId) -> impl Iterator<Item = Change> {
    let tokens = world.tokens().filter(move |token| token.owner == user);
    let tokens = tokens.map(|token| Change::TokenRemoved(token.id));
    // Links and registrations are found through the tokens that made them, so tokens go last.
    unbacked(world, user, None).chain(tokens)
}

/// Ends what a user has made and may not make any more, or has made in sessions that end: links to blobs, registrations, and
/// links for other users. `maker` is the user with the new rights and epoch, or none if the account ends.
pub(super) fn unbacked<'w>(
    world: &'w World,
    user: UserId,
    maker: Option<&'w User>,
) -> impl Iterator<Item = Change> + 'w {
    // None: somebody else has made it.
    let rights = move |token: Option<TokenId>, person: Option<UserId>, epoch: u64| {
        let token = token.and_then(|token| world.token(token));
        let by = token.map(|token| token.owner).or(person);
        let maker = maker.filter(|maker| token.is_some() || maker.epoch == epoch);
        let rights = maker.map(|maker| Rights::of(maker, token.map(|token| &**token)));
        (by == Some(user)).then_some(rights)
    };
    let links = world.blob_links().filter(move |link| {
        let may = |rights: Rights| rights.may(link.use_for.scope(), link.project);
        rights(link.token, link.user, link.epoch).is_some_and(|rights| !rights.is_some_and(may))
    });
    let links = links.map(|link| Change::BlobLinkRemoved(link.id));
    let registrations = world.registrations().filter(move |it| {
        let may = |rights: Rights| may_manage(&rights, &it.projects);
        rights(it.maker, it.user, it.epoch).is_some_and(|rights| !rights.is_some_and(may))
    });
    let registrations = registrations.map(|it| Change::RegistrationRemoved(it.id));
    let invited = world.users().filter(move |other| {
        let may = |rights: Rights| rights.may_give(other.is_administrator, &other.roles);
        let link = other.link.as_ref();
        let rights = link.and_then(|link| rights(link.token, link.made_by, link.epoch));
        other.id != user && rights.is_some_and(|rights| !rights.is_some_and(may))
    });
    let invited = invited.map(|other| {
        let mut other = User::clone(other);
        other.link = None;
        Change::User(Arc::new(other))
    });
    links.chain(registrations).chain(invited)
}

/// True if something that the user has made ends with all sessions of the user.
pub(crate) fn has_made_in_sessions(world: &World, user: &User) -> bool {
    let later = User {
        epoch: user.epoch + 1,
        ..User::clone(user)
    };
    unbacked(world, user.id, Some(&later)).next().is_some()
}

/// Stores a user with other rights and ends, commit by commit, what the user has made and may not make any more. So nothing of
/// it comes back when a right comes back.
pub(super) fn with_rights(world: &World, before: &Arc<User>, user: User) -> Decision<Updated> {
    // The rest of an interrupted command ends before the rights change again.
    let has_rest = unbacked(world, before.id, Some(before)).next().is_some();
    let user = if has_rest { User::clone(before) } else { user };
    let Decision {
        mut changes,
        answer: user,
    } = stored(before, user);
    let mut left = unbacked(world, user.id, Some(&user));
    changes.extend(left.by_ref().take(RECORDS_OF_USER_REMOVED));
    let is_unfinished = has_rest || left.next().is_some();
    drop(left);
    let answer = Updated {
        user,
        is_unfinished,
    };
    Decision { changes, answer }
}

/// Ends the sessions of a user and, commit by commit, everything else that the user has.
pub(super) fn ended(world: &World, before: &Arc<User>, user: User) -> Decision<Updated> {
    let is_first = before.state != user.state;
    let user = User {
        epoch: before.epoch + u64::from(is_first),
        link: None,
        ..user
    };
    let Decision {
        mut changes,
        answer: user,
    } = stored(before, user);
    changes.extend(sessions_removed(world, user.id));
    let mut left = left_of(world, user.id);
    changes.extend(left.by_ref().take(RECORDS_OF_USER_REMOVED));
    let is_unfinished = left.next().is_some();
    let answer = Updated {
        user,
        is_unfinished,
    };
    Decision { changes, answer }
}

/// End what a restored backup has brought back, even if nobody can manage the installation then.
#[derive(Debug, Clone)]
pub struct EndOfUser {
    pub user: UserId,
    pub part: UserPart,
}

impl Command for EndOfUser {
    type Answer = Updated;
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<Updated>, Refusal> {
        let before = world.user(self.user).ok_or(Refusal::NoSuchUser)?;
        let mut user = User::clone(before);
        let Decision { changes, answer } = match self.part {
            UserPart::Account => {
                user.state = UserState::Deactivated;
                return Ok(ended(world, before, user));
            }
            UserPart::Everything => return Ok(ended(world, before, deleted(before))),
            UserPart::Sessions => {
                user.epoch += 1;
                signed_out(world, user)
            }
            UserPart::Password => {
                if user.is_person() {
                    user.kind = UserKind::Person { password: None };
                }
                user.epoch += 1;
                signed_out(world, user)
            }
            UserPart::Link => {
                user.link = None;
                stored(before, user)
            }
            UserPart::Role(project, role) => {
                if user.roles.get(project) > role {
                    user.roles.set(project, role);
                }
                return Ok(with_rights(world, before, user));
            }
            UserPart::Administrator => {
                user.is_administrator = false;
                return Ok(with_rights(world, before, user));
            }
        };
        let answer = Updated {
            user: answer,
            is_unfinished: false,
        };
        Ok(Decision { changes, answer })
    }
}
