//! Payload groups, payloads and renders.

use serde_json::{Value, json};
use uuid::Uuid;
use wire::{Page, Payload, PayloadGroup, PayloadGroupDetail, PayloadVariable, RenderedPayload};

use crate::everscan::{command, finished, run_at};
use crate::fixtures::at;
use crate::server::{Reply, Server};
use crate::snapshot;

const ID: Uuid = Uuid::from_u128(7);

fn group() -> PayloadGroup {
    let variable = |name: &str, default: Option<&str>| PayloadVariable {
        name: name.to_owned(),
        placeholder: Some(format!("%%{name}%%")),
        default: default.map(str::to_owned),
    };
    PayloadGroup {
        id: ID,
        project: "main".to_owned(),
        name: "xss".to_owned(),
        variables: vec![variable("CALLBACK", None), variable("TARGET", Some("x"))],
        serve: true,
        payloads: 1,
        bytes: 2_048,
        created_at: at(0),
        created_by: "ann".to_owned(),
    }
}

fn payload(version: u64) -> Payload {
    Payload {
        name: "img.svg".to_owned(),
        version,
        media_type: "image/svg+xml".to_owned(),
        size: 40,
        sha256: "ab".repeat(32),
        bytes: 80,
        updated_at: at(1),
        updated_by: "ann".to_owned(),
    }
}

fn groups() -> Reply {
    Reply::json(&Page::all(vec![group()]))
}

fn detail() -> Reply {
    Reply::json(&PayloadGroupDetail {
        group: group(),
        payloads: vec![payload(2)],
    })
}

fn line(target: Option<&str>, text: Option<&str>, base64: Option<&str>) -> String {
    let line = RenderedPayload {
        payload: "img.svg".to_owned(),
        version: 2,
        tag: None,
        target: target.map(str::to_owned),
        text: text.map(str::to_owned),
        base64: base64.map(str::to_owned),
    };
    serde_json::to_string(&line).unwrap() + "\n"
}

#[test]
fn groups_and_payloads_are_listed() {
    for (name, line, replies, request) in [
        (
            "payload-groups",
            "payload group list --project main",
            vec![groups()],
            "GET /v0/payload-groups?project=main".to_owned(),
        ),
        (
            "payload-group",
            "payload group show xss",
            vec![groups()],
            "GET /v0/payload-groups".to_owned(),
        ),
        (
            "payload-list",
            "payload list xss",
            vec![groups(), detail()],
            format!("GET /v0/payload-groups/{ID}"),
        ),
    ] {
        let server = Server::start(replies);
        let output = run_at(&server.url, line);
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert_eq!(server.lines().last(), Some(&request));
        snapshot::check_listing(name, &output.stdout);
    }
}

#[test]
fn a_group_is_created_with_its_variables() {
    let server = Server::start([Reply::json(&group()).status(201)]);
    let line = "payload group create xss --project main --variable CALLBACK --variable ID=7 --placeholder ID={{id}}";
    let output = run_at(&server.url, line);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let sent: Value = serde_json::from_str(&server.seen()[0].body).unwrap();
    let variables =
        json!([{"name": "CALLBACK"}, {"name": "ID", "placeholder": "{{id}}", "default": "7"}]);
    assert_eq!(
        sent,
        json!({"project": "main", "name": "xss", "variables": variables})
    );
    let wrong = run_at(
        &server.url,
        "payload group change xss --variable A --placeholder B=x",
    );
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
}

#[test]
fn a_body_is_sent_and_printed_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body");
    let body = b"a\0b\r\n{{ ${{ \xff";
    std::fs::write(&file, body).unwrap();
    let server = Server::start([groups(), Reply::json(&payload(1)).status(201)]);
    let line = format!("payload create xss img.svg {}", file.display());
    let output = run_at(&server.url, &line);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "img.svg@1\n"),
        "{}",
        output.stderr
    );
    assert_eq!(
        server.lines()[1],
        format!("PUT /v0/payload-groups/{ID}/payloads/img.svg")
    );
    let body = Reply::bytes(body.to_vec()).header("etag", "\"1\"");
    let server = Server::start([groups(), body]);
    let shown = command("payload show xss img.svg@1")
        .env("SERVICE_URL", &server.url)
        .output()
        .unwrap();
    assert_eq!(shown.stdout, b"a\0b\r\n{{ ${{ \xff");
    assert_eq!(
        server.lines()[1],
        format!("GET /v0/payload-groups/{ID}/payloads/img.svg?version=1")
    );
}

#[test]
fn an_editor_changes_the_newest_version() {
    let read = Reply::bytes(b"old".to_vec()).header("etag", "\"2\"");
    let server = Server::start([
        groups(),
        detail(),
        read,
        Reply::json(&payload(3)).status(201),
    ]);
    let edit = |url: &str, editor: &str| {
        let mut command = command("payload edit xss img.svg");
        let command = command.env("SERVICE_URL", url).env("EDITOR", editor);
        finished(command.env("PATH", "/usr/bin:/bin").output().unwrap())
    };
    let output = edit(&server.url, "printf new >");
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "img.svg@3\n"),
        "{}",
        output.stderr
    );
    assert_eq!(server.seen()[3].body, "new");
    let read = Reply::bytes(b"old".to_vec()).header("etag", "\"2\"");
    let server = Server::start([groups(), detail(), read]);
    let failed = edit(&server.url, "false");
    assert_eq!(failed.code, 2);
    assert!(
        failed.stderr.contains("nothing is stored"),
        "{}",
        failed.stderr
    );
}

#[test]
fn renders_are_printed_plain_or_as_json_lines() {
    let both = line(Some("a"), Some("<a>"), None) + &line(Some("b"), None, Some("AP8="));
    let run = |line: &str, lines: String| {
        let answer =
            Reply::bytes(lines.into_bytes()).header("content-type", "application/x-ndjson");
        let server = Server::start([groups(), answer]);
        let output = command(line)
            .env("SERVICE_URL", &server.url)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(
            server.lines()[1],
            format!("POST /v0/payload-groups/{ID}/renders")
        );
        (output.stdout, server.seen()[1].body.clone())
    };
    let (plain, asked) = run(
        "payload render xss --for a --for b --value ID=1",
        both.clone(),
    );
    assert_eq!(plain, b"<a>\n\0\xff\n");
    let asked: Value = serde_json::from_str(&asked).unwrap();
    assert_eq!(asked, json!({"values": {"ID": "1"}, "targets": ["a", "b"]}));
    let (lines, _) = run(
        "payload render xss --for a --for b --output json",
        both.clone(),
    );
    assert_eq!(String::from_utf8(lines).unwrap(), both);
    let (_, asked) = run(
        "payload render xss --for a --callback aaaaaaaaaaaaaaaa --mint --note shop --expires-in never",
        line(Some("a"), Some("x"), None),
    );
    let asked: Value = serde_json::from_str(&asked).unwrap();
    assert_eq!(
        asked["mint"],
        json!({"note": "shop", "never_expires": true})
    );
    let (_, asked) = run(
        "payload render xss --for a --callback aaaaaaaaaaaaaaaa --mint",
        line(Some("a"), Some("x"), None),
    );
    let asked: Value = serde_json::from_str(&asked).unwrap();
    assert_eq!(asked["mint"], json!({"expires_in_seconds": 7_776_000}));
    let (one, _) = run(
        "payload render xss img.svg",
        line(None, Some("as it is"), None),
    );
    assert_eq!(one, b"as it is");
}
