//! The rights with which a request began. They are checked again in each decision of the request, and in its streams.

use crate::decide::Refusal;
use crate::principal::Principal;
use crate::rights::Rights;
use crate::scope::Scope;
use crate::world::World;
use crate::{ProjectId, Timestamp};

/// Who sends a request, and the rights that the request needs until its end.
#[derive(Debug, Clone)]
pub struct Guard {
    pub by: Principal,
    /// The scope of the request. The caller sees only the projects in which it has this scope, so a thing that the request
    /// has found may also be changed. None if any caller may send the request.
    scope: Option<Scope>,
    /// The rights at the beginning.
    first: Rights,
}

impl Guard {
    /// Begins a request with the present rights of the caller.
    pub fn begin((by, rights): (Principal, Rights), scope: Option<Scope>) -> Self {
        let first = within(rights, scope);
        Self { by, scope, first }
    }

    /// The present rights, in the projects of the request. A request that ends its own credential still gets its answer with
    /// the first rights.
    pub fn rights(&self, world: &World, now: Timestamp) -> Rights {
        let rights = self.by.rights(world, now);
        rights.map_or_else(|| self.first.clone(), |rights| within(rights, self.scope))
    }

    /// The present rights in all projects of the caller.
    pub fn all_rights(&self, world: &World, now: Timestamp) -> Rights {
        let rights = self.by.rights(world, now);
        rights.unwrap_or_else(|| self.first.clone())
    }

    /// The scope that the caller lacks in this project, although the caller sees what the request is about.
    pub fn lacks(&self, project: ProjectId, world: &World, now: Timestamp) -> Option<Scope> {
        let (scope, rights) = (self.scope?, self.by.rights(world, now)?);
        let sees = rights.may(scope.reading(), project);
        (sees && !rights.may(scope, project)).then_some(scope)
    }

    /// Checks that the caller still has the first rights. Bodies, waits and streams may take hours.
    pub fn check(&self, world: &World, now: Timestamp) -> Result<(), Refusal> {
        let rights = self.by.rights(world, now).ok_or(Refusal::NoRights)?;
        let rights = within(rights, self.scope);
        // A request with a scope found only projects in which the caller has it. Another one asks the roles itself.
        let has_roles = self.scope.is_some() || rights.has_roles_of(&self.first);
        let has_all = has_roles && rights.cover(&self.first);
        has_all.then_some(()).ok_or(Refusal::RightsReduced)
    }
}

fn within(rights: Rights, scope: Option<Scope>) -> Rights {
    match scope {
        Some(scope) => rights.within(scope),
        None => rights,
    }
}
