//! Sessions: sign-in, use and sign-out.

use std::net::IpAddr;
use std::sync::Arc;

use super::users::{seen_on, signed_out};
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::limits::{SESSION_DEVICE_CHARS, SESSION_SEEN, SESSION_SWEEP, SESSIONS};
use crate::moment::Moment;
use crate::principal::{Credential, Principal, UsedToken};
use crate::session::{BrowserSession, SessionCookie};
use crate::token::{PlainToken, TokenKind};
use crate::user::User;
use crate::world::World;
use crate::{SessionId, Timestamp, TokenId, UserId};

/// Sign a browser or a device in.
#[derive(Debug, Clone)]
pub struct SignIn {
    pub by: SignedInBy,
    /// True if the secret is for a device, which presents it without a cookie.
    pub is_device: bool,
    /// The browser's description of itself.
    pub device: String,
    pub address: IpAddr,
}

/// What was presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedInBy {
    /// A token. The session may do what the token may.
    Token {
        used: UsedToken,
        /// When the token was presented. None: now.
        signed_in_at: Option<Timestamp>,
    },
    /// A password, or a link for the whole person.
    Person {
        user: UserId,
        /// The user's epoch when this was checked. A changed password raises it.
        epoch: u64,
        /// When the person proved who it is. None: now.
        signed_in_at: Option<Timestamp>,
    },
}

impl SignedInBy {
    /// A token that is presented now.
    pub const fn token(used: UsedToken) -> Self {
        Self::Token {
            used,
            signed_in_at: None,
        }
    }

    /// Another session of the same caller. None for jobs and for links to blobs.
    pub fn of(world: &World, principal: &Principal) -> Option<Self> {
        match principal.credential {
            Credential::Token(used) => Some(Self::token(used)),
            Credential::Session(session, _) => Some(Self::of_session(world.session(session)?)),
            Credential::Link(_) | Credential::Job(_) => None,
        }
    }

    /// Another session like this one. It is not younger than the sign-in of this one, and ends no later.
    pub fn of_session(session: &BrowserSession) -> Self {
        let signed_in_at = Some(session.proven_at());
        match session.with {
            Some(used) => Self::Token { used, signed_in_at },
            None => Self::Person {
                user: session.user,
                epoch: session.epoch,
                signed_in_at,
            },
        }
    }

    /// The user, if this signs in at `now`.
    ///
    /// # Errors
    /// If the token or the user is not valid any more, or the user's password has changed.
    pub fn user<'w>(&self, world: &'w World, now: Timestamp) -> Result<&'w Arc<User>, Refusal> {
        let user = match self {
            Self::Token { used, .. } => {
                let token = world.token(used.token);
                let token = token.filter(|token| token.accepts(&used.secret, now));
                world.user(token.ok_or(Refusal::NoSuchToken)?.owner)
            }
            Self::Person { user, epoch, .. } => {
                world.user(*user).filter(|user| user.epoch == *epoch)
            }
        };
        let user = user.filter(|user| user.is_active());
        user.ok_or(Refusal::NoSuchUser)
    }
}

#[derive(Debug, Clone)]
pub struct SignedIn {
    pub session: Arc<BrowserSession>,
    /// Sent once.
    pub cookie: SessionCookie,
}

impl Command for SignIn {
    type Answer = SignedIn;
    const URGENCY: Urgency = Urgency::Ordinary;

