//! Registered runners and the registrations that wait for one.

use serde::{Deserialize, Serialize};

use crate::limits::{RUNNER_RENEWAL, RUNNER_RENEWAL_RETRY};
use crate::{RegistrationId, RunnerId, Timestamp, TokenHash};

/// A registered runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runner {
    /// Its id.
    pub id: RunnerId,
    /// Unique among runners.
    pub name: String,
    /// What it offers to `runs_on`.
    pub labels: Vec<String>,
    /// How many jobs it runs at once, as registered.
    pub capacity: u32,
    /// Its version at registration.
    pub version: String,
    /// When it was registered.
    pub registered_at: Timestamp,
    /// Its session.
    pub session: Session,
    /// The session before the last renewal, while it is still good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_session: Option<Session>,
}

impl Runner {
    /// Whether `token` is one of its sessions' at `now`.
    pub fn is_held_by(&self, token: TokenHash, now: Timestamp) -> bool {
        let sessions = [Some(&self.session), self.previous_session.as_ref()];
        let mut sessions = sessions.into_iter().flatten();
        sessions.any(|session| session.token == token && now < session.expires_at)
    }

    /// Whether the holder of `token` gets a new one at `now`: the current session is old enough, or the holder still
    /// comes with the one before, so that the answer with the current token must have been lost.
    pub fn is_renewal_due(&self, token: TokenHash, now: Timestamp) -> bool {
        if self.session.token == token {
            now >= self.session.issued_at + RUNNER_RENEWAL
        } else {
            // The answer with the current token has had the time to arrive.
            self.is_held_by(token, now) && now >= self.session.issued_at + RUNNER_RENEWAL_RETRY
        }
    }
}

/// A runner session token's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Hash of the token.
    pub token: TokenHash,
    /// When it was given out.
    pub issued_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// A registration token waiting for its runner. Used once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// Its id.
    pub id: RegistrationId,
    /// Hash of the token.
    pub token: TokenHash,
    /// When it ends.
    pub expires_at: Timestamp,
}
