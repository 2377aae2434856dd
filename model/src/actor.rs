//! Who caused a change.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::principal::Share;
use crate::{JobId, ProjectId, RunnerId, TokenId, UserId};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Actor {
    /// The daemon itself: a schedule, a deadline, a push.
    Daemon,
    /// The holder of a personal access token.
    Token {
        id: TokenId,
        /// The name of the token at that time.
        name: String,
        /// The owner of the token at that time.
        #[serde(default = "UserId::owner")]
        user: UserId,
    },
    /// A person who has signed in.
    User { id: UserId, name: String },
    Runner {
        id: RunnerId,
        /// The name of the runner at that time.
        name: String,
    },
    /// A step of a running job, with the token of this job.
    Job { id: JobId },
}

impl Actor {
    /// Whose share of a limit a job in `project` takes that this actor has started. None for the daemon's own jobs.
    pub const fn share(&self, project: ProjectId) -> Option<Share> {
        match self {
            Self::Token { user: id, .. } | Self::User { id, .. } => Some(Share::User(*id)),
            Self::Job { .. } => Some(Share::Project(project)),
            Self::Daemon | Self::Runner { .. } => None,
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Daemon => f.write_str("everscand"),
            Self::Token { name, .. } => write!(f, "token {name}"),
            Self::User { name, .. } => write!(f, "user {name}"),
            Self::Runner { name, .. } => write!(f, "runner {name}"),
            Self::Job { id } => write!(f, "job {id}"),
        }
    }
}
