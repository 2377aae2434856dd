//! Compares every answer of every test with the document of the API, and the page of error codes with the type.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};

use api::{OPENAPI, ROUTES};
use http::Method;
use jsonschema::Validator;
use serde_json::{Value, json};

use crate::answers::fits;
use crate::client::{Answer, Call};
use crate::service::Service;

/// Validators by operation and status.
type Validators = HashMap<(&'static str, &'static Method, String), Arc<Validator>>;

static VALIDATORS: LazyLock<Mutex<Validators>> = LazyLock::new(Mutex::default);

/// Headers that change what a request does.
const MEANINGFUL: [&str; 6] = [
    "if-match",
    "if-none-match",
    "if-range",
    "range",
    "last-event-id",
    "x-content-digest",
];

/// Headers of answers that clients rely on.
const RELIED_ON: [&str; 9] = [
    "accept-ranges",
    "allow",
    "content-range",
    "etag",
    "retry-after",
    "set-cookie",
    "x-authorization-refresh",
    "x-content-digest",
    "x-request-id",
];

/// Fails unless the document allows this answer to this request.
pub(crate) fn check(method: &Method, path: &str, headers: &[(String, String)], answer: &Answer) {
    let path = path.split('?').next().unwrap();
    let mut routes = ROUTES.iter().filter(|route| route.method == *method);
    // Pages are not in the document.
    let Some(route) = routes.find(|route| fits(route.path, path)) else {
        return;
    };
    if route.access.is_for_browsers() {
        return;
    }
    let operation =
        &OPENAPI["paths"][route.path.replace("{*", "{")][method.as_str().to_lowercase()];
    let what = format!("{method} {} answered {answer:?}", route.path);
    let names = |header: &str| {
        let parameters = operation["parameters"].as_array().unwrap().iter();
        parameters
            .filter(|parameter| parameter["in"] == "header")
            .any(|parameter| {
                parameter["name"]
                    .as_str()
                    .unwrap()
                    .eq_ignore_ascii_case(header)
            })
    };
    for (header, _) in headers {
        if MEANINGFUL.contains(&header.as_str()) && answer.status < 400 {
            assert!(names(header), "the document does not name {header}; {what}");
        }
    }
    let status = answer.status.to_string();
    let responses = &operation["responses"];
    let response = match &responses[&status] {
        Value::Null => {
            assert!(answer.status >= 400, "{what}");
            &responses["default"]
        }
        response => response,
    };
    let documented = response["headers"].as_object().unwrap();
    for header in RELIED_ON
        .into_iter()
        .filter(|header| answer.header(header).is_some())
    {
        let is_named = documented
            .keys()
            .any(|name| name.eq_ignore_ascii_case(header));
        assert!(
            is_named,
            "the document does not name the answer's {header}; {what}"
        );
    }
    let Some(content) = response.get("content") else {
        assert!(answer.body.is_empty(), "{what}");
        return;
    };
    let kind = answer.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap();
    let schema = &content[kind]["schema"];
    assert!(content.get(kind).is_some(), "{what}");
    // For artifacts only the media type is documented, and other documents may be any JSON.
    if !kind.ends_with("json") || kind.contains("ndjson") || !schema.is_object() {
        return;
    }
    let mut validators = VALIDATORS.lock().unwrap();
    let key = (route.path, &route.method, status);
    let validator = validators.entry(key).or_insert_with(|| {
        let mut schema = schema.clone();
        schema["components"] = OPENAPI["components"].clone();
        Arc::new(jsonschema::validator_for(&schema).unwrap())
    });
    let validator = validator.clone();
    drop(validators);
    let body = answer.json();
    let problems: Vec<String> = validator
        .iter_errors(&body)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(problems.is_empty(), "{problems:?}\n{what}");
}

#[tokio::test]
async fn the_document_and_its_page_are_public() {
    let service = Service::start().await;
    let get = |path: &str| Call::get(path).send(service.address);
    let document = get("/v0/openapi.json").await;
    assert_eq!(document.expect(200), *OPENAPI);
    assert_eq!(OPENAPI["openapi"], json!("3.1.0"));
    let page = get("/v0/docs").await;
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    let page = page.text();
    for text in [
        "<code>/v0/jobs/{job}/logs</code>",
        "id=\"Problem\"",
        "Cancel a job",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[tokio::test]
async fn every_get_route_also_answers_head() {
    let service = Service::start().await;
    for path in ["/healthz", "/v0/openapi.json", "/v0/jobs"] {
        let get = service.admin(Call::get(path)).await;
        let head = service.admin(Call::new(Method::HEAD, path)).await;
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
        for header in ["content-type", "etag"] {
            assert_eq!(head.header(header), get.header(header), "{path}");
        }
    }
    let none = service.admin(Call::new(Method::HEAD, "/v0/messages")).await;
    assert_eq!(none.status, 405);
}

#[test]
fn the_page_of_error_codes_is_complete() {
    let schema = &OPENAPI["components"]["schemas"]["ErrorCode"];
    let mut page = String::from(
        "# Error codes\n\nEvery error of the API is `application/problem+json` (RFC 9457) with one of these codes. A code never changes its\n\
         meaning. `detail` says what went wrong, `hint` what to do next, and `request_id` finds a failure of the daemon (500) in its log, and every request with `SERVICE_LOG=info,api=debug`.\n\n\
         | code | status and meaning |\n| --- | --- |\n",
    );
    for code in schema["oneOf"].as_array().unwrap() {
        let names = code["enum"].as_array().cloned();
        for name in names.unwrap_or_else(|| vec![code["const"].clone()]) {
            let meaning = code["description"].as_str().unwrap().replace('\n', " ");
            let meaning = meaning.replace("[`ErrorCode::", "`").replace("`]", "`");
            page.push_str(&format!("| `{}` | {meaning} |\n", name.as_str().unwrap()));
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors.md");
    if std::env::var_os("UPDATE_ANSWERS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), page);
}
