//! Every answer on the wire, compared with a file of its area. Clients rely on these answers.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use api::ROUTES;
use http::Method;
use serde_json::{Map, Value, json};

use crate::client::{Answer, Call};
use crate::service::{Runner, Service, text};

/// Compares an answer's JSON with an entry of `answers/<area>.json`. `name` is `<area>/<entry>`.
pub(crate) fn check(service: &Service, name: &str, answer: &Answer) {
    static FILES: Mutex<()> = Mutex::new(());
    let mut body = answer.json();
    let fixed = json!("00000000-0000-4000-8000-000000000000");
    if let Some(id) = body.get_mut("request_id") {
        *id = fixed.clone();
    }
    let items = body.get_mut("items").and_then(Value::as_array_mut);
    for id in items
        .into_iter()
        .flatten()
        .filter_map(|item| item.get_mut("request_id"))
    {
        *id = fixed.clone();
    }
    let shown = serde_json::to_string_pretty(&body).unwrap();
    let shown = shown.replace(service.folder().to_str().unwrap(), "/srv/git");
    let (area, entry) = name.split_once('/').unwrap();
    let file = folder().join(format!("{area}.json"));
    let _turn = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let all = fs::read(&file).unwrap_or_else(|_| b"{}".to_vec());
    let mut all: Map<String, Value> = serde_json::from_slice(&all).unwrap();
    if is_update() {
        let shown = serde_json::from_str(&shown).unwrap();
        all.insert(entry.to_owned(), shown);
        let text = serde_json::to_string_pretty(&all).unwrap() + "\n";
        fs::write(&file, text).unwrap();
    }
    let expected = serde_json::to_string_pretty(&all.get(entry)).unwrap();
    expect_equal(name, &shown, &expected);
}

/// Compares a text with the file of that name in `answers/`.
pub(crate) fn compare(name: &str, shown: &str) {
    let file = folder().join(name);
    if is_update() {
        fs::write(&file, shown).unwrap();
    }
    expect_equal(name, shown, &fs::read_to_string(&file).unwrap_or_default());
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/answers")
}

fn is_update() -> bool {
    std::env::var_os("UPDATE_ANSWERS").is_some()
}

fn expect_equal(name: &str, shown: &str, expected: &str) {
    assert!(
        shown == expected,
        "{name} is not\n{expected}\nbut\n{shown}\n(UPDATE_ANSWERS=1 takes it over)"
    );
}

/// A service with every kind of object. Returns the finished and the running job.
async fn lived_in() -> (Service, String, String) {
    let service = Service::start().await;
    let (runner, worker) = service.claimed("one").await;
    let said = worker.append(0, &["making all", "done"]);
    said.send(service.address).await.expect(200);
    let stored = worker.upload("out", b"a zip");
    stored.send(service.address).await.expect(200);
    service.complete(&worker, 2).await.expect(200);
    service.dispatch("build").await;
    let running = service.claim(&runner, &[]).await;
    let steps = json!({"steps": [{
        "index": 0, "status": "running", "started_at": "2026-11-20T12:00:00Z",
    }]});
    let report = running.call(Method::POST, &running.path("timeline"));
    let report = report.json(&steps).send(service.address).await;
    assert_eq!((report.status, report.body.len()), (204, 0));
    service.dispatch("large").await;
    service
        .set("vars/URL", "https://localhost")
        .await
        .expect(200);
    service.set("vars/DEPTH", "3").await.expect(200);
    service.set("secrets/KEY", "hunter2").await.expect(200);
    for (path, body) in [
        (
            "channels/team",
            json!({ "target": { "kind": "slack" }, "secret": "https://hooks.example/x" }),
        ),
        (
            "rules/nightly",
            json!({ "channel": "team", "events": ["failing"] }),
        ),
    ] {
        let call = Call::new(Method::PUT, format!("/v0/{path}?project=main"));
        service.admin(call.json(&body)).await.expect(200);
    }
    (service, worker.id, running.id)
}

