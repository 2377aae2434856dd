//! The API as a document: OpenAPI 3.1, made from the table of routes and the types of the wire.

mod bounds;
mod headers;
mod operations;
mod page;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use self::headers::Header;
use self::operations::{Answer, Operation, Other, RequestBody, operation, parameter};
use crate::routes::{Access, ROUTES, Route};

pub(crate) use self::page::page;

const DESCRIPTION: &str = "Everscan runs workflows from Git. Times are RFC 3339 in UTC, ids are UUIDs, names are in \
snake_case. Errors are `application/problem+json` with a stable `code`. Readers ignore members that they do not know.";

/// The document.
pub static DOCUMENT: LazyLock<Value> = LazyLock::new(document);

fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut schemas = settings.into_generator();
    let problem = schemas.subschema_for::<wire::Problem>();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for route in described_routes() {
        let described = described(route, &mut schemas, &problem);
        // A rest of a path is one parameter here.
        let path = paths.entry(route.path.replace("{*", "{")).or_default();
        path.insert(route.method.as_str().to_lowercase(), described);
    }
    // The data of events, which no answer refers to: a stream is text to readers of the document.
    schemas.subschema_for::<wire::JobEvent>();
    schemas.subschema_for::<wire::StepEvent>();
    schemas.subschema_for::<wire::RevisionEvent>();
    schemas.subschema_for::<wire::SuspensionEvent>();
    schemas.subschema_for::<wire::SourceEvent>();
    schemas.subschema_for::<wire::RunnerEvent>();
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
        "servers": [{ "url": "/" }],
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
                    "description": "The session of a browser. Over plain HTTP the cookie is `everscan-PORT`.",
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

/// Pages are for browsers, and may change with every release.
fn described_routes() -> impl Iterator<Item = &'static Route> {
    ROUTES
        .iter()
        .filter(|route| !route.access.is_for_browsers())
}

fn described(route: &Route, schemas: &mut SchemaGenerator, problem: &Schema) -> Value {
    let Operation {
        summary,
        body,
        headers: request_headers,
        statuses,
        answer,
        answer_headers,
        others,
    } = operation(route.access, schemas);
    let in_path = route.path.split('/').filter_map(|segment| {
        let name = segment.strip_prefix('{')?.strip_suffix('}')?;
        let name = name.trim_start_matches('*');
        Some(("path", name, true))
    });
    let in_query = route.query.iter().map(|name| {
        let is_needed = operations::is_needed(route.access, name);
        ("query", *name, is_needed)
    });
    let parameters: Vec<Value> = in_path
        .chain(in_query)
        .map(|(place, name, is_needed)| {
            let (description, schema) = parameter(route.access, place, name);
            json!({
                "name": name,
                "in": place,
                "required": is_needed,
                "description": description,
                "schema": schema,
            })
        })
        .chain(request_headers.iter().map(Header::parameter))
        .collect();
    let mut described = json!({
        "operationId": operations::name(route.access),
        "summary": summary,
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
    let mut succeeded = succeeded(answer);
    succeeded["headers"] = members(&[headers::REQUEST_ID]);
    for header in answer_headers {
        let (name, header) = header.member();
        succeeded["headers"][name] = header;
    }
    for status in statuses {
        described["responses"][status.to_string()] = succeeded.clone();
    }
    for other in others {
        let (status, answer) = instead(*other, &succeeded);
        described["responses"][status.to_string()] = answer;
    }
    if let Access::User(_, scope) | Access::Local(_, scope) = route.access {
        described["description"] = json!(format!("Needs the scope `{scope}`."));
    }
    let json = |schema| json!({ "application/json": { "schema": schema } });
    let (is_needed, content) = match body {
        RequestBody::None => return described,
        RequestBody::Json(schema) => (true, json(schema)),
        RequestBody::Optional(schema) => (false, json(schema)),
        RequestBody::Bytes => (true, json!({ "application/octet-stream": {} })),
    };
    described["requestBody"] = json!({ "required": is_needed, "content": content });
    described
}

/// The status and the answer that may come in place of the whole.
fn instead(other: Other, whole: &Value) -> (u16, Value) {
    let mut answer = whole.clone();
    match other {
        Other::Part => {
            answer["description"] = json!("The part that the request wants.");
            let (name, header) = headers::CONTENT_RANGE.member();
            answer["headers"][name] = header;
            (206, answer)
        }
        Other::Unchanged => {
            answer["description"] = json!("The caller has this version already.");
            if let Value::Object(members) = &mut answer {
                members.remove("content");
            }
            (304, answer)
        }
    }
}

fn members(headers: &[Header]) -> Value {
    Value::Object(headers.iter().map(Header::member).collect())
}

fn succeeded(answer: Answer) -> Value {
    let content = match answer {
        Answer::Nothing => return json!({ "description": "It is done." }),
        Answer::Json(schema) => json!({ "application/json": { "schema": schema } }),
        Answer::Text(kinds) => {
            let of_kind = |kind: &&str| {
                // What is in the events of a stream is no text to readers of the document.
                let content = match *kind {
                    "text/event-stream" => json!({}),
                    _ => json!({ "schema": { "type": "string" } }),
                };
                ((*kind).to_owned(), content)
            };
            Value::Object(kinds.iter().map(of_kind).collect())
        }
        Answer::Bytes(kind) => json!({ kind: {} }),
    };
    json!({ "description": "It succeeded.", "content": content })
}

/// The first segment below the version, which is what the operation is about.
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
        // Without a token on the daemon's own machine.
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
    fn every_route_is_described_once_by_a_name_of_its_own() {
        let paths = DOCUMENT["paths"].as_object().unwrap();
        let mut names = BTreeSet::new();
        for route in described_routes() {
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
        assert_eq!(described, described_routes().count());
    }

    #[test]
    fn every_reference_leads_somewhere() {
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
