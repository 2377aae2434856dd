//! The audit log.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A change that somebody made with a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRecord {
    pub at: DateTime<Utc>,
    pub token: AuditToken,
    /// The session of a browser, if the change was made with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Uuid>,
    /// The address that the request came from.
    pub address: IpAddr,
    /// The method and the path of the request.
    pub method: String,
    pub path: String,
    /// The request's id in the daemon's log.
    pub request_id: Uuid,
}

/// The token with which a change was made. It may be revoked since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditToken {
    pub id: Uuid,
    /// Its name at that time.
    pub name: String,
}
