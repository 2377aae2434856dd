//! Converts payload groups.

use model::payload::{PayloadGroup, Variable};
use model::{Payload, PayloadName, Seen};
use wire::PayloadVariable;

pub(crate) fn group(seen: Seen<'_>, group: &PayloadGroup) -> wire::PayloadGroup {
    let source = seen.source_of(group.project);
    wire::PayloadGroup {
        id: group.id.uuid(),
        project: source.map_or_else(String::new, |source| source.name.to_string()),
        name: group.name.to_string(),
        variables: group.variables.iter().map(variable).collect(),
        serve: group.serve,
        payloads: group.payloads.len() as u64,
        bytes: group.bytes(),
        created_at: group.created_at,
        created_by: group.created_by.to_string(),
    }
}

/// The position of a payload group in lists: by project and name.
pub(crate) fn key(seen: Seen<'_>, group: &PayloadGroup) -> String {
    let source = seen.source_of(group.project);
    let project = source.map_or_else(String::new, |source| source.name.to_string());
    format!("{project}/{}", group.name)
}

fn variable(variable: &Variable) -> PayloadVariable {
    PayloadVariable {
        name: variable.name.clone(),
        placeholder: Some(variable.placeholder.clone()),
        default: variable.default.clone(),
    }
}

pub(crate) fn to_variable(asked: PayloadVariable) -> Variable {
    let placeholder = asked.placeholder;
    Variable {
        placeholder: placeholder.unwrap_or_else(|| Variable::placeholder_of(&asked.name)),
        name: asked.name,
        default: asked.default,
    }
}

pub(crate) fn payload(name: &PayloadName, payload: &Payload) -> wire::Payload {
    wire::Payload {
        name: name.to_string(),
        version: payload.edit.version,
        media_type: payload.media_type.clone(),
        size: payload.size,
        sha256: payload.sha256.clone(),
        bytes: payload.bytes,
        updated_at: payload.edit.at,
        updated_by: payload.edit.by.to_string(),
    }
}
