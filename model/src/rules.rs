//! The rules of notifications of a project or of the instance.

use serde::{Deserialize, Serialize};
use workflow::notify::{NotifyName, Rule};

use crate::ProjectId;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectRules {
    /// Absent for the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectId>,
    /// The rules of the last valid `everscan.yaml`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file: Vec<Rule>,
    /// A rule of the API hides the rule of the file with the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api: Vec<Rule>,
}

impl ProjectRules {
    pub(crate) fn none(project: Option<ProjectId>) -> Self {
        Self {
            project,
            ..Self::default()
        }
    }

    /// The rules that are in force.
    pub fn all(&self) -> impl Iterator<Item = &Rule> {
        let file = self.file.iter();
        self.api
            .iter()
            .chain(file.filter(|rule| self.in_api(&rule.name).is_none()))
    }

    pub fn in_api(&self, name: &NotifyName) -> Option<&Rule> {
        self.api.iter().find(|rule| rule.name == *name)
    }
}
