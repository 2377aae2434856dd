//! Callback servers and interactions. Whatever strangers wrote is harmless for a terminal.

use serde_json::Value;
use wire::{
    Callback, CallbackCheck, CallbackFinding, CallbackOutcome, CallbackRules, CallbackToken,
    Interaction, InteractionRequest, Page, PlantedPayload, PlantingJob,
};

use crate::everscan::{command, finished, run_at};
use crate::fixtures::{at, id};
use crate::server::{Reply, Server};
use crate::snapshot;

const SERVER: &str = "k3v9aaaaaaaaaaq2";
const TAG: &str = "7dmraaaaaaaaaaaaaaxa";

fn callback() -> Callback {
    Callback {
        id: SERVER.replace('9', "2"),
        project: "main".to_owned(),
        name: "shop".to_owned(),
        names: vec![format!("{SERVER}.oast.example")],
        created_at: at(0),
        created_by: "ann".to_owned(),
        keep_days: Some(30),
        tokens: 1,
        interactions: 2,
        bytes: 2_048,
        left_out: 0,
        unknown_tags: 3,
        full: false,
    }
}

fn dns(number: u64) -> Interaction {
    Interaction {
        number,
        at: at(number.cast_signed()),
        peer: "192.0.2.1:53".to_owned(),
        tag: Some(TAG.to_owned()),
        note: Some("login form".to_owned()),
        payload: Some(PlantedPayload {
            group: "xss".to_owned(),
            name: "img.svg".to_owned(),
            version: 3,
            target: Some("shop.example".to_owned()),
        }),
        job: Some(PlantingJob {
            id: id(7),
            scan: "probe".to_owned(),
        }),
        request: InteractionRequest::Dns {
            transport: "udp".to_owned(),
            name: format!("{SERVER}-{TAG}.OAST.example"),
            qtype: "A".to_owned(),
            client_subnet: None,
        },
        answer: "NOERROR".to_owned(),
        rule: Some("rebind".to_owned()),
        left_out: 0,
        repeats: 2,
        raw_bytes: 3,
        // The bytes 0, 1 and 255.
        raw: Some("AAH/".to_owned()),
    }
}

fn http(number: u64) -> Interaction {
    Interaction {
        tag: None,
        note: None,
        payload: None,
        job: None,
        request: InteractionRequest::Http {
            method: "GET".to_owned(),
            target: "/\u{1b}[2J\u{202e}".to_owned(),
            host: format!("{SERVER}.oast.example:80"),
            head_bytes: 12,
            truncated: true,
            malformed: false,
            tls: true,
            sni: Some(format!("{SERVER}.oast.example")),
        },
        left_out: 7,
        raw_bytes: 16,
        // `GET / \x1b[2J\r\n` and a body with a zero, U+009B and U+202E.
        raw: Some("R0VUIC8gG1sySg0KAGJvZMKb4oCu".to_owned()),
        ..dns(number)
    }
}

/// Runs a command after the list of servers, and compares what it prints.
fn check(name: &str, line: &str, request: &str, reply: Reply) -> String {
    let servers = Reply::json(&Page::all(vec![callback()]));
    let server = Server::start([servers, reply]);
    let output = run_at(&server.url, line);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(server.lines()[1], request);
    snapshot::check_listing(name, &output.stdout);
    output.stdout
}

#[test]
fn servers_and_names_are_listed() {
    let servers = Reply::json(&Page::all(vec![callback()]));
    let server = Server::start([servers]);
    let output = run_at(&server.url, "callback list --project main");
    assert_eq!(server.lines(), ["GET /v0/callbacks?project=main"]);
    snapshot::check_listing("callback-list", &output.stdout);
    let token = CallbackToken {
        tag: TAG.to_owned(),
        names: vec![format!("{SERVER}-{TAG}.oast.example")],
        note: "login form".to_owned(),
        created_at: at(0),
        created_by: "ann".to_owned(),
        expires_at: None,
    };
    let id = callback().id;
    check(
        "callback-token-list",
        "callback token list shop",
        &format!("GET /v0/callbacks/{id}/tokens"),
        Reply::json(&Page::all(vec![token.clone()])),
    );
    let made = check(
        "callback-token-create",
        "callback token create shop --expires-in never",
        &format!("POST /v0/callbacks/{id}/tokens"),
        Reply::json(&token).status(201),
    );
    assert_eq!(made, format!("{SERVER}-{TAG}.oast.example\n"));
}

