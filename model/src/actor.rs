//! Who caused a change.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{RunnerId, TokenId};

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
    },
    Runner {
        id: RunnerId,
        /// The name of the runner at that time.
        name: String,
    },
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Daemon => f.write_str("everscand"),
            Self::Token { name, .. } => write!(f, "token {name}"),
            Self::Runner { name, .. } => write!(f, "runner {name}"),
        }
    }
}
