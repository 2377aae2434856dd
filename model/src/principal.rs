//! The credential with which somebody acts, and its present rights.

use crate::actor::Actor;
use crate::blob::BlobLink;
use crate::rights::Rights;
use crate::session::SessionCookie;
use crate::token::{Token, TokenHash};
use crate::world::World;
use crate::{BlobLinkId, SessionId, Timestamp, TokenId};

/// The actor of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The name that people see.
    pub name: String,
    pub credential: Credential,
}

/// What a caller has presented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    Token(UsedToken),
    /// The cookie of a browser, which was signed in with this token.
    Session(SessionId, UsedToken),
    /// A link to a blob, which was made with this token.
    Link(BlobLinkId, UsedToken),
}

/// A token and one of its secrets. The principal loses its rights when the token does not accept the secret any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedToken {
    pub token: TokenId,
    pub secret: TokenHash,
}

/// Those who share a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Share {
    Token(TokenId),
}

impl Principal {
    pub fn of_token(token: &Token, secret: TokenHash) -> Self {
        Self::with(token, secret, Credential::Token)
    }

    pub fn of_cookie(world: &World, cookie: &SessionCookie) -> Option<Self> {
        let session = world.session(cookie.session)?;
        let session = Some(session).filter(|session| session.hash == cookie.secret.hash())?;
        let token = world.token(session.token)?;
        Some(Self::with(token, session.made_with, |used| {
            Credential::Session(session.id, used)
        }))
    }

    /// The user of a link, who acts for the token that created the link.
    pub fn of_link(world: &World, link: &BlobLink) -> Option<Self> {
        let token = world.token(link.token)?;
        Some(Self::with(token, token.hash, |used| {
            Credential::Link(link.id, used)
        }))
    }

    fn with(
        token: &Token,
        secret: TokenHash,
        credential: impl FnOnce(UsedToken) -> Credential,
    ) -> Self {
        Self {
            name: token.name.clone(),
            credential: credential(UsedToken {
                token: token.id,
                secret,
            }),
        }
    }

    /// The token that the principal acts with.
    pub const fn used(&self) -> UsedToken {
        match self.credential {
            Credential::Token(used) | Credential::Session(_, used) | Credential::Link(_, used) => {
                used
            }
        }
    }

    pub const fn token(&self) -> TokenId {
        self.used().token
    }

    pub const fn session(&self) -> Option<SessionId> {
        match self.credential {
            Credential::Session(session, _) => Some(session),
            Credential::Token(_) | Credential::Link(..) => None,
        }
    }

    pub const fn is_link(&self) -> bool {
        match self.credential {
            Credential::Link(..) => true,
            Credential::Token(_) | Credential::Session(..) => false,
        }
    }

    /// The rights of the principal at `now`. None if the credential is not valid any more.
    pub fn rights(&self, world: &World, now: Timestamp) -> Option<Rights> {
        let UsedToken { token, secret } = self.used();
        let token = world.token(token)?;
        let is_valid = match self.credential {
            Credential::Token(_) => true,
            Credential::Session(session, _) => world.session(session)?.is_valid(now),
            Credential::Link(link, _) => !world.blob_link(link)?.is_over(now),
        };
        (is_valid && token.accepts(&secret, now)).then(|| Rights::from(&**token))
    }

    /// When the secret expires. None if it does not expire.
    pub fn ends_at(&self, world: &World) -> Option<Timestamp> {
        let UsedToken { token, secret } = self.used();
        let token = world.token(token)?;
        let former = token.former.as_ref().filter(|it| it.hash == secret);
        let former = former.map(|it| it.expires_at);
        token.expires_at.into_iter().chain(former).min()
    }

    /// The actor for changes of the principal.
    pub fn actor(&self) -> Actor {
        Actor::Token {
            id: self.token(),
            name: self.name.clone(),
        }
    }

    /// Whose share of a limit the principal uses.
    pub const fn share(&self) -> Share {
        Share::Token(self.token())
    }
}
