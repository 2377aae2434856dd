//! The vars and secrets that an evaluation reads, selected by the references of its expressions.

use std::collections::BTreeMap;

use workflow::References;

use crate::ProjectId;
use crate::world::World;

/// Returns only vars that are set.
pub(crate) fn vars(
    world: &World,
    project: ProjectId,
    references: &References,
) -> BTreeMap<String, String> {
    let Some(record) = world.vars(project) else {
        return BTreeMap::new();
    };
    let named = references.vars.iter();
    named
        .filter_map(|name| Some((name.clone(), record.vars.get(name)?.value.clone())))
        .collect()
}

/// Returns only secrets that are set, with their versions.
pub(crate) fn secrets(
    world: &World,
    project: ProjectId,
    references: &References,
) -> BTreeMap<String, u64> {
    let Some(record) = world.secrets(project) else {
        return BTreeMap::new();
    };
    let named = references.secrets.iter();
    named
        .filter_map(|name| Some((name.clone(), record.secrets.get(name)?.edit.version)))
        .collect()
}
