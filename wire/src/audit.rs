//! The audit log.

use std::fmt;
use std::net::IpAddr;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::is_zero;

/// An action of a user, or an attempt without a valid credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRecord {
    pub at: DateTime<Utc>,
    /// The name of the user. Absent if authentication failed, for a job and a runner, and in lines of versions without users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Absent if authentication failed, for a job and a runner, and for a person who has signed in without a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<AuditToken>,
    /// The job whose token a step used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Uuid>,
    /// The runner that got secrets with a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<AuditRunner>,
    /// The session, if one was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Uuid>,
    /// The address of the client. Absent if the line stands for several addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Method and path of the request; of the latest one, if the line stands for several.
    pub method: String,
    pub path: String,
    /// The request's id in the daemon's log.
    pub request_id: Uuid,
    /// Absent in lines of versions that did not record actions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<AuditAction>,
    /// The number of further actions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_actions: u64,
}

/// One thing that was made, changed or removed. Only members that fit its kind are present. Values are never shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditAction {
    /// A stable name such as `token_created`.
    pub kind: String,
    /// Of a token, session, registration token, runner, link or user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// Of a token, runner, source, var, secret, artifact or user; the path of a blob.
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
    /// The reason of a suspension or resumption; the reason code of a job's end; the approved commit; the role of a
    /// member; the new owner of a token; the old and new projects of a runner; the projects and labels of a registration
    /// token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The number of repetitions, if the action stands for several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// The action in one line: kind, object, details.
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
    /// Who acted: a user, perhaps with a token, a job or a runner. None if authentication failed.
    pub fn by(&self) -> Option<String> {
        let token = self.token.as_ref().map(|token| token.name.clone());
        let person = match (self.user.clone(), token) {
            (Some(user), Some(token)) => Some(format!("{user} ({token})")),
            (user, token) => user.or(token),
        };
        let job = self.job.map(|job| format!("job {job}"));
        let runner = self.runner.as_ref();
        let runner = runner.map(|runner| format!("runner {}", runner.name));
        person.or(job).or(runner)
    }

    /// All actions, in one line.
    pub fn done(&self) -> String {
        let actions = self.actions.iter().map(ToString::to_string);
        let more = (self.more_actions > 0).then(|| format!("{} more", self.more_actions));
        actions.chain(more).collect::<Vec<_>>().join("; ")
    }
}

/// The runner that acted. It may have been removed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRunner {
    pub id: Uuid,
    /// Its name at that time.
    pub name: String,
}

/// The token that was used. It may have been revoked since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditToken {
    pub id: Uuid,
    /// Its name at that time.
    pub name: String,
}
