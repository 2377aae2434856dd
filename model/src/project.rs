//! The shared values of a project's workflows: vars, and encrypted secrets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sealing::{KeyId, Place, Sealed, SealingError, SecretValue};
use crate::sealing_keys::SealingKeys;
use crate::{Actor, ProjectId, Timestamp};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectVars {
    pub project: ProjectId,
    /// The newest version. Versions are never reused, not even after a deletion.
    pub latest_version: u64,
    pub vars: BTreeMap<String, Var>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Var {
    pub value: String,
    pub edit: Edit,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectSecrets {
    pub project: ProjectId,
    /// The newest version. Versions are never reused, not even after a deletion.
    pub latest_version: u64,
    pub secrets: BTreeMap<String, StoredSecret>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSecret {
    /// Bytes of the plain value. A project's total is limited.
    pub bytes: u64,
    pub sealed: Sealed,
    pub edit: Edit,
}

/// The author and the time of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Increases with each edit in the same record.
    pub version: u64,
    pub at: Timestamp,
    pub by: Actor,
}

impl ProjectVars {
    pub const fn none(project: ProjectId) -> Self {
        Self {
            project,
            latest_version: 0,
            vars: BTreeMap::new(),
        }
    }
}

impl ProjectSecrets {
    pub const fn none(project: ProjectId) -> Self {
        Self {
            project,
            latest_version: 0,
            secrets: BTreeMap::new(),
        }
    }

    /// Decrypts a secret. None if there is no secret of this name.
    pub fn open(
        &self,
        name: &str,
        keys: &SealingKeys,
    ) -> Option<Result<SecretValue, SealingError>> {
        let secret = self.secrets.get(name)?;
        let place = self.place(name, secret);
        Some(keys.open(&secret.sealed, place))
    }

    pub(crate) fn place<'a>(&self, name: &'a str, secret: &StoredSecret) -> Place<'a> {
        Place {
            project: self.project,
            name,
            version: secret.edit.version,
        }
    }

    /// The number of these secrets that are sealed with a key.
    pub fn sealed_with(&self, key: &KeyId) -> usize {
        let keys = self.secrets.values().map(|secret| &secret.sealed.key);
        keys.filter(|sealed| *sealed == key).count()
    }
}
