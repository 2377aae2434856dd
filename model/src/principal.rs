//! The credential with which a person acts, and its present rights.

use crate::actor::Actor;
use crate::blob::BlobLink;
use crate::rights::Rights;
use crate::session::SessionCookie;
use crate::token::{Token, TokenHash};
use crate::world::World;
use crate::{BlobLinkId, SessionId, Timestamp, TokenId};

/// The actor of a request. Today this is a credential of a token. Later it may also be a person, or the project of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub token: TokenId,
    pub name: String,
    /// Hash of the secret of the presented token, or of the token that created the session.
    pub secret: TokenHash,
    /// The session, if the credential is the cookie of a browser.
    pub session: Option<SessionId>,
    /// The link, if the credential is a link to a blob.
    pub link: Option<BlobLinkId>,
}

impl Principal {
    pub fn of_token(token: &Token, secret: TokenHash) -> Self {
        Self {
            token: token.id,
            name: token.name.clone(),
            secret,
            session: None,
            link: None,
        }
    }

    pub fn of_cookie(world: &World, cookie: &SessionCookie) -> Option<Self> {
        let session = world.session(cookie.session)?;
        let session = Some(session).filter(|session| session.hash == cookie.secret.hash())?;
        Some(Self {
            session: Some(session.id),
            ..Self::of_token(world.token(session.token)?, session.made_with)
        })
    }

    /// The user of a link, who acts for the token that created the link.
    pub fn of_link(world: &World, link: &BlobLink) -> Option<Self> {
        let token = world.token(link.token)?;
        Some(Self {
            link: Some(link.id),
            ..Self::of_token(token, token.hash)
        })
    }

    /// The rights of the principal at `now`. None if the credential is not valid any more.
    pub fn rights(&self, world: &World, now: Timestamp) -> Option<Rights> {
        let token = world.token(self.token)?;
        let has_session = self.session.is_none_or(|id| {
            let session = world.session(id);
            session.is_some_and(|session| session.is_valid(now))
        });
        let has_link = self.link.is_none_or(|id| {
            let link = world.blob_link(id);
            link.is_some_and(|link| !link.is_over(now))
        });
        let is_valid = token.accepts(&self.secret, now) && has_session && has_link;
        is_valid.then(|| Rights::from(&**token))
    }

    /// When the secret expires. None if it does not expire.
    pub fn ends_at(&self, world: &World) -> Option<Timestamp> {
        let token = world.token(self.token)?;
        let former = token.former.as_ref().filter(|it| it.hash == self.secret);
        let former = former.map(|it| it.expires_at);
        token.expires_at.into_iter().chain(former).min()
    }

    /// The actor for changes of the principal.
    pub fn actor(&self) -> Actor {
        Actor::Token {
            id: self.token,
            name: self.name.clone(),
        }
    }

    /// The token whose share of a limit the principal uses.
    pub const fn share(&self) -> TokenId {
        self.token
    }
}
