//! Sessions of browsers.

use std::fmt;
use std::net::IpAddr;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The body of a sign-in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSession {
    /// The secret of an access token.
    pub token: String,
}

impl fmt::Debug for CreateSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateSession").finish_non_exhaustive()
    }
}

/// A browser that is signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    pub id: Uuid,
    /// What the browser says it is.
    pub device: String,
    /// Where it signed in from.
    pub address: IpAddr,
    pub created_at: DateTime<Utc>,
    /// When it was last used, to the hour.
    pub seen_at: DateTime<Utc>,
    /// When it ends, if nobody uses it meanwhile.
    pub expires_at: DateTime<Utc>,
    /// Whether it is the one of this request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub current: bool,
}
