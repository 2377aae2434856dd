//! Registered runners, and registration tokens.

use serde::{Deserialize, Serialize};

use crate::limits::{RUNNER_RENEWAL, RUNNER_RENEWAL_RETRY};
use crate::{RegistrationId, RunnerId, Timestamp, TokenHash};

/// A registered runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runner {
    pub id: RunnerId,
    /// Unique among runners.
    pub name: String,
    /// Matched with `runs_on`.
    pub labels: Vec<String>,
    /// Whether it takes only jobs of scans whose `runs_on` names one of its labels.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
    /// How many jobs it runs at once, as registered.
    pub capacity: u32,
    pub version: String,
    /// What its program can do, by its own word when it started. Those that this version does not know are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    pub registered_at: Timestamp,
    pub session: Session,
    /// The session before the last renewal, while it is still valid.
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

    /// Whether the holder of `token` gets a new one at `now`. That is so when the current session is old enough, or
    /// when the holder still uses the previous token, because the answer with the current one must have been lost.
    pub fn is_renewal_due(&self, token: TokenHash, now: Timestamp) -> bool {
        if self.session.token == token {
            now >= self.session.issued_at + RUNNER_RENEWAL
        } else {
            // The answer with the current token has had time to arrive.
            self.is_held_by(token, now) && now >= self.session.issued_at + RUNNER_RENEWAL_RETRY
        }
    }
}

/// A runner session token's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub token: TokenHash,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// A registration token. It can be used once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    pub id: RegistrationId,
    pub token: TokenHash,
    /// When it ends.
    pub expires_at: Timestamp,
}
