//! The vars, secrets and callback servers that the active workflows of each project use.

use std::collections::{BTreeMap, HashMap};

use workflow::Workflow;
use workflow::notify::NotifyName;

use crate::ProjectId;

/// A var, secret or callback server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    Var(String),
    Secret(String),
    Callback(NotifyName),
}

impl Name {
    /// The names in a definition.
    pub(crate) fn all(definition: &Workflow) -> impl Iterator<Item = Self> {
        let vars = definition.vars().iter().cloned().map(Self::Var);
        let secrets = definition.secrets().iter().cloned().map(Self::Secret);
        let servers = definition.scans().filter_map(|scan| scan.callback.clone());
        vars.chain(secrets).chain(servers.map(Self::Callback))
    }
}

/// Each name with the number of workflows that use it.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(HashMap<ProjectId, BTreeMap<Name, usize>>);

impl Names {
    pub(super) fn add(&mut self, project: ProjectId, definition: &Workflow) {
        let names = self.0.entry(project).or_default();
        for name in Name::all(definition) {
            *names.entry(name).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, project: ProjectId, definition: &Workflow) {
        let Some(names) = self.0.get_mut(&project) else {
            return;
        };
        for name in Name::all(definition) {
            if let Some(count) = names.get_mut(&name) {
                *count -= 1;
                if *count == 0 {
                    names.remove(&name);
                }
            }
        }
    }

    pub(super) fn of(&self, project: ProjectId) -> impl Iterator<Item = (&Name, usize)> {
        let names = self.0.get(&project).into_iter().flatten();
        names.map(|(name, count)| (name, *count))
    }
}
