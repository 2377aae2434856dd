//! Projects: their vars and secrets.

use std::fmt;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A project: the vars and secrets that one source's workflows share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    /// Expressions see it as `project.id`.
    pub id: Uuid,
    /// The source's name.
    pub name: String,
    /// Whether the daemon's configuration still names the source.
    pub configured: bool,
    /// The number of vars.
    pub vars: u64,
    /// The number of secrets.
    pub secrets: u64,
    /// Vars that scans name and that are not set. Only in the answer about one project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_vars: Vec<MissingName>,
    /// The same for secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_secrets: Vec<MissingName>,
}

/// A var or secret that is not set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingName {
    pub name: String,
    /// The scans that name it.
    pub used_by: Vec<ScanName>,
}

/// A scan of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScanName {
    /// The workflow as `source/name`.
    pub workflow: String,
    pub scan: String,
}

/// The body that sets a var or secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetValue {
    /// At most 64 KiB.
    pub value: String,
}

/// Hides the value, which may be a secret.
impl fmt::Debug for SetValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetValue").finish_non_exhaustive()
    }
}

/// A var or secret without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Named {
    /// The name in expressions.
    pub name: String,
    /// Increases each time it is set.
    pub version: u64,
    pub updated_at: DateTime<Utc>,
    /// The actor who set it.
    pub updated_by: String,
    /// The scans of active workflows that name it, by workflow and name.
    #[serde(default)]
    pub used_by: Vec<ScanName>,
}

/// A var with its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Var {
    #[serde(flatten)]
    pub named: Named,
    pub value: String,
}
