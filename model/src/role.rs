//! The roles of people in projects. A role is a set of scopes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::scope::Scope;

/// What a person may do in a project. Each role includes the roles before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sees everything in the project.
    Viewer,
    /// Starts and cancels jobs, suspends workflows, and stores blobs.
    Operator,
    /// Manages the project.
    Maintainer,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Maintainer];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Maintainer => "maintainer",
        }
    }

    pub fn allows(self, scope: Scope) -> bool {
        Self::least_with(scope).is_some_and(|least| self >= least)
    }

    /// The weakest role that allows a scope in its project. None if only administrators have the scope, or if it is not
    /// about a project.
    pub const fn least_with(scope: Scope) -> Option<Self> {
        match scope {
            Scope::ProjectRead
            | Scope::WorkflowRead
            | Scope::JobRead
            | Scope::BlobRead
            | Scope::RunnerRead => Some(Self::Viewer),
            Scope::Dispatch
            | Scope::JobCancel
            | Scope::WorkflowSuspend
            | Scope::ConditionWrite
            | Scope::BlobWrite
            | Scope::NotifyRead
            | Scope::CallbackRead
            | Scope::PayloadRead => Some(Self::Operator),
            Scope::ProjectWrite
            | Scope::WorkflowWrite
            | Scope::JobWrite
            | Scope::SecretWrite
            | Scope::NotifyWrite
            | Scope::CallbackWrite
            | Scope::PayloadWrite
            | Scope::RunnerWrite
            | Scope::MemberWrite => Some(Self::Maintainer),
            Scope::TokenWrite | Scope::Metrics | Scope::Admin | Scope::CallbackOwn => None,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name is not a role.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a role is viewer, operator or maintainer")]
pub struct ParseRoleError;

impl FromStr for Role {
    type Err = ParseRoleError;

    fn from_str(name: &str) -> Result<Self, ParseRoleError> {
        let mut all = Self::ALL.into_iter();
        all.find(|role| role.name() == name).ok_or(ParseRoleError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stronger_role_allows_everything_that_a_weaker_role_allows() {
        for scope in Scope::ALL {
            let allowed = Role::ALL.map(|role| role.allows(*scope));
            assert!(allowed.is_sorted(), "{scope}: {allowed:?}");
            // Who changes something also sees it.
            let sees = |role: Role| !role.allows(*scope) || role.allows(scope.reading());
            assert!(Role::ALL.into_iter().all(sees), "{scope}");
        }
    }

    #[test]
    fn names_can_be_parsed_again() {
        for role in Role::ALL {
            assert_eq!(role.name().parse(), Ok(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.name());
        }
        assert!("owner".parse::<Role>().is_err());
    }
}
