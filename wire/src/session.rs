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

/// The empty body of a request for a link that signs one browser in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSignInLink {}

/// A new link that signs one browser in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignInLink {
    /// What comes behind the address of the daemon. It is shown once, and good once for anybody who has it.
    pub url_path: String,
    pub expires_at: DateTime<Utc>,
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

redacted!(CreateSession {}, SignInLink { expires_at });
