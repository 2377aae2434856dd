//! Users, their roles in projects, and the caller.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

names! {
    /// What a user may do in a project. Each role includes those before it.
    #[derive(PartialOrd, Ord)]
    pub enum Role {
        /// Reads everything but secrets.
        Viewer = "viewer",
        /// Also starts and cancels jobs, suspends workflows, writes blobs and acknowledges conditions.
        Operator = "operator",
        /// Also changes the project: its vars, secrets, runners, channels and members.
        Maintainer = "maintainer",
    }
}

names! {
    pub enum UserKind {
        Person = "person",
        /// A program. It has tokens, and neither a password nor sessions.
        Service = "service",
    }
}

names! {
    pub enum UserState {
        /// The invitation is not used yet.
        Invited = "invited",
        Active = "active",
        /// Neither signs in nor uses tokens, until an administrator undoes it.
        Deactivated = "deactivated",
    }
}

/// A person or a program with rights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct User {
    /// Never given again, even after the user is deleted.
    pub name: String,
    pub kind: UserKind,
    pub state: UserState,
    /// True if the user may do everything, in all projects.
    pub administrator: bool,
    pub has_password: bool,
    /// By the name of the project.
    pub roles: BTreeMap<String, Role>,
    pub created_at: DateTime<Utc>,
    /// The last day of use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_on: Option<NaiveDate>,
    /// When the open invitation or reset link ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_expires_at: Option<DateTime<Utc>>,
}

/// The body of a new user.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateUser {
    /// 1 to 64 of `a-z`, `0-9`, `.`, `_` and `-`; it begins with a letter or digit.
    pub name: String,
    /// True for a program, which gets no invitation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub service: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub administrator: bool,
    /// By the name or id of the project.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, Role>,
}

/// A new user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedUser {
    pub user: User,
    /// The invitation of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<UserLink>,
}

/// A link with which a user sets a new password, once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserLink {
    /// The part after the daemon's address. It is shown once, and works once for anyone who has it.
    pub url_path: String,
    pub expires_at: DateTime<Utc>,
}

/// The body that changes a user. Absent members stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateUser {
    /// False deactivates the user: sessions, tokens and links end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub administrator: Option<bool>,
}

/// A user with a role in a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    pub user: String,
    pub kind: UserKind,
    pub state: UserState,
    pub role: Role,
}

/// The body that gives a user a role in a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetMember {
    pub role: Role,
}

/// Who sends this request, and what the request may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Me {
    /// Absent for a job, which has no user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Whether the user is an administrator.
    pub administrator: bool,
    /// The roles of the user, by the name of the project.
    pub roles: BTreeMap<String, Role>,
    pub credential: CredentialKind,
    /// The name of the token, the device of the session, or the id of the job.
    pub name: String,
    /// What the credential may do. What the user may not do in a project is refused there all the same.
    pub scopes: Vec<String>,
    /// The names of the projects of the credential; absent: all projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projects: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
}

names! {
    /// How a request proves who sends it.
    pub enum CredentialKind {
        Token = "token",
        /// The cookie of a browser, or the secret of a device.
        Session = "session",
        /// The token that the daemon gives to each job.
        Job = "job",
    }
}

/// The body that sets a new password. It ends all other sessions.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePassword {
    /// 15 to 256 characters.
    pub password: String,
}

redacted!(UserLink { expires_at }, ChangePassword {});
