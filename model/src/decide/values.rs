//! What vars and secrets have in common: names, sizes, versions, and edits that are for one version alone.

use std::collections::BTreeSet;

use workflow::check_variable_name;

use super::Refusal;
use crate::limits::VALUE_BYTES;
use crate::moment::Moment;
use crate::project::Edit;
use crate::world::World;
use crate::{Actor, ProjectId};

/// What an edit expects of the value that it replaces or removes. It is part of the decision, so that of two edits that
/// expect the same version only one is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Precondition {
    /// Whatever is there.
    #[default]
    Anything,
    /// There is no value.
    Absent,
    /// There is a value.
    Present,
    /// The value has one of these versions.
    OneOf(BTreeSet<u64>),
}

impl Precondition {
    /// Refuses an edit of `what` that expects something else than `present`.
    pub(super) fn check(
        &self,
        what: &'static str,
        name: &str,
        present: Option<&Edit>,
    ) -> Result<(), Refusal> {
        let present = present.map(|edit| edit.version);
        let is_met = match self {
            Self::Anything => true,
            Self::Absent => present.is_none(),
            Self::Present => present.is_some(),
            Self::OneOf(versions) => present.is_some_and(|version| versions.contains(&version)),
        };
        if is_met {
            return Ok(());
        }
        Err(Refusal::PreconditionFailed {
            what,
            name: name.to_owned(),
            present,
        })
    }
}

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
