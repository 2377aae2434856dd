//! Creates, changes and deletes payload groups, and stores payloads.

use std::sync::Arc;

use workflow::notify::NotifyName;

use super::values::{Precondition, edited, project_name};
use super::{Command, Decision, Refusal, Urgency};
use crate::change::Change;
use crate::limits::{
    PAYLOAD_BYTES, PAYLOAD_GROUPS, PAYLOAD_TYPE_BYTES, PAYLOAD_VERSIONS, PAYLOAD_VERSIONS_REMOVED,
    PAYLOADS, PAYLOADS_BYTES,
};
use crate::moment::Moment;
use crate::payload::{Payload, PayloadGroup, PayloadName, Variable};
use crate::world::World;
use crate::{Actor, PayloadGroupId, ProjectId};

#[derive(Debug, Clone)]
pub struct CreatePayloadGroup {
    pub project: ProjectId,
    pub name: NotifyName,
    pub variables: Vec<Variable>,
    pub serve: bool,
    pub actor: Actor,
}

impl Command for CreatePayloadGroup {
    type Answer = Arc<PayloadGroup>;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Self::Answer>, Refusal> {
        project_name(world, self.project)?;
        check_variables(&self.variables)?;
        if world.payload_group_of(self.project, &self.name).is_some() {
            let name = self.name.to_string();
            return Err(Refusal::PayloadGroupExists { name });
        }
        if of_project(world, self.project).count() >= PAYLOAD_GROUPS {
            let what = format!("the project has {PAYLOAD_GROUPS} payload groups");
            return Err(Refusal::PayloadLimit { what });
        }
        Ok(changed(PayloadGroup {
            id: PayloadGroupId::random(moment.entropy),
            project: self.project,
            name: self.name,
            created_at: moment.now,
            created_by: self.actor,
            variables: self.variables,
            payloads: std::collections::BTreeMap::new(),
            serve: self.serve,
            is_deleted: false,
        }))
    }
}

/// Replace the variables of a group, or say whether it is served. None changes nothing.
#[derive(Debug, Clone)]
pub struct ChangePayloadGroup {
    pub group: PayloadGroupId,
    pub variables: Option<Vec<Variable>>,
    pub serve: Option<bool>,
}

impl Command for ChangePayloadGroup {
    type Answer = Arc<PayloadGroup>;
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<Self::Answer>, Refusal> {
        let before = find(world, self.group)?;
        let mut after = PayloadGroup::clone(before);
        if let Some(variables) = self.variables {
            check_variables(&variables)?;
            after.variables = variables;
        }
        after.serve = self.serve.unwrap_or(after.serve);
        match after == **before {
            true => Ok(Decision::unchanged(before.clone())),
            false => Ok(changed(after)),
        }
    }
}

/// Delete a payload group. Nobody sees it any more; [`ClearPayloadGroup`] removes its files.
#[derive(Debug, Clone, Copy)]
pub struct DeletePayloadGroup {
    pub group: PayloadGroupId,
}

impl Command for DeletePayloadGroup {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let mut group = PayloadGroup::clone(find(world, self.group)?);
        group.is_deleted = true;
        Ok(Decision::of([Change::PayloadGroup(Arc::new(group))]))
    }
}

/// Remove some files of a deleted payload group, and at last its record. The answer is false once nothing is left.
#[derive(Debug, Clone, Copy)]
pub struct ClearPayloadGroup {
    pub group: PayloadGroupId,
}

impl Command for ClearPayloadGroup {
    type Answer = bool;
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<bool>, Refusal> {
        let deleted = world.any_payload_group(self.group);
        let Some(group) = deleted.filter(|group| group.is_deleted) else {
            return Ok(Decision::unchanged(false));
        };
        let mut group = PayloadGroup::clone(group);
        let Some(name) = group.payloads.keys().next().cloned() else {
            let removed = Change::PayloadGroupRemoved(self.group);
            return Ok(Decision {
                changes: vec![removed],
                answer: false,
            });
        };
        let mut changes = remove_versions(&mut group, &name);
        changes.push(Change::PayloadGroup(Arc::new(group)));
        let answer = true;
        Ok(Decision { changes, answer })
    }
}

/// Store a version of a payload, whose body is an object. Without a change of its content there is no new version.
#[derive(Debug, Clone)]
pub struct StorePayload {
    pub group: PayloadGroupId,
    pub name: PayloadName,
    pub media_type: String,
    pub size: u64,
    /// Hexadecimal.
    pub sha256: String,
    pub expects: Precondition,
    pub actor: Actor,
}

