//! Sessions of browsers.

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

/// The empty body of a request for a sign-in link.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSignInLink {}

/// A new link that signs in one browser.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignInLink {
    /// The part after the daemon's address. It is shown once, and works once for anyone who has it.
    pub url_path: String,
    pub expires_at: DateTime<Utc>,
}

/// A signed-in browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    pub id: Uuid,
    /// As the browser describes itself.
    pub device: String,
    /// The address at sign-in.
    pub address: IpAddr,
    pub created_at: DateTime<Utc>,
    /// The last use, rounded to the hour.
    pub seen_at: DateTime<Utc>,
    /// When it ends, unless it is used before.
    pub expires_at: DateTime<Utc>,
    /// True for the session of this request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub current: bool,
}

redacted!(CreateSession {}, SignInLink { expires_at });
