//! What a state serves, to be compared with what it serves at another time.

use std::collections::BTreeMap;

use model::World;

/// Every live record in a form that can be compared.
pub(crate) fn picture(world: &World) -> BTreeMap<String, serde_json::Value> {
    let mut picture = BTreeMap::new();
    let mut add = |name: String, value: Result<serde_json::Value, serde_json::Error>| {
        picture.insert(name, value.unwrap());
    };
    world.sources().for_each(|source| {
        add(
            format!("source {}", source.name),
            serde_json::to_value(&**source),
        )
    });
    for workflow in world.workflows() {
        let id = workflow.record.id;
        add(
            format!("workflow {id}"),
            serde_json::to_value(&*workflow.record),
        );
        add(
            format!("revision {id}"),
            serde_json::to_value(&workflow.revision.record),
        );
    }
    for retention in world
        .heads()
        .filter_map(|head| world.retention(&head.key()))
    {
        add(
            format!("retention {}/{}", retention.workflow, retention.scan),
            serde_json::to_value(&**retention),
        );
    }
    world.heads().for_each(|head| {
        add(
            format!("head {}/{}", head.workflow, head.scan),
            serde_json::to_value(&**head),
        )
    });
    world
        .jobs()
        .for_each(|job| add(format!("job {}", job.id), serde_json::to_value(&**job)));
    for source in world.sources() {
        if let Some(vars) = world.vars(source.project) {
            add(
                format!("vars {}", source.name),
                serde_json::to_value(&**vars),
            );
        }
    }
    world.all_secrets().for_each(|secrets| {
        add(
            format!("secrets {}", secrets.project),
            serde_json::to_value(&**secrets),
        )
    });
    world.runners().for_each(|runner| {
        add(
            format!("runner {}", runner.id),
            serde_json::to_value(&**runner),
        )
    });
    world.tokens().for_each(|token| {
        add(
            format!("token {}", token.id),
            serde_json::to_value(&**token),
        )
    });
    world.registrations().for_each(|one| {
        add(
            format!("registration {}", one.id),
            serde_json::to_value(&**one),
        )
    });
    picture
}