    /// Also removes some ended sessions, and the oldest sessions of the person or token if there are too many.
    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<SignedIn>, Refusal> {
        let now = moment.steady;
        let user = self.by.user(world, now)?;
        let (with, signed_in_at) = match self.by {
            SignedInBy::Token { used, signed_in_at } => (Some(used), signed_in_at),
            SignedInBy::Person { signed_in_at, .. } => (None, signed_in_at),
        };
        let secret = match self.is_device {
            true => PlainToken::random(TokenKind::Device, moment.entropy),
            false => PlainToken::browser(moment.entropy),
        };
        let session = Arc::new(BrowserSession {
            id: SessionId::random(moment.entropy),
            user: user.id,
            epoch: user.epoch,
            with,
            hash: secret.hash(),
            device: self.device.chars().take(SESSION_DEVICE_CHARS).collect(),
            address: self.address,
            created_at: now,
            signed_in_at,
            seen_at: now,
        });
        let cookie = SessionCookie {
            session: session.id,
            secret,
        };
        // Ids are random, so every session is looked at sooner or later.
        let some = world.sessions_from(session.id).take(SESSION_SWEEP);
        let of_user = world.sessions_of(user.id);
        let is_over = |it: &&Arc<BrowserSession>| !world.is_signed_in(it, now);
        let others = some.filter(|it| it.user != user.id);
        let over = of_user.chain(others).filter(is_over);
        // A token displaces only sessions that were made with it.
        let valid = world.signed_in(user.id, now).into_iter();
        let valid: Vec<_> = valid
            .filter(|it| it.with.map(|with| with.token) == with.map(|with| with.token))
            .collect();
        let too_many = (valid.len() + 1).saturating_sub(SESSIONS);
        let removed = over.take(SESSIONS).chain(valid.into_iter().take(too_many));
        let mut changes: Vec<Change> = removed.cloned().map(Change::SessionRemoved).collect();
        changes.push(Change::Session(session.clone()));
        changes.extend(seen_on(world, user.id, moment.now.date_naive()));
        Ok(Decision {
            changes,
            answer: SignedIn { session, cookie },
        })
    }
}

/// Record that a session was used.
#[derive(Debug, Clone)]
pub struct SeeSession {
    pub session: SessionId,
}

impl Command for SeeSession {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let now = moment.steady;
        let is_due = |session: &&Arc<BrowserSession>| {
            now - session.seen_at >= SESSION_SEEN && world.is_signed_in(session, now)
        };
        let Some(session) = world.session(self.session).filter(is_due) else {
            return Ok(Decision::unchanged(()));
        };
        let seen = BrowserSession {
            seen_at: now,
            ..BrowserSession::clone(session)
        };
        let day = seen_on(world, session.user, moment.now.date_naive());
        let changes = [Change::Session(Arc::new(seen))];
        Ok(Decision::of(changes.into_iter().chain(day)))
    }
}

/// End a session of a user.
#[derive(Debug, Clone)]
pub struct SignOut {
    pub user: UserId,
    pub session: SessionId,
}

impl Command for SignOut {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let session = world.session(self.session);
        let session = session.filter(|session| session.user == self.user);
        let session = session.ok_or(Refusal::NoSuchSession)?.clone();
        Ok(Decision::of([Change::SessionRemoved(session)]))
    }
}

/// End all sessions of a user, and what the user has made in them: invitations, registrations and links to blobs.
#[derive(Debug, Clone)]
pub struct SignOutEverywhere {
    pub user: UserId,
    /// Only the sessions that were made with this token.
    pub with: Option<TokenId>,
}

impl Command for SignOutEverywhere {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        if let Some(token) = self.with {
            return Ok(Decision::of(token_sessions_removed(
                world,
                token,
                moment.steady,
            )));
        }
        let user = world.user(self.user).ok_or(Refusal::NoSuchUser)?;
        // Whoever signs in at this moment with a former password gets no session.
        let raised = User {
            epoch: user.epoch + 1,
            ..User::clone(user)
        };
        let Decision { changes, .. } = signed_out(world, raised);
        Ok(Decision::of(changes))
    }
}

/// The changes that end all valid sessions which were made with a token.
pub(super) fn token_sessions_removed(
    world: &World,
    token: TokenId,
    now: Timestamp,
) -> impl Iterator<Item = Change> {
    let owner = world.token(token).map(|token| token.owner);
    let valid = owner.map_or_else(Vec::new, |owner| world.signed_in(owner, now));
    let is_its = move |it: &&Arc<BrowserSession>| it.with.is_some_and(|with| with.token == token);
    let its = valid.into_iter().filter(is_its).cloned();
    its.map(Change::SessionRemoved)
}