#[test]
fn a_check_shows_what_is_good_and_fails_if_something_is_bad() {
    let finding = |zone: Option<&str>, outcome, text: &str| CallbackFinding {
        zone: zone.map(str::to_owned),
        outcome,
        text: text.to_owned(),
    };
    let (good, bad, unknown) = (
        finding(None, CallbackOutcome::Good, "DNS listens on 192.0.2.1:53"),
        finding(
            Some("oast.example"),
            CallbackOutcome::Bad,
            "no glue\u{1b}[2J",
        ),
        finding(None, CallbackOutcome::Unknown, "whether the internet"),
    );
    for (findings, code) in [
        (vec![good.clone(), unknown.clone()], 0),
        (vec![good, bad, unknown], 1),
    ] {
        let server = Server::start([Reply::json(&CallbackCheck { findings })]);
        let output = run_at(&server.url, "callback check");
        assert_eq!(server.lines(), ["GET /v0/callback-check"]);
        assert_eq!(output.code, code, "{}", output.stderr);
        if code == 1 {
            snapshot::check_listing("callback-check", &output.stdout);
        }
    }
}

#[test]
fn interactions_are_shown_without_control_characters() {
    let id = callback().id;
    let page = Page::all(vec![http(2), dns(1)]);
    let listed = check(
        "callback-interactions",
        "callback list shop --type http",
        &format!("GET /v0/callbacks/{id}/interactions?type=http"),
        Reply::json(&page),
    );
    let shown = check(
        "callback-interaction",
        "callback show shop 2",
        &format!("GET /v0/callbacks/{id}/interactions/2"),
        Reply::json(&http(2)),
    );
    for text in [listed, shown] {
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{202e}'),
            "{text}"
        );
    }
}

#[test]
fn scripts_for_interactsh_get_its_fields() {
    let id = callback().id;
    let servers = Reply::json(&Page::all(vec![callback()]));
    let page = Reply::json(&Page::all(vec![http(2), dns(1)]));
    let server = Server::start([servers, page]);
    let output = run_at(&server.url, "callback list shop --format interactsh");
    let request = format!("GET /v0/callbacks/{id}/interactions?raw=true");
    assert_eq!(server.lines()[1], request);
    let lines: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["protocol"], "http");
    assert_eq!(lines[0]["full-id"], SERVER);
    assert_eq!(
        lines[0]["raw-request"],
        "GET / \u{1b}[2J\r\n\0bod\u{9b}\u{202e}"
    );
    let is_obeyed = |c: char| c != '\n' && workflow::is_obeyed(c);
    assert!(!output.stdout.contains(is_obeyed), "{}", output.stdout);
    assert_eq!(lines[1]["protocol"], "dns");
    assert_eq!(lines[1]["q-type"], "A");
    assert_eq!(lines[1]["unique-id"], format!("{id}-{TAG}"));
    assert_eq!(lines[1]["full-id"], format!("{SERVER}-{TAG}"));
    assert_eq!(lines[1]["remote-address"], "192.0.2.1");
    assert_eq!(
        lines[1]["timestamp"],
        at(1).to_rfc3339_opts(chrono::SecondsFormat::Nanos, true)
    );
}

#[test]
fn filters_of_interactions_need_a_server() {
    let server = Server::start([]);
    for line in ["callback list --tag x", "callback list --format interactsh"] {
        let output = run_at(&server.url, line);
        assert_eq!(output.code, 2, "{}", output.stderr);
        assert!(
            output.stderr.contains("needs a callback server"),
            "{}",
            output.stderr
        );
    }
}

