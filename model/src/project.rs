//! What the workflows of one project share beside their files: vars, and secrets in sealed form.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sealing::{Place, Sealed, SealingError, SealingKey, SecretValue};
use crate::{Actor, ProjectId, Timestamp};

/// The vars of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectVars {
    /// The project.
    pub project: ProjectId,
    /// The newest version that was given; none is ever given again, also after a deletion.
    pub latest_version: u64,
    /// By name.
    pub vars: BTreeMap<String, Var>,
}

/// A var.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Var {
    /// What expressions read.
    pub value: String,
    /// Its latest edit.
    pub edit: Edit,
}

/// The secrets of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectSecrets {
    /// The project.
    pub project: ProjectId,
    /// The newest version that was given; none is ever given again, also after a deletion.
    pub latest_version: u64,
    /// By name.
    pub secrets: BTreeMap<String, StoredSecret>,
}

/// A secret as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSecret {
    /// Bytes of the value, which bound what a project may hold.
    pub bytes: u64,
    /// The value.
    pub sealed: Sealed,
    /// Its latest edit.
    pub edit: Edit,
}

/// Who gave a value, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Increases with every edit of any value in the same record.
    pub version: u64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: Actor,
}

impl ProjectVars {
    /// A project without vars.
    pub const fn none(project: ProjectId) -> Self {
        Self {
            project,
            latest_version: 0,
            vars: BTreeMap::new(),
        }
    }
}

impl ProjectSecrets {
    /// A project without secrets.
    pub const fn none(project: ProjectId) -> Self {
        Self {
            project,
            latest_version: 0,
            secrets: BTreeMap::new(),
        }
    }

    /// Opens a secret; none when there is none of that name.
    pub fn open(&self, name: &str, key: &SealingKey) -> Option<Result<SecretValue, SealingError>> {
        let secret = self.secrets.get(name)?;
        let place = Place {
            project: self.project,
            name,
            version: secret.edit.version,
        };
        Some(secret.sealed.open(key, place))
    }
}
