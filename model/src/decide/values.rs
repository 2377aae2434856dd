//! What vars and secrets have in common: names, sizes and versions.

use workflow::check_variable_name;

use super::Refusal;
use crate::limits::VALUE_BYTES;
use crate::moment::Moment;
use crate::project::Edit;
use crate::world::World;
use crate::{Actor, ProjectId};

/// The name people call a project by.
pub(super) fn project_name(world: &World, project: ProjectId) -> Result<String, Refusal> {
    world
        .source_of(project)
        .map(|source| source.name.to_string())
        .ok_or_else(|| Refusal::NoSuchProject {
            project: project.to_string(),
        })
}

pub(super) fn check_name(what: &'static str, name: &str) -> Result<(), Refusal> {
    check_variable_name(what, name).map_err(|error| Refusal::InvalidField {
        field: "name",
        problem: error.to_string(),
    })
}

pub(super) fn check_value(value: &str) -> Result<(), Refusal> {
    if value.len() > VALUE_BYTES {
        return Err(Refusal::InvalidField {
            field: "value",
            problem: format!("has {} bytes, over the limit of {VALUE_BYTES}", value.len()),
        });
    }
    Ok(())
}

/// The next edit, with the next version.
pub(super) fn edited(latest_version: &mut u64, by: Actor, moment: &Moment<'_>) -> Edit {
    *latest_version += 1;
    Edit {
        version: *latest_version,
        at: moment.now,
        by,
    }
}
