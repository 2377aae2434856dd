//! The rights of a caller.

use std::collections::BTreeMap;

use crate::role::Role;
use crate::roles::Roles;
use crate::scope::{Projects, Scope, Scopes};
use crate::token::Token;
use crate::user::User;
use crate::{ProjectId, UserId};

/// What a caller may do, and in which projects: the scopes and projects of a credential, limited to the roles of the
/// person who uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// What the caller may do in at least one project.
    pub scopes: Scopes,
    /// The projects that the caller sees.
    pub projects: Projects,
    /// The caller's roles. None if only scopes and projects limit the caller, as for an administrator.
    pub roles: Option<BTreeMap<ProjectId, Role>>,
}

impl Rights {
    /// All rights in the installation.
    pub fn admin() -> Self {
        Self::limited(Scopes::admin(), Projects::All)
    }

    /// Rights that no role limits.
    pub const fn limited(scopes: Scopes, projects: Projects) -> Self {
        Self {
            scopes,
            projects,
            roles: None,
        }
    }

    /// The rights of a user: with a token of this user, or as the whole person.
    pub fn of(user: &User, token: Option<&Token>) -> Self {
        let own = match token {
            Some(token) => Self::limited(token.scopes.clone(), token.projects.clone()),
            None => Self::admin(),
        };
        if user.is_administrator {
            return own;
        }
        let roles = user.roles.iter();
        let roles: BTreeMap<ProjectId, Role> =
            roles.filter(|(project, _)| own.sees(*project)).collect();
        let strongest = roles.values().max();
        let has_role = |scope| strongest.is_some_and(|role| role.allows(scope));
        let scopes = Scope::ALL.iter().copied().filter(|scope| {
            own.scopes.allow(*scope) && (*scope == Scope::TokenWrite || has_role(*scope))
        });
        Self {
            scopes: scopes.collect(),
            projects: Projects::Only(roles.keys().copied().collect()),
            roles: Some(roles),
        }
    }

    /// These scopes in one project.
    pub fn of_project(scopes: Scopes, project: ProjectId) -> Self {
        Self::limited(scopes, Projects::Only([project].into()))
    }

    pub fn may(&self, scope: Scope, project: ProjectId) -> bool {
        let has_role = |roles: &BTreeMap<ProjectId, Role>| {
            roles.get(&project).is_some_and(|role| role.allows(scope))
        };
        self.scopes.allow(scope) && self.sees(project) && self.roles.as_ref().is_none_or(has_role)
    }

    pub fn sees(&self, project: ProjectId) -> bool {
        self.projects.contain(project)
    }

    /// True if the caller sees one of these projects.
    pub fn see_any(&self, projects: &Projects) -> bool {
        match projects {
            Projects::All => true,
            Projects::Only(projects) => projects.iter().any(|project| self.sees(*project)),
        }
    }

    /// May manage the whole installation.
    pub fn is_administrator(&self) -> bool {
        self.scopes.allow(Scope::Admin)
    }

    /// The same rights in only the projects in which the caller has this scope. So whoever sees a project with the result
    /// has the scope there.
    #[must_use]
    pub fn within(mut self, scope: Scope) -> Self {
        if let (Some(roles), Projects::Only(projects)) = (&self.roles, &mut self.projects)
            && Role::least_with(scope).is_some()
        {
            projects.retain(|project| roles.get(project).is_some_and(|it| it.allows(scope)));
        }
        self
    }

    /// True if no role of the other rights is missing or weaker here.
    pub fn has_roles_of(&self, other: &Self) -> bool {
        match (&self.roles, &other.roles) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => other
                .iter()
                .all(|(project, role)| own.get(project) >= Some(role)),
        }
    }

    /// True if these are at least the scopes and projects of the other rights.
    pub fn cover(&self, other: &Self) -> bool {
        self.scopes.cover(&other.scopes) && self.projects.cover(&other.projects)
    }

    /// True if the caller may give these roles, and manage a user who has no other rights than them.
    pub fn may_give(&self, is_administrator: bool, roles: &Roles) -> bool {
        let manages = |(project, _)| self.may(Scope::MemberWrite, project);
        self.is_administrator()
            || !is_administrator && !roles.is_empty() && roles.iter().all(manages)
    }
}

/// Who manages tokens. Nobody manages a token with which one could do more than with the own credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenManager {
    pub user: UserId,
    /// Administrators also manage tokens of others.
    pub is_administrator: bool,
    /// The limits of the own credential, without the roles of its owner.
    pub scopes: Scopes,
    pub projects: Projects,
}

impl TokenManager {
    /// The owner of the installation, with all rights.
    pub fn owner() -> Self {
        Self {
            user: UserId::OWNER,
            is_administrator: true,
            scopes: Scopes::admin(),
            projects: Projects::All,
        }
    }

    pub fn manages(&self, token: &Token) -> bool {
        (self.is_administrator || token.owner == self.user)
            && self.scopes.cover(&token.scopes)
            && self.projects.cover(&token.projects)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::Timestamp;

    fn project(number: u128) -> ProjectId {
        ProjectId::from_uuid(Uuid::from_u128(number))
    }

    fn member(roles: &[(u128, Role)]) -> User {
        let roles = roles.iter().map(|(number, role)| (project(*number), *role));
        User {
            is_administrator: false,
            roles: roles.collect(),
            ..User::owner(Timestamp::UNIX_EPOCH)
        }
    }

    /// Each pair of roles, in two projects, and a third project of others.
    #[test]
    fn nobody_has_the_rights_of_a_role_in_another_project() {
        for first in Role::ALL {
            for second in Role::ALL {
                let rights = Rights::of(&member(&[(1, first), (2, second)]), None);
                for scope in Scope::ALL.iter().copied() {
                    assert_eq!(
                        rights.may(scope, project(1)),
                        first.allows(scope),
                        "{scope}"
                    );
                    assert_eq!(
                        rights.may(scope, project(2)),
                        second.allows(scope),
                        "{scope}"
                    );
                    assert!(!rights.may(scope, project(3)));
                    if Role::least_with(scope).is_some() {
                        let within = rights.clone().within(scope);
                        assert_eq!(within.sees(project(1)), first.allows(scope));
                        assert_eq!(within.sees(project(2)), second.allows(scope));
                        assert!(!within.sees(project(3)));
                    }
                }
                assert!(!rights.is_administrator());
                assert!(!rights.scopes.allow(Scope::Metrics));
            }
        }
    }
}
