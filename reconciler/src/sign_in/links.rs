//! Links that sign a browser in once, within 15 minutes. They are in memory only; after a restart people create new links.

use std::collections::VecDeque;

use chrono::TimeDelta;
use model::decide::SignedInBy;
use model::{PlainToken, SessionId, Timestamp, TokenHash, TokenId, TokenKind, UserId, World};

use super::SignIns;
use crate::limits::{SIGN_IN_LINK, SIGN_IN_LINKS, SIGN_IN_LINKS_OF_USER};
use crate::supervise::lock;

#[derive(Debug, Clone)]
pub struct NewSignInLink {
    pub secret: PlainToken,
    /// The expiry time by the wall clock.
    pub expires_at: Timestamp,
}

/// The unused links, oldest first. Times are measured with the steady clock.
#[derive(Debug, Default)]
pub(super) struct SignInLinks(VecDeque<Link>);

#[derive(Debug)]
struct Link {
    hash: TokenHash,
    user: UserId,
    by: Backing,
    made_at: Timestamp,
}

/// What the session of a link may do, and the session that has made the link, if one has. The link ends with either.
type Backing = (SignedInBy, Option<SessionId>);

impl SignInLinks {
    /// Adds a link. If there are too many, removes the oldest link of the same user, or else the oldest link of all.
    fn add(&mut self, hash: TokenHash, user: UserId, by: Backing, now: Timestamp) {
        self.0.retain(|link| link.is_open(now));
        let of_user = |link: &Link| link.user == user;
        let too_many = self.0.iter().filter(|link| of_user(link)).count() >= SIGN_IN_LINKS_OF_USER;
        if too_many && let Some(oldest) = self.0.iter().position(of_user) {
            self.0.remove(oldest);
        }
        if self.0.len() >= SIGN_IN_LINKS {
            self.0.pop_front();
        }
        self.0.push_back(Link {
            hash,
            user,
            by,
            made_at: now,
        });
    }

    fn find(&self, hash: &TokenHash, now: Timestamp) -> Option<Backing> {
        let mut open = self.0.iter().filter(|link| link.is_open(now));
        Some(open.find(|link| link.hash == *hash)?.by)
    }

    fn take(&mut self, hash: &TokenHash, now: Timestamp) -> Option<Backing> {
        let at = self.0.iter().position(|link| link.hash == *hash)?;
        let link = self.0.remove(at)?;
        link.is_open(now).then_some(link.by)
    }

    fn end(&mut self, user: UserId, with: Option<TokenId>) {
        let is_with = |link: &Link, token| match link.by.0 {
            SignedInBy::Token { used, .. } => used.token == token,
            SignedInBy::Person { .. } => false,
        };
        self.0
            .retain(|link| link.user != user || with.is_some_and(|token| !is_with(link, token)));
    }
}

impl Link {
    fn is_open(&self, now: Timestamp) -> bool {
        (TimeDelta::zero()..SIGN_IN_LINK).contains(&(now - self.made_at))
    }
}

impl SignIns {
    /// Creates a link that signs a browser of this user in. `session` is the session that asks for it.
    pub fn make_link(
        &self,
        user: UserId,
        by: SignedInBy,
        session: Option<SessionId>,
    ) -> NewSignInLink {
        let secret = PlainToken::random(TokenKind::SignInLink, &mut **lock(&self.entropy));
        lock(&self.links).add(secret.hash(), user, (by, session), self.clock.steady());
        NewSignInLink {
            secret,
            expires_at: self.clock.now() + SIGN_IN_LINK,
        }
    }

    /// What a link signs in with, if the link is still valid. The caller checks whether that still signs in.
    pub fn link(&self, hash: &TokenHash) -> Option<SignedInBy> {
        let found = lock(&self.links).find(hash, self.clock.steady())?;
        self.backed(found)
    }

