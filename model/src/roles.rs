//! The roles of a user.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ProjectId;
use crate::role::Role;

/// A role for each project of a user, in the order of the projects. An installation may have 10,000 users in memory, and
/// a map of two roles takes seven times the space.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<ProjectId, Role>", into = "BTreeMap<ProjectId, Role>")]
pub struct Roles(Box<[(ProjectId, Role)]>);

impl Roles {
    pub fn get(&self, project: ProjectId) -> Option<Role> {
        let at = self
            .0
            .binary_search_by_key(&project, |(project, _)| *project);
        Some(self.0.get(at.ok()?)?.1)
    }

    /// Gives the role in a project, or takes it.
    pub fn set(&mut self, project: ProjectId, role: Option<Role>) {
        let others = self.iter().filter(|(other, _)| *other != project);
        *self = others.chain(role.map(|role| (project, role))).collect();
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ProjectId, Role)> {
        self.0.iter().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(ProjectId, Role)> for Roles {
    fn from_iter<I: IntoIterator<Item = (ProjectId, Role)>>(roles: I) -> Self {
        BTreeMap::from_iter(roles).into()
    }
}

impl<const N: usize> From<[(ProjectId, Role); N]> for Roles {
    fn from(roles: [(ProjectId, Role); N]) -> Self {
        roles.into_iter().collect()
    }
}

impl From<BTreeMap<ProjectId, Role>> for Roles {
    fn from(roles: BTreeMap<ProjectId, Role>) -> Self {
        Self(roles.into_iter().collect())
    }
}

impl From<Roles> for BTreeMap<ProjectId, Role> {
    fn from(roles: Roles) -> Self {
        roles.iter().collect()
    }
}
