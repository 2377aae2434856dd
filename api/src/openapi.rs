//! The OpenAPI 3.1 document of the API, made from the table of routes and the types of `wire`.

mod bounds;
mod page;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

pub(crate) use self::page::page;
use crate::routes::{Access, Answer, Header, Operation, ROUTES, RequestBody, Route, headers};

const DESCRIPTION: &str = "Everscan runs workflows from Git. Times are RFC 3339 in UTC, ids are UUIDs, names are in \
snake_case. Errors are `application/problem+json` with a stable `code`. Clients ignore members that they do not know.";

pub static DOCUMENT: LazyLock<Value> = LazyLock::new(document);

fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut schemas = settings.into_generator();
    let problem = schemas.subschema_for::<wire::Problem>();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for (route, operation) in operations() {
        let described = described(route, operation, &mut schemas, &problem);
        // In the document, the rest of a path is one parameter.
        let path = paths.entry(route.path.replace("{*", "{")).or_default();
        path.insert(route.method.as_str().to_lowercase(), described);
    }
    // The data of events. No response refers to it, because OpenAPI does not describe streams.
    schemas.subschema_for::<wire::JobEvent>();
    schemas.subschema_for::<wire::StepEvent>();
    schemas.subschema_for::<wire::RevisionEvent>();
    schemas.subschema_for::<wire::SuspensionEvent>();
    schemas.subschema_for::<wire::SourceEvent>();
    schemas.subschema_for::<wire::RunnerEvent>();
    schemas.subschema_for::<wire::ConditionEvent>();
    schemas.subschema_for::<wire::InteractionEvent>();
    let mut schemas = schemas.take_definitions(true);
    bounds::add(&mut schemas);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Everscan",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        // Relative to the address of the document.
        "servers": [{ "url": ".." }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A personal access token with the scope that the operation names.",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "__Host-everscan",
                    "description": "The session of a browser. Below a base path the cookie is `__Secure-everscan`, and over plain HTTP it is `everscan-PORT`.",
                },
                "runner": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The session token of a runner.",
                },
                "worker": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The session token of a worker, for its own job.",
                },
            },
        },
    })
}

fn operations() -> impl Iterator<Item = (&'static Route, &'static Operation)> {
    ROUTES
        .iter()
        .filter_map(|route| Some((route, route.operation.as_ref()?)))
}

fn described(
    route: &Route,
    operation: &Operation,
    schemas: &mut SchemaGenerator,
    problem: &Schema,
) -> Value {
    let in_path = route.path.split('/').filter_map(|segment| {
        let name = segment.strip_prefix('{')?.strip_suffix('}')?;
        let name = name.trim_start_matches('*');
        Some(json!({
            "name": name,
            "in": "path",
            "required": true,
            "description": in_path(route.access, name),
            "schema": { "type": "string", "minLength": 1 },
        }))
    });
    let in_query = route.parameters.iter().map(|parameter| {
        json!({
            "name": parameter.name,
            "in": "query",
            "required": parameter.is_required,
            "description": parameter.description,
            "schema": (parameter.schema)(),
        })
    });
    let in_head = operation.reads.iter().map(Header::parameter);
    let parameters: Vec<Value> = in_path.chain(in_query).chain(in_head).collect();
    let name = match route.access {
        Access::Link(_) => format!("{}LinkedBlob", route.name),
        _ => route.name.to_owned(),
    };
    let mut described = json!({
        "operationId": name,
        "summary": operation.summary,
        "tags": [tag(route)],
        "parameters": parameters,
        "security": security(route.access),
        "responses": {
            "default": {
                "description": "A problem. `code` says which.",
                "headers": members(&[
                    headers::REQUEST_ID,
                    headers::RETRY_AFTER,
                    headers::ETAG,
                    headers::ALLOW,
                    headers::WWW_AUTHENTICATE,
                    headers::CONTENT_RANGE,
                ]),
                "content": { wire::PROBLEM_MEDIA_TYPE: { "schema": problem } },
            },
        },
    });
    let responses = &mut described["responses"];
    let mut success = json!({ "description": "Success." });
    success["headers"] = members(&[&[headers::REQUEST_ID], operation.sets].concat());
    if operation.is_cached {
        let mut unchanged = success.clone();
        unchanged["description"] = json!("The caller has this version already.");
        responses["304"] = unchanged;
    }
    match content(operation.answer, schemas) {
        Value::Null => success["description"] = json!("Success, without content."),
        content => success["content"] = content,
    }
    for status in operation.statuses {
        responses[status.to_string()] = success.clone();
    }
    if operation.has_parts {
        success["description"] = json!("The requested part.");
        let (name, header) = headers::CONTENT_RANGE.member();
        success["headers"][name] = header;
        responses["206"] = success;
    }
    if let Access::User(_, scope) | Access::Local(_, scope) = route.access {
        described["description"] = json!(format!("Needs the scope `{scope}`."));
    }
    let json = |schema| json!({ "application/json": { "schema": schema } });
    let (is_required, content) = match operation.body {
        RequestBody::None => return described,
        RequestBody::Json(schema) => (true, json(schema(schemas))),
        RequestBody::Optional(schema) => (false, json(schema(schemas))),
        RequestBody::Bytes => (true, json!({ "application/octet-stream": {} })),
    };
    described["requestBody"] = json!({ "required": is_required, "content": content });
    described
}

