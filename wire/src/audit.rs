//! The audit log.

use std::fmt;
use std::net::IpAddr;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::is_zero;

/// What somebody did with a token, or tried to do without a valid one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRecord {
    pub at: DateTime<Utc>,
    /// Absent if nobody was let in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<AuditToken>,
    /// The session of a browser, if it was done with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Uuid>,
    /// The address that the request came from. Absent if the line stands for several addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The method and the path of the request; of the latest one, if the line stands for several.
    pub method: String,
    pub path: String,
    /// The request's id in the daemon's log.
    pub request_id: Uuid,
    /// What was done. Lines of versions before this member do not say it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<AuditAction>,
    /// Actions beyond these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_actions: u64,
}

/// One thing that was made, changed or removed. It has the members that its kind needs. Values are never shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditAction {
    /// A stable name such as `token_created`.
    pub kind: String,
    /// Of a token, session, registration token, runner or link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// Of a token, runner, source, var, secret or artifact; the path of a blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// As `SOURCE/NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Uuid>,
    /// Of a var or secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Of a new token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// The words of whoever suspends or resumes; the code of the reason why a job ended; the commit that is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How often, if one action stands for several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// The action in one line: its kind, and then what it was done to.
impl fmt::Display for AuditAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            id,
            name,
            project,
            workflow,
            scan,
            job,
            version,
            scopes,
            expires_at: _,
            reason,
            count,
        } = self;
        f.write_str(kind)?;
        let words = [project, workflow, scan, name];
        for word in words.into_iter().flatten() {
            write!(f, " {word}")?;
        }
        match (job, id, name) {
            (Some(id), _, _) | (None, Some(id), None) => write!(f, " {id}")?,
            (None, Some(_), Some(_)) | (None, None, _) => {}
        }
        if let Some(version) = version {
            write!(f, " version {version}")?;
        }
        if !scopes.is_empty() {
            write!(f, " with {}", scopes.join(", "))?;
        }
        if let Some(count) = count {
            write!(f, " {count} times")?;
        }
        match reason {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}

impl AuditRecord {
    /// What was done, in one line.
    pub fn done(&self) -> String {
        let actions = self.actions.iter().map(ToString::to_string);
        let more = (self.more_actions > 0).then(|| format!("{} more", self.more_actions));
        actions.chain(more).collect::<Vec<_>>().join("; ")
    }
}

/// The token with which something was done. It may be revoked since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditToken {
    pub id: Uuid,
    /// Its name at that time.
    pub name: String,
}
