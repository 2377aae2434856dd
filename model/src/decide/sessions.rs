//! Sessions of browsers: signed in, seen, signed out. They are in the record of their token, and end with it.

use std::net::IpAddr;
use std::sync::Arc;

use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::limits::{SESSION_DEVICE_CHARS, SESSION_SEEN, SESSIONS};
use crate::moment::Moment;
use crate::session::{BrowserSession, SessionCookie};
use crate::token::{PlainToken, Token, TokenHash};
use crate::world::World;
use crate::{SessionId, Timestamp, TokenId};

/// Sign a browser in with a token.
#[derive(Debug, Clone)]
pub struct SignIn {
    pub token: TokenId,
    /// Hash of the secret that was shown. The token must accept it.
    pub secret: TokenHash,
    /// What the browser says it is.
    pub device: String,
    pub address: IpAddr,
}

/// A new session with its cookie.
#[derive(Debug, Clone)]
pub struct SignedIn {
    pub session: BrowserSession,
    /// Sent once.
    pub cookie: SessionCookie,
}

impl Command for SignIn {
    type Answer = SignedIn;
    const URGENCY: Urgency = Urgency::Ordinary;

    /// The oldest sessions give way when there are too many.
    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<SignedIn>, Refusal> {
        let now = moment.steady;
        let token = world
            .token(self.token)
            .filter(|token| token.accepts(&self.secret, now))
            .ok_or(Refusal::NoSuchToken)?;
        let secret = PlainToken::browser(moment.entropy);
        let session = BrowserSession {
            id: SessionId::random(moment.entropy),
            hash: secret.hash(),
            made_with: self.secret,
            device: self.device.chars().take(SESSION_DEVICE_CHARS).collect(),
            address: self.address,
            created_at: now,
            seen_at: now,
        };
        let mut token = with_valid_sessions(token, now);
        let too_many = (token.sessions.len() + 1).saturating_sub(SESSIONS);
        token.sessions.drain(..too_many);
        token.sessions.push(session.clone());
        let cookie = SessionCookie {
            token: token.id,
            secret,
        };
        Ok(Decision {
            changes: vec![Change::Token(Arc::new(token))],
            answer: SignedIn { session, cookie },
        })
    }
}

/// Note that a session was used.
#[derive(Debug, Clone)]
pub struct SeeSession {
    pub token: TokenId,
    pub session: SessionId,
}

impl Command for SeeSession {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let now = moment.steady;
        let Some(token) = world.token(self.token) else {
            return Ok(unchanged());
        };
        let mut token = with_valid_sessions(token, now);
        let session = token.sessions.iter_mut().find(|it| it.id == self.session);
        let Some(session) = session.filter(|session| now - session.seen_at >= SESSION_SEEN) else {
            return Ok(unchanged());
        };
        session.seen_at = now;
        Ok(changed(token))
    }
}

/// End a session.
#[derive(Debug, Clone)]
pub struct SignOut {
    pub token: TokenId,
    pub session: SessionId,
}

impl Command for SignOut {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let token = world.token(self.token).ok_or(Refusal::NoSuchSession)?;
        if !token.sessions.iter().any(|it| it.id == self.session) {
            return Err(Refusal::NoSuchSession);
        }
        let mut token = Token::clone(token);
        token.sessions.retain(|it| it.id != self.session);
        Ok(changed(token))
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
        match world.token(self.token) {
            Some(token) if !token.sessions.is_empty() => Ok(changed(Token {
                sessions: Vec::new(),
                ..Token::clone(token)
            })),
            Some(_) | None => Ok(unchanged()),
        }
    }
}

/// The token without the sessions that have ended.
fn with_valid_sessions(token: &Token, now: Timestamp) -> Token {
    let sessions = token.valid_sessions(now).cloned().collect();
    Token {
        sessions,
        ..token.clone()
    }
}

fn changed(token: Token) -> Decision<()> {
    Decision {
        changes: vec![Change::Token(Arc::new(token))],
        answer: (),
    }
}

fn unchanged() -> Decision<()> {
    Decision {
        changes: Vec::new(),
        answer: (),
    }
}