fn in_path(access: Access, name: &str) -> &'static str {
    match (name, access) {
        ("job", Access::User(..)) => {
            "The job: its id, or at least four of its first or last digits."
        }
        ("job", _) => "The id of the job.",
        ("workflow", _) => "The workflow: its name, SOURCE/NAME, or id.",
        ("scan", _) => "The name of the scan.",
        ("revision", _) => "The number of the revision.",
        ("project", _) => "The project: its name or id.",
        ("source", _) => "The name of the source.",
        ("secret", Access::Link(_)) => "The secret of the link.",
        ("artifact", _) => {
            "The artifact: its id or name; a name may lack its `.zip` if no artifact has the shorter name."
        }
        ("token" | "runner", _) => "Its id, or its name if no other has it.",
        ("path", _) => "The path of the blob. Its slashes stay as they are.",
        ("link", _) => "The id of the link.",
        ("session", _) => "The id of the session.",
        (_, _) => "Its name.",
    }
}

fn members(headers: &[Header]) -> Value {
    Value::Object(headers.iter().map(Header::member).collect())
}

/// The content of a success; null if there is none.
fn content(answer: Answer, schemas: &mut SchemaGenerator) -> Value {
    match answer {
        Answer::Nothing => Value::Null,
        Answer::Json(schema) => json!({ "application/json": { "schema": schema(schemas) } }),
        Answer::Text(kinds) => {
            let of_kind = |kind: &&str| {
                // The document does not describe the data of events.
                let content = match *kind {
                    "text/event-stream" => json!({}),
                    _ => json!({ "schema": { "type": "string" } }),
                };
                ((*kind).to_owned(), content)
            };
            Value::Object(kinds.iter().map(of_kind).collect())
        }
        Answer::Bytes(kind) => json!({ kind: {} }),
    }
}

/// The first segment of the path after the version.
fn tag(route: &Route) -> &'static str {
    let below = route.path.strip_prefix("/v0").unwrap_or(route.path);
    below
        .trim_start_matches('/')
        .split('/')
        .next()
        .unwrap_or("")
}

fn security(access: Access) -> Value {
    match access {
        Access::Public(_) => json!([]),
        // No token is needed on the daemon's own machine.
        Access::Local(..) => json!([{}, { "token": [] }]),
        Access::User(route, _) if route.takes_sessions() => {
            json!([{ "token": [] }, { "session": [] }])
        }
        Access::User(..) => json!([{ "token": [] }]),
        Access::Link(_) => json!([]),
        Access::Session(route) if route.takes_sessions() => {
            json!([{ "session": [] }, { "token": [] }])
        }
        Access::Session(_) => json!([{ "token": [] }]),
        Access::Runner(_) => json!([{ "runner": [] }]),
        Access::Worker(_) => json!([{ "worker": [] }]),
        Access::Page(..) | Access::Action(..) => json!([{ "session": [] }]),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_operation_is_in_the_document_with_a_unique_name() {
        let paths = DOCUMENT["paths"].as_object().unwrap();
        let mut names = BTreeSet::new();
        for (route, _) in operations() {
            let method = route.method.as_str().to_lowercase();
            let described = &paths[&route.path.replace("{*", "{")][&method];
            let name = described["operationId"].as_str().unwrap();
            assert!(names.insert(name), "{name}");
            assert!(described["summary"].as_str().unwrap().len() > 5, "{name}");
            let answers = described["responses"].as_object().unwrap();
            assert!(answers.len() >= 2, "{name}");
            let has_body = described["requestBody"].is_object();
            assert!(!has_body || route.body > 0, "{name} takes no body");
        }
        let described: usize = paths.values().map(|it| it.as_object().unwrap().len()).sum();
        assert_eq!(described, operations().count());
    }

    #[test]
    fn every_reference_has_a_target() {
        fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
            match value {
                Value::Object(members) => {
                    found.extend(members.get("$ref").and_then(Value::as_str));
                    members.values().for_each(|value| references(value, found));
                }
                Value::Array(items) => items.iter().for_each(|value| references(value, found)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let mut found = BTreeSet::new();
        references(&DOCUMENT, &mut found);
        assert!(found.len() > 50);
        for reference in found {
            let place = reference.strip_prefix('#').unwrap();
            assert!(DOCUMENT.pointer(place).is_some(), "{reference}");
        }
    }
}
