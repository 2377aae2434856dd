//! Browser sessions: sign-in, use and sign-out. A session ends with its token.

use std::net::IpAddr;
use std::sync::Arc;

use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::limits::{SESSION_DEVICE_CHARS, SESSION_SEEN, SESSIONS};
use crate::moment::Moment;
use crate::session::{BrowserSession, SessionCookie};
use crate::token::{PlainToken, TokenHash};
use crate::world::World;
use crate::{SessionId, TokenId};

/// Sign a browser in with a token.
#[derive(Debug, Clone)]
pub struct SignIn {
    pub token: TokenId,
    /// Hash of the presented secret. The token must accept it.
    pub secret: TokenHash,
    /// The browser's description of itself.
    pub device: String,
    pub address: IpAddr,
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

    /// Also removes some ended sessions, and the oldest sessions of the token if there are too many.
    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<SignedIn>, Refusal> {
        let now = moment.steady;
        let token = world
            .token(self.token)
            .filter(|token| token.accepts(&self.secret, now))
            .ok_or(Refusal::NoSuchToken)?;
        let secret = PlainToken::browser(moment.entropy);
        let session = Arc::new(BrowserSession {
            id: SessionId::random(moment.entropy),
            token: token.id,
            hash: secret.hash(),
            made_with: self.secret,
            device: self.device.chars().take(SESSION_DEVICE_CHARS).collect(),
            address: self.address,
            created_at: now,
            seen_at: now,
        });
        let cookie = SessionCookie {
            session: session.id,
            secret,
        };
        let over = world.sessions().filter(|it| !world.is_signed_in(it, now));
        let valid = world.signed_in(token.id, now);
        let too_many = (valid.len() + 1).saturating_sub(SESSIONS);
        let removed = over.take(SESSIONS).chain(valid.into_iter().take(too_many));
        let mut changes: Vec<Change> = removed.cloned().map(Change::SessionRemoved).collect();
        changes.push(Change::Session(session.clone()));
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
        let session = world.session(self.session).filter(is_due);
        let seen = session.map(|session| BrowserSession {
            seen_at: now,
            ..BrowserSession::clone(session)
        });
        let change = seen.map(|session| Change::Session(Arc::new(session)));
        Ok(Decision::of(change))
    }
}

/// End a session of a token.
#[derive(Debug, Clone)]
pub struct SignOut {
    pub token: TokenId,
    pub session: SessionId,
}

impl Command for SignOut {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let session = world.session(self.session);
        let session = session.filter(|session| session.token == self.token);
        let session = session.ok_or(Refusal::NoSuchSession)?.clone();
        Ok(Decision::of([Change::SessionRemoved(session)]))
    }
}

/// End all sessions of a token.
#[derive(Debug, Clone)]
pub struct SignOutEverywhere {
    pub token: TokenId,
}

impl Command for SignOutEverywhere {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        Ok(Decision::of(sessions_removed(world, self.token)))
    }
}

/// The changes that end all sessions of a token.
pub(super) fn sessions_removed(world: &World, token: TokenId) -> impl Iterator<Item = Change> {
    let sessions = world.sessions().filter(move |it| it.token == token);
    sessions.cloned().map(Change::SessionRemoved)
}
