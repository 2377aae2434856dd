//! Personal access tokens.

use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The body of a new token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// Identifies the actor of everything done with the token.
    pub name: String,
    /// Names such as `job:read`. The answer to an unknown name lists all of them.
    pub scopes: Vec<String>,
    /// The projects of the token, by name or id; absent: the projects of the caller's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projects: Option<Vec<String>>,
    /// Seconds until it expires; absent for 90 days. It expires with the caller's token, if that is earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
    /// True if it stays valid until it is revoked, or until the caller's token expires.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_expires: bool,
    /// A service user that owns it; absent: the caller's user. For administrators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    pub id: Uuid,
    pub name: String,
    /// The owner. The token may do nothing that its owner may not do.
    #[serde(default)]
    pub user: String,
    pub scopes: Vec<String>,
    /// The names of its projects; absent: all projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projects: Option<Vec<String>>,
    pub created_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// True if it expires within a week, or has expired.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expires_soon: bool,
    /// When the previous secret, replaced by the last regeneration, stops being accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former_expires_at: Option<DateTime<Utc>>,
    /// The last day of use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<NaiveDate>,
}

/// The body of a regeneration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegenerateToken {
    /// Seconds for which the current secret is still accepted; up to a day.
    #[serde(default)]
    pub overlap_seconds: u64,
    /// Seconds until the token expires; absent: unchanged. A caller whose own token expires gives no later end than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
}

/// The body that gives a token to another user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveToken {
    pub user: String,
}

/// A new token with its secret, which only this answer has.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedToken {
    #[serde(flatten)]
    pub token: Token,
    /// The value for `SERVICE_TOKEN`.
    pub secret: String,
}

redacted!(CreatedToken { token });
