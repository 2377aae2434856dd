//! The rights of a caller.

use crate::ProjectId;
use crate::scope::{Projects, Scope, Scopes};
use crate::token::Token;

/// What a caller may do, and in which projects. Today these are the scopes and projects of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    pub scopes: Scopes,
    pub projects: Projects,
}

impl Rights {
    /// All rights in the installation.
    pub fn admin() -> Self {
        Self {
            scopes: Scopes::admin(),
            projects: Projects::All,
        }
    }

    /// These scopes in one project.
    pub fn of_project(scopes: Scopes, project: ProjectId) -> Self {
        Self {
            scopes,
            projects: Projects::Only([project].into()),
        }
    }

    pub fn may(&self, scope: Scope, project: ProjectId) -> bool {
        self.scopes.allow(scope) && self.sees(project)
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

    /// True if the caller has at least these scopes and projects.
    pub fn cover(&self, scopes: &Scopes, projects: &Projects) -> bool {
        self.scopes.cover(scopes) && self.projects.cover(projects)
    }
}

impl From<&Token> for Rights {
    fn from(token: &Token) -> Self {
        Self {
            scopes: token.scopes.clone(),
            projects: token.projects.clone(),
        }
    }
}