    /// Like `link`, but consumes the link. If several callers race, only one gets it.
    pub fn take_link(&self, hash: &TokenHash) -> Option<SignedInBy> {
        let taken = lock(&self.links).take(hash, self.clock.steady())?;
        self.backed(taken)
    }

    fn backed(&self, (by, session): Backing) -> Option<SignedInBy> {
        let is_signed_in = |world: &World, id| {
            let now = world.time(self.clock.steady());
            (world.session(id)).is_some_and(|session| world.is_signed_in(session, now))
        };
        let is_backed = |world: &World| session.is_none_or(|id| is_signed_in(world, id));
        self.state.read(is_backed).then_some(by)
    }

    /// Ends the links of a user, or only those of one token.
    pub fn end_links(&self, user: UserId, with: Option<TokenId>) {
        lock(&self.links).end(user, with);
    }
}

#[cfg(test)]
mod tests {
    use model::UsedToken;
    use uuid::Uuid;

    use super::*;

    fn user(n: usize) -> UserId {
        UserId::from_uuid(Uuid::from_u128(n as u128))
    }

    fn token(n: usize) -> Backing {
        let by = SignedInBy::token(UsedToken {
            token: TokenId::from_uuid(Uuid::from_u128(n as u128)),
            secret: TokenHash::of("a secret"),
        });
        (by, None)
    }

    fn hash(n: usize) -> TokenHash {
        TokenHash::of(&n.to_string())
    }

    #[test]
    fn a_link_is_valid_once_and_for_fifteen_minutes() {
        let now = Timestamp::UNIX_EPOCH;
        let mut links = SignInLinks::default();
        for n in 0..3 {
            links.add(hash(n), user(n), token(n), now);
        }
        let last = now + TimeDelta::minutes(15) - TimeDelta::seconds(1);
        assert_eq!(links.find(&hash(0), last), Some(token(0)));
        assert_eq!(
            links.find(&hash(0), last),
            Some(token(0)),
            "finding a link does not consume it"
        );
        assert_eq!(links.take(&hash(0), last), Some(token(0)));
        assert_eq!(links.find(&hash(0), last), None);
        assert_eq!(links.take(&hash(0), last), None);
        let late = now + TimeDelta::minutes(15);
        assert_eq!(links.find(&hash(1), late), None);
        assert_eq!(links.take(&hash(1), late), None);
        assert_eq!(links.take(&hash(1), last), None, "the link was removed");
        assert_eq!(links.take(&hash(2), last), Some(token(2)));
        assert_eq!(links.take(&hash(9), now), None);
    }

    #[test]
    fn the_oldest_links_are_dropped_and_links_of_the_same_user_first() {
        let now = Timestamp::UNIX_EPOCH;
        let mut links = SignInLinks::default();
        links.add(hash(0), user(0), token(0), now);
        for n in 1..=SIGN_IN_LINKS_OF_USER + 1 {
            links.add(hash(n), user(1), token(1), now);
        }
        assert_eq!(links.find(&hash(0), now), Some(token(0)));
        assert_eq!(links.find(&hash(1), now), None);
        assert_eq!(links.find(&hash(2), now), Some(token(1)));
        for n in 0..SIGN_IN_LINKS {
            links.add(hash(1_000_000 + n), user(2 + n), token(2 + n), now);
        }
        assert_eq!(links.0.len(), SIGN_IN_LINKS);
        assert_eq!(links.find(&hash(0), now), None);
        links.add(hash(0), user(0), token(0), now + SIGN_IN_LINK);
        assert_eq!(links.0.len(), 1, "expired links are removed");
    }

    #[test]
    fn the_links_of_a_user_end_together() {
        let now = Timestamp::UNIX_EPOCH;
        let mut links = SignInLinks::default();
        for n in 0..4 {
            links.add(hash(n), user(n % 2), token(n % 2), now);
        }
        links.end(user(0), None);
        let found: Vec<bool> = (0..4)
            .map(|n| links.find(&hash(n), now).is_some())
            .collect();
        assert_eq!(found, [false, true, false, true]);
    }
}
