//! Links that sign a browser in, once and soon. They are in memory alone: after a restart somebody makes another one.

use std::collections::VecDeque;

use chrono::TimeDelta;
use model::{PlainToken, Timestamp, TokenHash, TokenId, TokenKind};

use crate::handle::Handle;
use crate::limits::{SIGN_IN_LINK, SIGN_IN_LINKS, SIGN_IN_LINKS_OF_TOKEN};

/// What a link signs in with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkedToken {
    pub id: TokenId,
    /// Hash of the token's secret that made the link. The link and its session end with it.
    pub secret: TokenHash,
}

/// A new link.
#[derive(Debug, Clone)]
pub struct NewSignInLink {
    /// Shown once.
    pub secret: PlainToken,
    /// When it ends, by the wall clock.
    pub expires_at: Timestamp,
}

/// The links that nobody has used, the oldest first. Their times are of the clock that nobody can set.
#[derive(Debug, Default)]
pub(crate) struct SignInLinks(VecDeque<Link>);

#[derive(Debug)]
struct Link {
    hash: TokenHash,
    token: LinkedToken,
    made_at: Timestamp,
}

impl SignInLinks {
    /// The oldest links give way when there are too many, those of the same token first.
    fn add(&mut self, hash: TokenHash, token: LinkedToken, now: Timestamp) {
        self.0.retain(|link| link.is_open(now));
        let of_token = |link: &Link| link.token.id == token.id;
        let too_many =
            self.0.iter().filter(|link| of_token(link)).count() >= SIGN_IN_LINKS_OF_TOKEN;
        if too_many && let Some(oldest) = self.0.iter().position(of_token) {
            self.0.remove(oldest);
        }
        if self.0.len() >= SIGN_IN_LINKS {
            self.0.pop_front();
        }
        self.0.push_back(Link {
            hash,
            token,
            made_at: now,
        });
    }

    fn find(&self, hash: &TokenHash, now: Timestamp) -> Option<LinkedToken> {
        let mut open = self.0.iter().filter(|link| link.is_open(now));
        Some(open.find(|link| link.hash == *hash)?.token)
    }

    fn take(&mut self, hash: &TokenHash, now: Timestamp) -> Option<LinkedToken> {
        let at = self.0.iter().position(|link| link.hash == *hash)?;
        let link = self.0.remove(at)?;
        link.is_open(now).then_some(link.token)
    }

    fn end(&mut self, token: TokenId) {
        self.0.retain(|link| link.token.id != token);
    }
}

impl Link {
    fn is_open(&self, now: Timestamp) -> bool {
        (TimeDelta::zero()..SIGN_IN_LINK).contains(&(now - self.made_at))
    }
}

impl Handle {
    /// Makes a link that signs a browser in with this token.
    pub fn make_sign_in_link(&self, token: LinkedToken) -> NewSignInLink {
        let secret = PlainToken::random(TokenKind::SignInLink, &mut **self.entropy());
        let now = self.clock().steady();
        self.sign_in_links().add(secret.hash(), token, now);
        NewSignInLink {
            secret,
            expires_at: self.now() + SIGN_IN_LINK,
        }
    }

    /// What a link signs in with, if it is still good. The caller asks whether the token is.
    pub fn sign_in_link(&self, hash: &TokenHash) -> Option<LinkedToken> {
        let now = self.clock().steady();
        self.sign_in_links().find(hash, now)
    }

    /// The same, and the link is used. Of several callers one gets it.
    pub fn take_sign_in_link(&self, hash: &TokenHash) -> Option<LinkedToken> {
        let now = self.clock().steady();
        self.sign_in_links().take(hash, now)
    }

    /// Ends the links of a token.
    pub fn end_sign_in_links(&self, token: TokenId) {
        self.sign_in_links().end(token);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn token(n: usize) -> LinkedToken {
        LinkedToken {
            id: TokenId::from_uuid(Uuid::from_u128(n as u128)),
            secret: TokenHash::of("a secret"),
        }
    }

    fn hash(n: usize) -> TokenHash {
        TokenHash::of(&n.to_string())
    }

    #[test]
    fn a_link_is_good_once_and_for_fifteen_minutes() {
        let now = Timestamp::UNIX_EPOCH;
        let mut links = SignInLinks::default();
        for n in 0..3 {
            links.add(hash(n), token(n), now);
        }
        let last = now + TimeDelta::minutes(15) - TimeDelta::seconds(1);
        assert_eq!(links.find(&hash(0), last), Some(token(0)));
        assert_eq!(
            links.find(&hash(0), last),
            Some(token(0)),
            "a look is no use"
        );
        assert_eq!(links.take(&hash(0), last), Some(token(0)));
        assert_eq!(links.find(&hash(0), last), None);
        assert_eq!(links.take(&hash(0), last), None);
        let late = now + TimeDelta::minutes(15);
        assert_eq!(links.find(&hash(1), late), None);
        assert_eq!(links.take(&hash(1), late), None);
        assert_eq!(links.take(&hash(1), last), None, "it is gone");
        assert_eq!(links.take(&hash(2), last), Some(token(2)));
        assert_eq!(links.take(&hash(9), now), None);
    }

    #[test]
    fn the_oldest_links_give_way_and_those_of_the_same_token_first() {
        let now = Timestamp::UNIX_EPOCH;
        let mut links = SignInLinks::default();
        links.add(hash(0), token(0), now);
        for n in 1..=SIGN_IN_LINKS_OF_TOKEN + 1 {
            links.add(hash(n), token(1), now);
        }
        assert_eq!(links.find(&hash(0), now), Some(token(0)));
        assert_eq!(links.find(&hash(1), now), None);
        assert_eq!(links.find(&hash(2), now), Some(token(1)));
        for n in 0..SIGN_IN_LINKS {
            links.add(hash(1_000_000 + n), token(2 + n), now);
        }
        assert_eq!(links.0.len(), SIGN_IN_LINKS);
        assert_eq!(links.find(&hash(0), now), None);
        links.add(hash(0), token(0), now + SIGN_IN_LINK);
        assert_eq!(links.0.len(), 1, "what is over is removed");
    }

    #[test]
    fn the_links_of_a_token_end_together() {
        let now = Timestamp::UNIX_EPOCH;
        let mut links = SignInLinks::default();
        for n in 0..4 {
            links.add(hash(n), token(n % 2), now);
        }
        links.end(token(0).id);
        let found: Vec<bool> = (0..4)
            .map(|n| links.find(&hash(n), now).is_some())
            .collect();
        assert_eq!(found, [false, true, false, true]);
    }
}
