//! Sessions of people: signed-in browsers, and devices with the command line.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::limits::{RECENT_SIGN_IN, SESSION_IDLE, SESSION_LIFE};
use crate::principal::UsedToken;
use crate::token::{ParseTokenError, PlainToken, TokenHash};
use crate::{SessionId, Timestamp, UserId};

/// A signed-in browser or device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrowserSession {
    pub id: SessionId,
    #[serde(default = "UserId::owner")]
    pub user: UserId,
    /// The user's epoch at that time. The session ends when the user's epoch is raised.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub epoch: u64,
    /// The token that created the session. The session may do what the token may, and ends with it and with its secret. None
    /// for a session of the whole person.
    #[serde(flatten)]
    pub with: Option<UsedToken>,
    /// Hash of the secret in the cookie, or of the device's secret.
    pub hash: TokenHash,
    /// The browser's description of itself.
    pub device: String,
    pub address: IpAddr,
    pub created_at: Timestamp,
    /// When the person last proved who it is. None: when the session was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_in_at: Option<Timestamp>,
    /// When it was last used, to the hour.
    pub seen_at: Timestamp,
}

impl BrowserSession {
    /// When the session expires if it is not used any more. A session that another one has made ends no later than that one.
    pub fn expires_at(&self) -> Timestamp {
        (self.seen_at + SESSION_IDLE).min(self.proven_at() + SESSION_LIFE)
    }

    /// When the person or the token was last proven.
    pub fn proven_at(&self) -> Timestamp {
        self.signed_in_at.unwrap_or(self.created_at)
    }

    /// True if the person has signed in just now, which changes of credentials need.
    pub fn is_recent(&self, now: Timestamp) -> bool {
        now - self.proven_at() < RECENT_SIGN_IN
    }

    /// True if the session has not expired. See also [`crate::World::is_signed_in`].
    pub fn is_valid(&self, now: Timestamp) -> bool {
        now < self.expires_at()
    }
}

/// The value of a session's cookie.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionCookie {
    pub session: SessionId,
    pub secret: PlainToken,
}

impl SessionCookie {
    /// # Errors
    /// If the text has not the form of our cookie. Only the form is checked.
    pub fn parse(text: &str) -> Result<Self, ParseTokenError> {
        let (session, secret) = text.split_once('.').ok_or(ParseTokenError)?;
        Ok(Self {
            session: session.parse().map_err(|_| ParseTokenError)?,
            secret: PlainToken::parse_browser(secret)?,
        })
    }

    pub fn reveal(&self) -> String {
        format!("{}.{}", self.session, self.secret.reveal())
    }
}

impl fmt::Debug for SessionCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCookie")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::moment::SeededEntropy;

    #[test]
    fn a_cookie_can_be_parsed_again_and_is_not_printed() {
        let cookie = SessionCookie {
            session: SessionId::from_uuid(Uuid::from_u128(7)),
            secret: PlainToken::browser(&mut SeededEntropy::new(1)),
        };
        assert_eq!(SessionCookie::parse(&cookie.reveal()), Ok(cookie.clone()));
        assert!(!format!("{cookie:?}").contains(cookie.secret.reveal()));
        for bad in [
            "",
            ".",
            "x.y",
            &cookie.reveal()[1..],
            &format!("{}0", cookie.reveal()),
        ] {
            assert!(SessionCookie::parse(bad).is_err(), "{bad}");
        }
    }
}
