//! What people and programs see of lists and single things.

use wire::{JobState, Page, Why};

use crate::everscan::run_at;
use crate::fixtures::{artifact, id, job, page, runner, source, token, why, workflow};
use crate::server::{Reply, Server};
use crate::snapshot;

/// Compares the data of a command that makes one request; errors are checked by the exit code.
#[track_caller]
fn check(name: &str, line: &str, request: &str, reply: Reply) {
    let server = Server::start([reply]);
    let told = run_at(&server.url, line);
    assert_eq!(told.code, 0, "{}", told.talk);
    assert_eq!(server.lines(), [request]);
    let path = snapshot::folder("listings").join(format!("{name}.txt"));
    snapshot::check(&path, &told.data);
}

#[test]
fn jobs() {
    let jobs = Page {
        items: vec![job(JobState::Running), job(JobState::Failed)],
        next_cursor: Some("next".to_owned()),
    };
    let request = "GET /v0/jobs?workflow=main%2Frecon&state=failed&limit=2";
    let line = "job list --workflow main/recon --state failed --limit 2";
    check("job-list", line, request, Reply::json(&jobs));
    let line = format!("{line} --output json");
    check("job-list-json", &line, request, Reply::json(&jobs));
}

#[test]
fn one_job() {
    let request = format!("GET /v0/jobs/{}", id(1));
    let reply = Reply::json(&job(JobState::Succeeded));
    for (name, form) in [
        ("job-show", "table"),
        ("job-show-json", "json"),
        ("job-show-yaml", "yaml"),
    ] {
        let line = format!("job show {} --output {form}", id(1));
        check(name, &line, &request, reply.clone());
    }
}

#[test]
fn artifacts() {
    let request = format!("GET /v0/jobs/{}/artifacts", id(1));
    let line = format!("job artifact list -j {}", id(1));
    check(
        "artifact-list",
        &line,
        &request,
        Reply::json(&page(vec![artifact()])),
    );
}

#[test]
fn sources() {
    let list = page(vec![source(true), source(false)]);
    check(
        "source-list",
        "source list",
        "GET /v0/sources",
        Reply::json(&list),
    );
    let reply = Reply::json(&source(false));
    check(
        "source-show",
        "source show main",
        "GET /v0/sources/main",
        reply,
    );
}

#[test]
fn why_a_scan_ran_or_did_not() {
    let request = "GET /v0/workflows/main%2Frecon/scans/changes/why?limit=10";
    let line = "scan why main/recon changes";
    check("scan-why", line, request, Reply::json(&why()));
    let request =
        "GET /v0/workflows/recon/scans/only/why?limit=3&at=2026-11-21T10%3A00%3A00%2B00%3A00";
    let line = "scan why recon only --limit 3 --at 2026-11-21T10:00:00Z";
    let by_hand = Why {
        cron: None,
        expr: None,
        records: Vec::new(),
        unfinished: Vec::new(),
        ..why()
    };
    check("scan-why-dispatch", line, request, Reply::json(&by_hand));
}

#[test]
fn workflows() {
    let list = page(vec![workflow()]);
    check(
        "workflow-list",
        "workflow list",
        "GET /v0/workflows",
        Reply::json(&list),
    );
    let request = "GET /v0/workflows/main%2Fnightly%2Frecon";
    let line = "workflow show main/nightly/recon";
    check("workflow-show", line, request, Reply::json(&workflow()));
}

#[test]
fn runners_and_tokens() {
    let list = page(vec![runner()]);
    check(
        "runner-list",
        "runner list",
        "GET /v0/runners",
        Reply::json(&list),
    );
    let list = page(vec![token()]);
    check(
        "token-list",
        "token list",
        "GET /v0/tokens",
        Reply::json(&list),
    );
}

#[test]
fn an_empty_list_is_its_headings() {
    let server = Server::start([Reply::json(&page::<wire::Job>(Vec::new()))]);
    let told = run_at(&server.url, "job list");
    assert_eq!(told.data.lines().count(), 1, "{}", told.data);
}

#[test]
fn secrets_are_data_alone() {
    let created = wire::CreatedToken {
        token: token(),
        secret: "evs_secret".to_owned(),
    };
    let server = Server::start([Reply::json(&created)]);
    let line = "token create --name ci --scope job:read --scope dispatch --expires-in 30d";
    let told = run_at(&server.url, line);
    assert_eq!((told.code, told.data.as_str()), (0, "evs_secret\n"));
    assert_eq!(
        server.seen()[0].body,
        r#"{"name":"ci","scopes":["job:read","dispatch"],"expires_in_seconds":2592000}"#
    );
    let registration = serde_json::json!({"token": "reg", "expires_at": "2026-11-20T10:00:00Z"});
    let server = Server::start([Reply::json(&registration)]);
    let told = run_at(&server.url, "runner register-token");
    assert_eq!((told.code, told.data.as_str()), (0, "reg\n"));
}

#[test]
fn a_sync_that_was_waited_for_fails_with_its_source() {
    for (valid, line, request, code) in [
        (
            true,
            "source sync main --wait",
            "POST /v0/sources/main/sync?wait=true",
            0,
        ),
        (
            false,
            "source sync main --wait",
            "POST /v0/sources/main/sync?wait=true",
            1,
        ),
        (false, "source sync main", "POST /v0/sources/main/sync", 0),
    ] {
        let server = Server::start([Reply::json(&source(valid))]);
        let told = run_at(&server.url, line);
        assert_eq!(told.code, code, "{line}: {}", told.talk);
        assert_eq!(server.lines(), [request]);
    }
}

#[test]
fn a_deleted_runner_is_talk() {
    let server = Server::start([Reply::bytes("").status(204)]);
    let told = run_at(&server.url, &format!("runner delete {}", id(5)));
    assert_eq!((told.code, told.data.as_str()), (0, ""));
    assert_eq!(server.lines(), [format!("DELETE /v0/runners/{}", id(5))]);
}
