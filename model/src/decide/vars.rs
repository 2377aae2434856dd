//! Sets and deletes the vars of a project.

use std::sync::Arc;

use super::values::{Precondition, check_name, check_value, edited, project_name};
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::limits::{PROJECT_VALUES, VARS_BYTES};
use crate::moment::Moment;
use crate::project::{ProjectVars, Var};
use crate::world::World;
use crate::{Actor, ProjectId};

#[derive(Debug, Clone)]
pub struct SetVar {
    pub project: ProjectId,
    pub name: String,
    pub value: String,
    pub actor: Actor,
    pub expects: Precondition,
}

impl Command for SetVar {
    type Answer = Var;
    const URGENCY: Urgency = Urgency::Ordinary;

    /// Setting the same value changes nothing.
    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<Var>, Refusal> {
        project_name(world, self.project)?;
        check_name("a var name", &self.name)?;
        check_value(&self.value)?;
        let mut record = record(world, self.project);
        let before = record.vars.get(&self.name);
        let edit = before.map(|before| &before.edit);
        self.expects.check("var", &self.name, edit)?;
        if let Some(before) = before.filter(|before| before.value == self.value) {
            return Ok(Decision::unchanged(before.clone()));
        }
        let var = Var {
            value: self.value,
            edit: edited(&mut record.latest_version, self.actor, moment),
        };
        record.vars.insert(self.name, var.clone());
        check_sizes(&record)?;
        Ok(Decision {
            changes: vec![Change::Vars(Arc::new(record))],
            answer: var,
        })
    }
}

/// Remove a var.
#[derive(Debug, Clone)]
pub struct DeleteVar {
    pub project: ProjectId,
    pub name: String,
    pub expects: Precondition,
}

impl Command for DeleteVar {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let project = project_name(world, self.project)?;
        let mut record = record(world, self.project);
        match record.vars.remove(&self.name) {
            Some(var) => {
                self.expects.check("var", &self.name, Some(&var.edit))?;
                Ok(Decision::of([Change::Vars(Arc::new(record))]))
            }
            None => Err(Refusal::NoSuchVar {
                project,
                name: self.name,
            }),
        }
    }
}

fn record(world: &World, project: ProjectId) -> ProjectVars {
    world.vars(project).map_or_else(
        || ProjectVars::none(project),
        |vars| ProjectVars::clone(vars),
    )
}

/// Checks the size of a record. A job may read all vars, and their values are copied into its record.
fn check_sizes(record: &ProjectVars) -> Result<(), Refusal> {
    if record.vars.len() > PROJECT_VALUES {
        return Err(Refusal::invalid(
            "name",
            format!("the project has {PROJECT_VALUES} vars, which is the limit"),
        ));
    }
    let as_json = |text: &str| serde_json::to_string(text).map_or(0, |json| json.len());
    let bytes: usize = record
        .vars
        .iter()
        .map(|(name, var)| name.len() + as_json(&var.value))
        .sum();
    if bytes > VARS_BYTES {
        return Err(Refusal::invalid(
            "value",
            format!(
                "all vars of the project together would have {bytes} bytes as JSON, over the limit of {VARS_BYTES}"
            ),
        ));
    }
    Ok(())
}