impl Command for StorePayload {
    /// The payload, and whether this is a new version.
    type Answer = (Payload, bool);
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(
        self,
        world: &World,
        moment: &mut Moment<'_>,
    ) -> Result<Decision<Self::Answer>, Refusal> {
        let mut group = PayloadGroup::clone(find(world, self.group)?);
        let is_text = |byte: u8| (b' '..=b'~').contains(&byte);
        if !(1..=PAYLOAD_TYPE_BYTES).contains(&self.media_type.len())
            || !self.media_type.bytes().all(is_text)
        {
            let problem = format!("must be 1 to {PAYLOAD_TYPE_BYTES} ASCII characters");
            return Err(Refusal::invalid("content-type", problem));
        }
        if self.size > PAYLOAD_BYTES {
            let what = format!("a payload has at most {PAYLOAD_BYTES} bytes");
            return Err(Refusal::PayloadLimit { what });
        }
        let before = group.payloads.get(&self.name);
        let edit = before.map(|before| &before.edit);
        self.expects.check("payload", self.name.as_str(), edit)?;
        let is_same =
            |it: &&Payload| (&it.sha256, &it.media_type) == (&self.sha256, &self.media_type);
        if let Some(same) = before.filter(is_same) {
            return Ok(Decision::unchanged((same.clone(), false)));
        }
        if before.is_none() && group.payloads.len() >= PAYLOADS {
            let what = format!("the group has {PAYLOADS} payloads");
            return Err(Refusal::PayloadLimit { what });
        }
        let mut version = before.map_or(0, |before| before.edit.version);
        let oldest = before.map_or(1, |before| before.oldest);
        if version + 1 - oldest >= PAYLOAD_VERSIONS {
            let what = format!("the payload has {PAYLOAD_VERSIONS} versions");
            return Err(Refusal::PayloadLimit { what });
        }
        let used: u64 = of_project(world, group.project).map(|it| it.bytes()).sum();
        if used + self.size > PAYLOADS_BYTES {
            let what = format!(
                "the payloads of the project have {used} of {PAYLOADS_BYTES} bytes, and {} more do not fit",
                self.size
            );
            return Err(Refusal::PayloadLimit { what });
        }
        let payload = Payload {
            bytes: before.map_or(0, |before| before.bytes) + self.size,
            edit: edited(&mut version, self.actor, moment),
            oldest,
            media_type: self.media_type,
            size: self.size,
            sha256: self.sha256,
        };
        group.payloads.insert(self.name, payload.clone());
        Ok(Decision {
            changes: vec![Change::PayloadGroup(Arc::new(group))],
            answer: (payload, true),
        })
    }
}

/// Delete some versions of a payload, and at last the payload. The answer is true if there are more.
#[derive(Debug, Clone)]
pub struct DeletePayload {
    pub group: PayloadGroupId,
    pub name: PayloadName,
    pub expects: Precondition,
}

impl Command for DeletePayload {
    type Answer = bool;
    const URGENCY: Urgency = Urgency::Finishing;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<bool>, Refusal> {
        let mut group = PayloadGroup::clone(find(world, self.group)?);
        let Some(payload) = group.payloads.get(&self.name) else {
            let name = self.name.to_string();
            return Err(Refusal::NoSuchPayload { name });
        };
        let name = self.name.as_str();
        self.expects.check("payload", name, Some(&payload.edit))?;
        let mut changes = remove_versions(&mut group, &self.name);
        let answer = group.payloads.contains_key(&self.name);
        changes.push(Change::PayloadGroup(Arc::new(group)));
        Ok(Decision { changes, answer })
    }
}

/// Removes the oldest versions of a payload, and the payload after its last one.
fn remove_versions(group: &mut PayloadGroup, name: &PayloadName) -> Vec<Change> {
    let Some(payload) = group.payloads.get_mut(name) else {
        return Vec::new();
    };
    let end = (payload.edit.version + 1).min(payload.oldest + PAYLOAD_VERSIONS_REMOVED);
    let removed = payload.oldest..end;
    payload.oldest = end;
    if end > payload.edit.version {
        group.payloads.remove(name);
    }
    let removed =
        removed.map(|version| Change::PayloadVersionRemoved(group.id, name.clone(), version));
    removed.collect()
}

fn changed(group: PayloadGroup) -> Decision<Arc<PayloadGroup>> {
    let group = Arc::new(group);
    Decision {
        changes: vec![Change::PayloadGroup(group.clone())],
        answer: group,
    }
}

fn check_variables(variables: &[Variable]) -> Result<(), Refusal> {
    Variable::check(variables).map_err(|problem| Refusal::invalid("variables", problem))
}

fn of_project(world: &World, project: ProjectId) -> impl Iterator<Item = &Arc<PayloadGroup>> {
    world
        .payload_groups()
        .filter(move |it| it.project == project)
}

fn find(world: &World, group: PayloadGroupId) -> Result<&Arc<PayloadGroup>, Refusal> {
    world
        .payload_group(group)
        .ok_or(Refusal::NoSuchPayloadGroup)
}
