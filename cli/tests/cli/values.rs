//! Vars and secrets: which project is meant, and where values come from.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;
use uuid::Uuid;
use wire::{
    EncodingMasking, KeyState, Masking, Named, NotMasked, Page, Project, ScanName, Secret, Var,
};

use crate::everscan::{Run, command, finished, run_at};
use crate::server::{Reply, Server};
use crate::snapshot;

fn project(name: &str, configured: bool) -> Project {
    Project {
        id: Uuid::from_u128(1),
        name: name.to_owned(),
        configured,
        vars: 1,
        secrets: 1,
        missing_vars: Vec::new(),
        missing_secrets: Vec::new(),
    }
}

fn named(name: &str) -> Named {
    Named {
        name: name.to_owned(),
        version: 3,
        updated_at: "2026-11-20T12:00:00Z".parse().unwrap(),
        updated_by: "token ci".to_owned(),
        used_by: (1..=4)
            .map(|number| ScanName {
                workflow: "main/recon".to_owned(),
                scan: format!("scan{number}"),
            })
            .collect(),
    }
}

fn secret(name: &str, key_state: KeyState) -> Secret {
    Secret {
        named: named(name),
        key: "0011223344556677".to_owned(),
        key_state,
    }
}

fn with_input(url: &str, line: &str, input: &str) -> Run {
    let mut command = command(line);
    command.env("SERVICE_URL", url).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that refuses before it reads closes the pipe.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    finished(child.wait_with_output().unwrap())
}

#[test]
fn the_project_comes_from_the_flag_the_step_or_the_only_source() {
    let list = || Reply::json(&Page::all(vec![named("A")]));
    let request = |project: &str| format!("GET /v0/projects/{project}/vars");

    let only = Page::all(vec![project("old", false), project("main", true)]);
    let server = Server::start([Reply::json(&only), list()]);
    assert_eq!(run_at(&server.url, "var list").code, 0);
    assert_eq!(
        server.lines(),
        ["GET /v0/projects".to_owned(), request("main")]
    );

    for (arguments, variables, chosen) in [
        (
            "var list --project a",
            [("SERVICE_PROJECT_ID", "c"), ("SERVICE_PROJECT", "b")],
            "a",
        ),
        (
            "var list",
            [("SERVICE_PROJECT_ID", "c"), ("SERVICE_PROJECT", "b")],
            "b",
        ),
        (
            "var list",
            [("SERVICE_PROJECT_ID", "c"), ("UNUSED", "")],
            "c",
        ),
    ] {
        let server = Server::start([list()]);
        let mut command = command(arguments);
        command.env("SERVICE_URL", &server.url).envs(variables);
        assert_eq!(finished(command.output().unwrap()).code, 0);
        assert_eq!(server.lines(), [request(chosen)]);
    }

    let several = Page::all(vec![project("main", true), project("other", true)]);
    let server = Server::start([Reply::json(&several)]);
    let output = run_at(&server.url, "var list");
    assert_eq!(output.code, 2);
    assert!(
        output.stderr.contains("main, other") && output.stderr.contains("--project"),
        "{}",
        output.stderr
    );
}

#[test]
fn lists_show_everything_but_values() {
    let check = |kind: &str, reply: Reply| {
        let server = Server::start([reply]);
        let output = run_at(&server.url, &format!("{kind} list --project main"));
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert_eq!(server.lines(), [format!("GET /v0/projects/main/{kind}s")]);
        snapshot::check_listing(&format!("{kind}-list"), &output.stdout);
    };
    let vars = vec![named("A"), named("LONGER")];
    check("var", Reply::json(&Page::all(vars)));
    let secrets = vec![
        secret("A", KeyState::Current),
        secret("LONGER", KeyState::Old),
        secret("LOST", KeyState::Missing),
    ];
    check("secret", Reply::json(&Page::all(secrets)));
}

#[test]
fn a_test_of_a_secret_shows_what_is_masked() {
    let encoding = |encoding: &str, reason: Option<NotMasked>| EncodingMasking {
        encoding: encoding.to_owned(),
        masked: reason.is_none(),
        reason,
    };
    let masking = Masking {
        name: "A".to_owned(),
        encodings: vec![
            encoding("plain", None),
            encoding("lines", Some(NotMasked::TooShort)),
            encoding("reversed", Some(NotMasked::NotRecognised)),
        ],
        short_lines: vec![1, 2, 3, 4, 6],
    };
    let server = Server::start([Reply::json(&masking)]);
    let output = run_at(&server.url, "secret test A --project main");
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(server.lines(), ["GET /v0/projects/main/secrets/A/masking"]);
    snapshot::check_listing("secret-test", &output.stdout);
}

