//! Common rules of vars and secrets: names, sizes, versions, and conditional edits.

use std::collections::BTreeSet;

use workflow::check_variable_name;

use super::Refusal;
use crate::limits::VALUE_BYTES;
use crate::moment::Moment;
use crate::project::Edit;
use crate::world::World;
use crate::{Actor, ProjectId};

/// The condition of an edit on the present value. It is checked in the decision, so that of two edits of the same
/// version only one succeeds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Precondition {
    #[default]
    Anything,
    Absent,
    Present,
    OneOf(BTreeSet<u64>),
}

impl Precondition {
    /// Refuses an edit of `what` if `present` does not meet the condition.
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
            must_be_new: *self == Self::Absent,
        })
    }
}

/// The name of a project for messages.
pub(super) fn project_name(world: &World, project: ProjectId) -> Result<String, Refusal> {
    world
        .source_of(project)
        .map(|source| source.name.to_string())
        .ok_or_else(|| Refusal::NoSuchProject {
            project: project.to_string(),
        })
}

pub(super) fn check_name(what: &'static str, name: &str) -> Result<(), Refusal> {
    check_variable_name(what, name).map_err(|error| Refusal::invalid("name", error.to_string()))
}

pub(super) fn check_value(value: &str) -> Result<(), Refusal> {
    if value.len() > VALUE_BYTES {
        return Err(Refusal::invalid(
            "value",
            format!("has {} bytes, over the limit of {VALUE_BYTES}", value.len()),
        ));
    }
    Ok(())
}

/// Creates the record of an edit with the next version.
pub(super) fn edited(latest_version: &mut u64, by: Actor, moment: &Moment<'_>) -> Edit {
    *latest_version += 1;
    Edit {
        version: *latest_version,
        at: moment.now,
        by,
    }
}
