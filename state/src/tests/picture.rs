//! A picture of a state, for comparison with another picture.

use std::collections::BTreeMap;
use std::fmt::Display;

use model::World;
use serde_json::{Value, to_value};

/// Every live record as JSON, by kind and name.
pub(crate) fn picture(world: &World) -> BTreeMap<String, Value> {
    let mut picture = BTreeMap::new();
    let mut add = |kind: &str, name: &dyn Display, record: Result<Value, serde_json::Error>| {
        picture.insert(format!("{kind} {name}"), record.unwrap());
    };
    for source in world.sources() {
        add("source", &source.name, to_value(&**source));
        if let Some(vars) = world.vars(source.project) {
            add("vars", &source.name, to_value(&**vars));
        }
        if let Some(rules) = world.project_rules(Some(source.project)) {
            add("rules", &source.name, to_value(&**rules));
        }
    }
    for workflow in world.workflows() {
        let id = workflow.record.id;
        add("workflow", &id, to_value(&*workflow.record));
        add("revision", &id, to_value(&workflow.revision.record));
    }
    for head in world.heads() {
        let name = format!("{}/{}", head.workflow, head.scan);
        add("head", &name, to_value(&**head));
        if let Some(retention) = world.retention(&head.key()) {
            add("retention", &name, to_value(&**retention));
        }
    }
    for job in world.jobs() {
        add("job", &job.id, to_value(&**job));
    }
    for secrets in world.all_secrets() {
        add("secrets", &secrets.project, to_value(&**secrets));
    }
    for runner in world.runners() {
        add("runner", &runner.id, to_value(&**runner));
    }
    for token in world.tokens() {
        add("token", &token.id, to_value(&**token));
    }
    for user in world.users() {
        add("user", &user.id, to_value(&**user));
    }
    for session in world.sessions() {
        add("session", &session.id, to_value(&**session));
    }
    for condition in world.conditions() {
        add("condition", &condition.id, to_value(&**condition));
    }
    for channel in world.channels() {
        add("channel", &channel.id, to_value(&**channel));
    }
    if let Some(certificate) = world.callback_certificate() {
        let certificate = to_value(&**certificate);
        add("callback certificate", &"certificate", certificate);
    }
    for callback in world.callbacks() {
        add("callback", &callback.id, to_value(&**callback));
        for token in world.callback_tokens(callback.id) {
            add("callback token", &token.tag, to_value(&**token));
        }
    }
    for group in world.payload_groups() {
        add("payload group", &group.id, to_value(&**group));
    }
    for outgoing in world.outbox() {
        add("outgoing", &outgoing.id, to_value(&**outgoing));
    }
    for registration in world.registrations() {
        add("registration", &registration.id, to_value(&**registration));
    }
    picture
}