#[test]
fn a_var_is_set_from_the_command_line_and_printed_as_it_is() {
    let var = Var {
        named: named("A"),
        value: "-x y".to_owned(),
    };
    let server = Server::start([Reply::json(&var)]);
    let output = run_at(&server.url, "var set A -3 --project main");
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, ""),
        "{}",
        output.stderr
    );
    assert_eq!(server.seen()[0].line, "PUT /v0/projects/main/vars/A");
    assert_eq!(server.seen()[0].body, json!({"value": "-3"}).to_string());

    let server = Server::start([Reply::json(&var)]);
    assert_eq!(
        run_at(&server.url, "var get A --project main").stdout,
        "-x y\n"
    );
}

#[test]
fn a_secret_comes_from_a_file_or_a_pipe_and_never_from_an_argument() {
    let server = Server::start([Reply::json(&secret("A", KeyState::Current))]);
    let output = with_input(
        &server.url,
        "secret set A --file - --project main",
        "two\nlines\n",
    );
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, ""),
        "{}",
        output.stderr
    );
    assert_eq!(server.seen()[0].line, "PUT /v0/projects/main/secrets/A");
    assert_eq!(
        server.seen()[0].body,
        json!({"value": "two\nlines"}).to_string()
    );
    assert!(!output.stderr.contains("two"), "{}", output.stderr);

    let output = run_at("http://127.0.0.1:9", "secret set A hunter2");
    assert_eq!(output.code, 2);
    let output = run_at("http://127.0.0.1:9", "secret set A --project main");
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("--file -"), "{}", output.stderr);
    let long = "x".repeat(64 * 1024 + 3);
    let output = with_input(
        "http://127.0.0.1:9",
        "secret set A --file - --project main",
        &long,
    );
    assert_eq!(output.code, 1);
    assert!(
        output.stderr.contains("standard input is longer"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_short_secret_is_set_with_a_warning() {
    for (value, is_short) in [("hunter2\n", true), ("hunter22\n", false)] {
        let server = Server::start([Reply::json(&secret("A", KeyState::Current))]);
        let line = "secret set A --file - --project main";
        let output = with_input(&server.url, line, value);
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert!(
            output.stderr.starts_with("secret A is set"),
            "{}",
            output.stderr
        );
        assert_eq!(
            output.stderr.contains("warning: "),
            is_short,
            "{}",
            output.stderr
        );
    }
}

#[test]
fn lines_of_a_secret_that_are_not_masked_alone_are_named() {
    let set = |value: &str| {
        let server = Server::start([Reply::json(&secret("A", KeyState::Current))]);
        let output = with_input(&server.url, "secret set A --file - --project main", value);
        assert_eq!(output.code, 0, "{}", output.stderr);
        output.stderr
    };
    let kubeconfig =
        "apiVersion: v1\nusers:\n- name: ci\n  user:\n    token: s3cr3t-tok3n-value\ndone\n";
    snapshot::check_listing("secret-set-lines", &set(kubeconfig));
    assert!(!set("the first line\nthe second line\n").contains("warning"));
}

#[test]
fn an_edit_for_one_version_is_sent_with_a_condition() {
    let var = serde_json::to_value(Var {
        named: named("DEPTH"),
        value: "4".to_owned(),
    });
    let var = var.unwrap();
    for (version, condition) in [("7", "if-match: \"7\""), ("0", "if-none-match: *")] {
        let server = Server::start([Reply::json(&var)]);
        let line = format!("var set DEPTH 4 --project main --if-version {version}");
        let run = run_at(&server.url, &line);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(server.seen()[0].condition, Some(condition.to_owned()));
    }
    let hint = "look at version 8";
    let refusal = Reply::problem(
        412,
        "precondition_failed",
        "var `DEPTH` has version 8",
        Some(hint),
    );
    let server = Server::start([refusal]);
    let line = "var delete DEPTH --project main --if-version 7";
    let run = run_at(&server.url, line);
    assert_eq!(run.code, 1);
    assert_eq!(
        server.seen()[0].condition,
        Some("if-match: \"7\"".to_owned())
    );
    assert!(run.stderr.contains(hint), "{}", run.stderr);
}