#[test]
fn rules_are_printed_as_they_are_set() {
    let text = "rules:\n- type: http\n  name: redirect\n  path: /to/*\n  status: 302\n  headers: {Location: 'http://127.0.0.1/'}\n\
                - {type: dns, name: rebind, label: r, record: A, values: [127.0.0.1], rotate: true}\n\
                ignore: {types: [AAAA]}\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let rules: CallbackRules = serde_yaml::from_str(text).unwrap();
    let id = callback().id;
    let set = format!("callback rule set shop {}", file.path().display());
    let servers = || Reply::json(&Page::all(vec![callback()]));
    let server = Server::start([servers(), Reply::json(&rules)]);
    let output = run_at(&server.url, &set);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(server.lines()[1], format!("PUT /v0/callbacks/{id}/rules"));
    let shown = check(
        "callback-rules",
        "callback rule show shop",
        &format!("GET /v0/callbacks/{id}/rules"),
        Reply::json(&rules),
    );
    assert_eq!(
        serde_yaml::from_str::<CallbackRules>(&shown).unwrap(),
        rules
    );
    std::fs::write(file.path(), "rules: [{type: http, name: a, hedaers: {}}]").unwrap();
    let server = Server::start([servers()]);
    let output = run_at(&server.url, &set);
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("hedaers"), "{}", output.stderr);
}

#[test]
fn a_server_shows_what_is_not_recorded() {
    let servers = Reply::json(&Page::all(vec![callback()]));
    let server = Server::start([servers]);
    let output = run_at(&server.url, "callback show shop");
    snapshot::check_listing("callback-show", &output.stdout);
}

#[test]
fn a_watch_ends_with_the_wanted_number_or_with_the_time() {
    let replies = |heard: Vec<Interaction>| {
        [
            Reply::json(&Page::all(vec![callback()])),
            Reply::json(&Page::all(vec![dns(4)])),
            Reply::json(&Page::all(heard)),
        ]
    };
    let server = Server::start(replies(vec![dns(5), dns(6)]));
    let output = run_at(&server.url, "callback watch shop --min 2 --for 100s");
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(output.stdout.lines().count(), 2);
    let id = callback().id;
    let waits = format!("GET /v0/callbacks/{id}/interactions?after=4&wait=true");
    assert_eq!(server.lines()[2], waits);
    let [servers, newest, _] = replies(Vec::new());
    let held = Reply::json(&Page::<Interaction>::all(Vec::new()));
    let held = held.held(std::time::Duration::from_secs(3_600));
    let server = Server::start([servers, newest, held]);
    let output = run_at(&server.url, "callback watch shop --for 1s");
    assert_eq!(output.code, 6, "{}", output.stderr);
    assert!(
        output.stderr.contains("0 of 1 interactions"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_step_watches_the_server_of_its_job_from_the_claim() {
    let id = callback().id;
    let job = "01a3c0de-0000-7000-8000-000000000001";
    for (line, query) in [
        ("callback watch --for 100s", format!("job={job}&after=0")),
        ("callback watch shop --min 1", format!("job={job}&after=0")),
        ("callback watch --after 3 --min 1", "after=3".to_owned()),
    ] {
        let servers = Reply::json(&Page::all(vec![callback()]));
        let server = Server::start([servers, Reply::json(&Page::all(vec![dns(5)]))]);
        let mut step = command(line);
        step.env("SERVICE_URL", &server.url)
            .env("SERVICE_JOB_ID", job)
            .env("SERVICE_CALLBACK_HOST", format!("{id}-{TAG}.oast.example"));
        let output = finished(step.output().unwrap());
        assert_eq!(output.code, 0, "{}", output.stderr);
        let waits = format!("GET /v0/callbacks/{id}/interactions?{query}&wait=true");
        assert_eq!(server.lines()[1], waits);
    }
}
