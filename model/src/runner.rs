//! Registered runners, and registration tokens.

use serde::{Deserialize, Serialize};

use crate::limits::{RUNNER_RENEWAL, RUNNER_RENEWAL_RETRY};
use crate::rights::Rights;
use crate::scope::{Projects, Scope};
use crate::{RegistrationId, RunnerId, Timestamp, TokenHash, TokenId, UserId};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runner {
    pub id: RunnerId,
    /// Unique among runners.
    pub name: String,
    /// The labels that scans may require with `runs_on`.
    pub labels: Vec<String>,
    /// True if it takes only jobs of scans whose `runs_on` has one of its labels.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
    /// The projects whose jobs it gets. Records from before version 6 have none: their runners serve all.
    #[serde(default, skip_serializing_if = "Projects::is_all")]
    pub projects: Projects,
    /// The most jobs that it runs at once, as registered.
    pub capacity: u32,
    pub version: String,
    /// The capabilities that its program reported at its start. Unknown capabilities are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    pub registered_at: Timestamp,
    pub session: Session,
    /// The session before the last renewal, while it is still valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_session: Option<Session>,
}

impl Runner {
    /// True if it serves a project of the caller. Nobody else may learn of it.
    pub fn is_seen_by(&self, rights: &Rights) -> bool {
        rights.see_any(&self.projects)
    }

    /// True if `token` belongs to a session that is valid at `now`.
    pub fn is_held_by(&self, token: TokenHash, now: Timestamp) -> bool {
        let sessions = [Some(&self.session), self.previous_session.as_ref()];
        let mut sessions = sessions.into_iter().flatten();
        sessions.any(|session| session.token == token && now < session.expires_at)
    }

    /// True if the holder of `token` gets a new token at `now`: the current session is old enough, or the holder still
    /// uses the previous token, because the response with the current token was lost.
    pub fn is_renewal_due(&self, token: TokenHash, now: Timestamp) -> bool {
        if self.session.token == token {
            now >= self.session.issued_at + RUNNER_RENEWAL
        } else {
            // The response with the current token had enough time to arrive.
            self.is_held_by(token, now) && now >= self.session.issued_at + RUNNER_RENEWAL_RETRY
        }
    }
}

/// A runner session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub token: TokenHash,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
}

/// A registration token. It can be used once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    pub id: RegistrationId,
    pub token: TokenHash,
    /// The projects of the runner.
    #[serde(default, skip_serializing_if = "Projects::is_all")]
    pub projects: Projects,
    /// The labels of the runner. Without them the runner chooses its labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// The token that made it. The registration ends with the rights of this token. None if the daemon made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maker: Option<TokenId>,
    /// The person who made it without a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// The person's epoch at that time. It ends when the person signs out everywhere.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub epoch: u64,
    pub expires_at: Timestamp,
}

/// True if the caller may register, limit and remove runners of exactly these projects. Runners of all projects also serve
/// future projects.
pub fn may_manage(rights: &Rights, projects: &Projects) -> bool {
    match projects {
        Projects::All => rights.scopes.allow(Scope::RunnerWrite) && rights.projects.is_all(),
        Projects::Only(projects) => projects
            .iter()
            .all(|project| rights.may(Scope::RunnerWrite, *project)),
    }
}