#[tokio::test]
async fn the_answers_of_reading_routes_are_unchanged() {
    let (service, finished, running) = lived_in().await;
    let workflow = text(&service.get("/v0/workflows/pipeline").await.expect(200)["id"]);
    let mut shown = Vec::new();
    for (name, path) in [
        ("daemon/healthz", "/healthz".to_owned()),
        ("daemon/readyz", "/readyz".to_owned()),
        (
            "schema/schema_workflow",
            "/v0/schema/workflow.json".to_owned(),
        ),
        ("sources/sources", "/v0/sources".to_owned()),
        ("sources/source", "/v0/sources/main".to_owned()),
        ("conditions/conditions", "/v0/conditions".to_owned()),
        ("notify/rules", "/v0/rules".to_owned()),
        ("notify/channels", "/v0/channels".to_owned()),
        (
            "notify/channel",
            "/v0/channels/team?project=main".to_owned(),
        ),
        ("notify/deliveries", "/v0/deliveries".to_owned()),
        ("projects/projects", "/v0/projects".to_owned()),
        ("projects/project", "/v0/projects/main".to_owned()),
        ("projects/vars", "/v0/projects/main/vars".to_owned()),
        ("projects/var", "/v0/projects/main/vars/URL".to_owned()),
        ("projects/secrets", "/v0/projects/main/secrets".to_owned()),
        (
            "projects/secret_masking",
            "/v0/projects/main/secrets/KEY/masking".to_owned(),
        ),
        ("workflows/workflows", "/v0/workflows".to_owned()),
        ("workflows/workflow", format!("/v0/workflows/{workflow}")),
        (
            "scans/why_schedule",
            format!("/v0/workflows/{workflow}/scans/nightly/why"),
        ),
        (
            "scans/why_expression",
            format!("/v0/workflows/{workflow}/scans/announce/why"),
        ),
        (
            "scans/why_dispatch",
            format!("/v0/workflows/{workflow}/scans/large/why?at=2026-11-20T12:00:00Z"),
        ),
        ("jobs/jobs", "/v0/jobs".to_owned()),
        ("jobs/job_finished", format!("/v0/jobs/{finished}")),
        ("jobs/job_running", format!("/v0/jobs/{running}")),
        (
            "jobs/log_matches",
            format!("/v0/jobs/{finished}/logs/search?q=MAKING&case=false"),
        ),
        (
            "artifacts/artifacts",
            format!("/v0/jobs/{finished}/artifacts"),
        ),
        (
            "artifacts/artifacts_none",
            format!("/v0/jobs/{running}/artifacts"),
        ),
        ("daemon/tokens", "/v0/tokens".to_owned()),
        ("runners/runners", "/v0/runners".to_owned()),
        ("daemon/audit", "/v0/audit?limit=2".to_owned()),
    ] {
        service.use_is_noted("tester").await;
        let answer = service.get(&path).await;
        answer.expect(200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        check(&service, name, &answer);
        shown.push(path);
    }
    // The log and the artifact itself are not JSON.
    let log = service.get(&format!("/v0/jobs/{finished}/logs")).await;
    assert_eq!(
        log.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    compare("log.txt", log.text());
    shown.extend([
        format!("/v0/jobs/{finished}/logs"),
        format!("/v0/jobs/{finished}/artifacts/out"),
        // Compared in `events` and in `blobs`.
        "/v0/events".to_owned(),
        // A tar; see `operations`.
        format!("/v0/jobs/{finished}/source"),
        // Its numbers differ from run to run; see `metrics`.
        "/metrics".to_owned(),
        // Compared with the document itself.
        "/v0/openapi.json".to_owned(),
        "/v0/docs".to_owned(),
        // Compared in `sessions`.
        "/v0/sessions".to_owned(),
        // Compared in `scans`.
        "/v0/scans".to_owned(),
        "/v0/schedule".to_owned(),
        format!("/v0/workflows/{workflow}/scans/build"),
        format!("/v0/workflows/{workflow}/scans/build/history"),
        format!("/v0/workflows/{workflow}/scans/build/ledger"),
        // Compared in `callbacks`.
        "/v0/callback-check".to_owned(),
        "/v0/callbacks".to_owned(),
        "/v0/callbacks/a".to_owned(),
        "/v0/callbacks/a/rules".to_owned(),
        "/v0/callbacks/a/tokens".to_owned(),
        "/v0/callbacks/a/interactions".to_owned(),
        "/v0/callbacks/a/interactions/1".to_owned(),
        // Compared in `payloads`.
        "/v0/payload-groups".to_owned(),
        "/v0/payload-groups/a".to_owned(),
        "/v0/payload-groups/a/payloads/a".to_owned(),
        // Compared in `entries`.
        format!("/v0/jobs/{finished}/artifacts/out/entries"),
        format!("/v0/jobs/{finished}/artifacts/out/diff"),
        // Compared in `job_ids`.
        format!("/v0/jobs/{finished}/context"),
        // Compared in `runners`.
        "/v0/runners/one".to_owned(),
        // Compared in `users`.
        "/v0/users".to_owned(),
        "/v0/users/ann".to_owned(),
        "/v0/me".to_owned(),
        "/v0/projects/main/members".to_owned(),
        // Compared in `sources`.
        "/v0/sources/main/tips".to_owned(),
        // Compared in `revisions`.
        format!("/v0/workflows/{workflow}/revisions"),
        format!("/v0/workflows/{workflow}/revisions/2"),
        format!("/v0/workflows/{workflow}/revisions/2/diff"),
        "/v0/blobs".to_owned(),
        "/v0/blobs/a".to_owned(),
        "/v0/blob-links".to_owned(),
        "/v0/linked-blobs/a".to_owned(),
    ]);
    let of_api = ROUTES
        .iter()
        .filter(|route| !route.access.is_for_browsers());
    for route in of_api.filter(|route| route.method == Method::GET) {
        let is_shown = shown.iter().any(|path| fits(route.path, path));
        assert!(is_shown, "{} is not compared with a file", route.path);
    }
}

/// A client that already has the current schema gets 304.
#[tokio::test]
async fn the_schema_is_public_and_can_be_cached() {
    let service = Service::start().await;
    let call = || Call::get("/v0/schema/workflow.json");
    let answer = call().send(service.address).await;
    answer.expect(200);
    assert_eq!(answer.json(), workflow::json_schema());
    let etag = answer.header("etag").unwrap();
    for (known, status) in [(etag, 304), ("\"other\"", 200)] {
        let again = call().header("if-none-match", known);
        let again = again.send(service.address).await;
        assert_eq!((again.status, again.header("etag")), (status, Some(etag)));
        assert_eq!(again.body.is_empty(), status == 304);
        assert_eq!(again.header("cache-control"), Some("public, max-age=3600"));
    }
}

pub(crate) fn fits(pattern: &str, path: &str) -> bool {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let (pattern, path): (Vec<_>, Vec<_>) =
        (pattern.split('/').collect(), path.split('/').collect());
    pattern.len() == path.len()
        && pattern
            .iter()
            .zip(path)
            .all(|(wanted, found)| wanted.starts_with('{') || *wanted == found)
}

#[tokio::test]
async fn the_answers_of_creating_routes_are_unchanged() {
    let service = Service::start().await;
    let answer = service
        .post(
            "/v0/workflows/main%2Fpipeline/scans/build/dispatch",
            &json!({"inputs": {"target": "all", "fast": true}}),
        )
        .await;
    assert_eq!(answer.status, 202);
    check(&service, "jobs/dispatched", &answer);
    let job = text(&answer.json()["job"]["id"]);

    let body =
        json!({"name": "ci", "scopes": ["dispatch", "job:read"], "expires_in_seconds": 3600});
    let answer = service.post("/v0/tokens", &body).await;
    assert_eq!(answer.status, 201);
    check(&service, "daemon/token_created", &answer);

    for (name, text) in [
        (
            "workflows/validated",
            "scans: { a: { on: { dispatch: {} }, steps: [ { run: make, shell: \"${{ inputs.x }}\" } ] } }",
        ),
        ("workflows/validated_invalid", "scans:\n  a:\n    onn: {}\n"),
    ] {
        let body = json!({"text": text, "file": "workflows/new.yaml"});
        let answer = service.post("/v0/validate", &body).await;
        assert_eq!(answer.status, 200);
        check(&service, name, &answer);
    }
    let body = json!({"text": "", "file": ""});
    let refused = service.post("/v0/validate", &body).await;
    refused.problem(400, "invalid_request");

    let answer = service.admin(Call::post("/v0/runner-registrations")).await;
    assert_eq!(answer.status, 201);
    check(&service, "runners/registration_created", &answer);
    let body = json!({
        "token": answer.json()["token"], "name": "one", "labels": ["linux"], "capacity": 1, "version": "0.1.0",
    });
    let answer = Call::post("/v0/runners/register").json(&body);
    let answer = answer.send(service.address).await;
    assert_eq!(answer.status, 201);
    check(&service, "runners/runner_registered", &answer);
    let runner = Runner::registered(&answer.json());

    let answer = runner.poll(1, &[]).send(service.address).await;
    check(&service, "runners/messages_assigned", &answer);
    let worker = crate::service::offered(&answer.json()[0]);
    let answer = worker.call(Method::POST, &worker.path("resolve"));
    check(
        &service,
        "runners/assignment",
        &answer.send(service.address).await,
    );
    let answer = worker.append(0, &["a line"]).send(service.address).await;
    check(&service, "runners/log_receipt", &answer);
    let answer = worker.upload("out", b"a zip").send(service.address).await;
    check(&service, "artifacts/artifact_stored", &answer);

    let answer = service
        .admin(Call::post(format!("/v0/jobs/{job}/cancel")))
        .await;
    assert_eq!(answer.status, 200);
    check(&service, "jobs/job_cancelled", &answer);
    let answer = runner.poll(1, &[&job]).send(service.address).await;
    check(&service, "runners/messages_cancelled", &answer);
    let answer = service.complete(&worker, 1).await;
    assert_eq!(answer.status, 200);
    check(&service, "runners/completed", &answer);
    let answer = service
        .admin(Call::post("/v0/sources/main/sync?wait=true"))
        .await;
    assert_eq!(answer.status, 200);
    check(&service, "sources/source_synced", &answer);

    let answer = service.set("vars/URL", "https://localhost").await;
    assert_eq!(answer.status, 200);
    check(&service, "projects/var_set", &answer);
    let answer = service.set("secrets/KEY", "hunter2").await;
    assert_eq!(answer.status, 200);
    check(&service, "projects/secret_set", &answer);
    for path in ["vars/URL", "secrets/KEY"] {
        let removed = Call::new(Method::DELETE, format!("/v0/projects/main/{path}"));
        let removed = service.admin(removed).await;
        assert_eq!((removed.status, removed.body.len()), (204, 0));
    }

    let removed = Call::new(Method::DELETE, format!("/v0/runners/{}", runner.id));
    let removed = service.admin(removed).await;
    assert_eq!((removed.status, removed.body.len()), (204, 0));
}

#[tokio::test]
async fn a_secret_is_shown_only_once() {
    let service = Service::start().await;
    let body = json!({"name": "ci", "scopes": ["job:read"]});
    let created = service.post("/v0/tokens", &body).await.expect(201);
    let secret = text(&created["secret"]);
    service.register("one", &[], 1).await;
    for path in ["/v0/tokens", "/v0/runners", "/v0/jobs", "/v0/sources"] {
        let shown = service.get(path).await;
        for word in [secret.as_str(), "secret", "hash", "session"] {
            assert!(!shown.text().contains(word), "{word} in {path}");
        }
    }
}

#[tokio::test]
async fn a_finished_job_is_shown_with_all_its_parts() {
    let (service, finished, _) = lived_in().await;
    let job = service
        .get(&format!("/v0/jobs/{finished}"))
        .await
        .expect(200);
    assert_eq!(job["state"], "succeeded");
    assert_eq!(job["log"], json!({"records": 2}));
    assert_eq!(job["steps"].as_array().map(Vec::len), Some(2));
    assert_eq!(job["artifacts"][0]["name"], "out");
    assert_ne!(job["runner"], Value::Null);
}

#[tokio::test]
async fn every_list_comes_in_pages() {
    let service = Service::follow(&["main", "other"]).await;
    for name in ["one", "two", "three"] {
        service.register(name, &[], 1).await;
        let body = json!({"name": name, "scopes": ["job:read"]});
        service.post("/v0/tokens", &body).await.expect(201);
        service.set(&format!("vars/{name}"), "x").await.expect(200);
        service
            .set(&format!("secrets/{name}"), "x-x")
            .await
            .expect(200);
    }
    for (list, member, expected) in [
        ("sources", "name", "main other"),
        (
            "workflows",
            "name",
            "deep/plain pipeline deep/plain pipeline",
        ),
        ("runners", "name", "one three two"),
        ("projects", "name", "main other"),
        ("projects/main/vars", "name", "one three two"),
        ("projects/main/secrets", "name", "one three two"),
        ("tokens", "scopes", ""),
    ] {
        let whole = service.get(&format!("/v0/{list}")).await.expect(200);
        assert_eq!(whole.get("next_cursor"), None);
        let (mut items, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/v0/{list}?limit=1{cursor}");
            let page = service.get(&path).await.expect(200);
            items.extend(page["items"].as_array().unwrap().clone());
            match page.get("next_cursor") {
                Some(next) => cursor = format!("&cursor={}", text(next)),
                None => break,
            }
        }
        let names: Vec<&str> = items
            .iter()
            .filter_map(|item| item[member].as_str())
            .collect();
        assert_eq!(names.join(" "), expected, "{list}");
        assert_eq!(Value::Array(items), whole["items"], "{list}");
        let answer = service.get(&format!("/v0/{list}?limit=0")).await;
        answer.problem(400, "invalid_request");
    }
}
