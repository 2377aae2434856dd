//! Projects: their vars and secrets.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A project: what one source's workflows share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Its id; expressions see it as `project.id`.
    pub id: Uuid,
    /// Its name, which is its source's.
    pub name: String,
    /// Whether the daemon's configuration still names the source.
    pub configured: bool,
    /// How many vars it has.
    pub vars: u64,
    /// How many secrets it has.
    pub secrets: u64,
}

/// The body that gives a var or secret its value.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetValue {
    /// The value, at most 64 KiB.
    pub value: String,
}

/// It may be a secret's.
impl fmt::Debug for SetValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetValue").finish_non_exhaustive()
    }
}

/// A var or secret in a list, or a secret that was set: everything but the value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// What expressions call it.
    pub name: String,
    /// Increases whenever it is set.
    pub version: u64,
    /// When it was set.
    pub updated_at: DateTime<Utc>,
    /// Who set it.
    pub updated_by: String,
}

/// A var with its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Var {
    /// Everything but the value.
    #[serde(flatten)]
    pub named: Named,
    /// What expressions read.
    pub value: String,
}
