//! What a person reads when something is wrong, and the exit codes.

use std::io::Write;

use crate::artifacts::files;
use crate::everscan::{command, finished, run, run_at};
use crate::fixtures::id;
use crate::server::{Reply, Server};
use crate::snapshot;

#[test]
fn without_an_address_the_hint_shows_the_flag() {
    let output = run("job list");
    assert_eq!(output.code, 2);
    assert_eq!(
        output.stderr,
        "error: no daemon is named\n\
         hint: set SERVICE_URL or give --url, as in https://everscan.example.org\n"
    );
}

#[test]
fn an_invalid_address_is_wrong_usage() {
    let output = run("job list --url http://127.0.0.1:1/v0");
    assert_eq!(output.code, 2);
    assert!(
        output.stderr.contains("must end before /v0"),
        "{}",
        output.stderr
    );
}

#[test]
fn without_a_job_the_hint_shows_the_flag() {
    let output = run("job show --url http://127.0.0.1:1");
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("--job-id"), "{}", output.stderr);
}

#[test]
fn a_daemon_that_is_not_there_is_named_with_the_cause() {
    // Nothing listens on port 1.
    let url = "http://127.0.0.1:1";
    let output = run_at(url, "runner register-token");
    assert_eq!((output.code, output.stdout.as_str()), (9, ""));
    assert_eq!(
        output.stderr,
        format!(
            "error: cannot reach the daemon for POST {url}/v0/runner-registrations\n  \
             because: Connection refused (os error 111)\n\
             hint: is everscand running, and is SERVICE_URL its address?\n"
        )
    );
}

#[test]
fn a_refusal_shows_the_message_of_the_daemon() {
    let server = Server::start([Reply::problem(
        409,
        "illegal_transition",
        "the job is over",
        Some("look at it"),
    )]);
    let output = run_at(&server.url, &format!("job cancel {}", id(1)));
    assert_eq!(output.code, 1);
    assert_eq!(
        output.stderr,
        format!(
            "error: the job is over (POST {}/v0/jobs/{}/cancel, status 409)\n  \
             request: r-1\nhint: look at it\n",
            server.url,
            id(1)
        )
    );
}

#[test]
fn a_token_without_job_read_starts_and_cancels_jobs() {
    let short = |state: &str| serde_json::json!({"id": id(1), "state": state});
    let replies = [
        Reply::json(&serde_json::json!({"job": short("scheduled")})).status(202),
        Reply::json(&short("cancelled")),
    ];
    let server = Server::start(replies);
    for (line, stdout) in [
        (
            "scan dispatch recon subdomains".to_owned(),
            id(1).to_string(),
        ),
        ("job cancel 0001".to_owned(), "cancelled".to_owned()),
    ] {
        let output = run_at(&server.url, &line);
        assert_eq!((output.code, output.stdout), (0, format!("{stdout}\n")));
    }
}

#[test]
fn a_token_without_job_read_is_told_that_the_job_runs() {
    let job = serde_json::json!({"job": {"id": id(1), "state": "scheduled"}});
    for (line, stdout, first) in [
        ("scan dispatch w s --wait", format!("{}\n", id(1)), ""),
        ("scan dispatch w s --follow", String::new(), "0192"),
        (
            "scan dispatch w s --wait --output json",
            String::new(),
            "0192",
        ),
        ("job rerun 0001 --wait", format!("{}\n", id(1)), ""),
    ] {
        let server = Server::start([Reply::json(&job).status(202)]);
        let output = run_at(&server.url, line);
        assert_eq!((output.code, output.stdout), (8, stdout), "{line}");
        let id = format!("{}\n", id(1));
        let message = match first {
            "" => &output.stderr,
            _ => output.stderr.strip_prefix(&id).unwrap(),
        };
        snapshot::check_listing("failures-unwatched", message);
        assert_eq!(server.lines().len(), 1);
    }
}

/// A script that creates a missing blob must not do so because a token has expired.
#[test]
fn exit_codes_tell_a_missing_thing_from_a_refusal_and_from_no_answer() {
    for (status, code, exit) in [
        (404, "not_found", 7),
        (410, "gone", 7),
        (404, "project_not_found", 8),
        (404, "workflow_not_found", 8),
        (404, "source_not_found", 8),
        (401, "unauthorized", 8),
        (403, "forbidden", 8),
        (403, "quota_exceeded", 8),
        (429, "too_many_jobs", 9),
        (500, "internal", 9),
        (507, "disk_full", 9),
        (412, "precondition_failed", 1),
        (409, "ambiguous_name", 1),
        (400, "invalid_request", 1),
        // The daemon did not say that the thing is missing.
        (404, "no_such_route", 1),
        (404, "of_a_newer_daemon", 1),
        (403, "of_a_newer_daemon", 8),
        (500, "of_a_newer_daemon", 9),
    ] {
        let server = Server::start([Reply::problem(status, code, "no", None)]);
        let output = run_at(&server.url, "blob download --src a --dst /no/such/a");
        assert_eq!(output.code, exit, "{status} {code}: {}", output.stderr);
    }
    for (status, exit) in [(302, 9), (401, 8), (404, 1), (500, 9)] {
        let server = Server::start([Reply::bytes("from a proxy").status(status)]);
        let output = run_at(&server.url, &format!("job show {}", id(1)));
        assert_eq!(output.code, exit, "{status}: {}", output.stderr);
        // A proxy may ask for a password of its own: the token may be right.
        let hint = "did everscand answer, or something in front of it?";
        assert!(output.stderr.contains(hint), "{status}: {}", output.stderr);
    }
}

/// A proxy, or the network of a hotel, answers everything with a page of its own.
#[test]
fn a_page_of_something_else_is_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine"), "mine").unwrap();
    let page = || {
        Reply::bytes("<html>sign in</html>")
            .header("content-type", "text/html")
            .header("server", "nginx")
    };
    let server = Server::answering(move |_| page());
    let job = id(1);
    for (case, line) in [
        ("", "blob download --src a --dst mine".to_owned()),
        ("", "blob cat a".to_owned()),
        ("", format!("job artifact download {job} -a a -o mine")),
        ("", format!("job artifact download {job} -a a --unpack .")),
        ("", format!("job artifact delete -j {job} -a a")),
        ("failures-page", format!("job delete {job}")),
        ("", format!("blob unlink {job}")),
        ("", "token revoke ci".to_owned()),
        ("", "runner delete r".to_owned()),
        ("", "var delete v --project p".to_owned()),
        ("", "secret delete s --project p".to_owned()),
        ("", format!("job show {job}")),
        ("", "blob upload --src mine".to_owned()),
    ] {
        let mut command = command(&line);
        command.current_dir(folder.path());
        command.env("SERVICE_URL", &server.url);
        let output = finished(command.output().unwrap());
        assert_eq!((output.code, output.stdout.as_str()), (9, ""), "{line}");
        let named = "it is not from everscand: status 200, text/html, server nginx";
        assert!(output.stderr.contains(named), "{line}: {}", output.stderr);
        if !case.is_empty() {
            let shown = output.stderr.replace(&server.url, "URL");
            snapshot::check_listing(case, &shown);
        }
    }
    let mine = std::fs::read_to_string(folder.path().join("mine")).unwrap();
    assert_eq!(mine, "mine");
    assert_eq!(files(folder.path()), ["mine"]);
}

#[test]
fn the_table_of_exit_codes_has_those_of_the_help() {
    let docs = include_str!("../../../docs/operating.md");
    let (_, table) = docs.split_once("| `everscan` | meaning |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let rows = table
        .lines()
        .skip(2)
        .filter_map(|row| row.split('|').nth(1));
    let documented: Vec<&str> = rows.map(str::trim).collect();
    let helps = ["--help", "job artifact news --help"].map(|line| run(line).stdout);
    let lines = helps.iter().flat_map(|help| {
        let (_, codes) = help.split_once("Exit codes:\n").unwrap();
        codes
            .lines()
            .map_while(|line| line.split_whitespace().next())
    });
    let mut shown: Vec<&str> = lines.filter(|word| word.parse::<u8>().is_ok()).collect();
    shown.sort_unstable();
    shown.dedup();
    shown.push("130");
    assert_eq!(documented, shown);
}

#[test]
fn a_blob_is_replaced_only_if_it_has_the_content_that_was_read() {
    let sha256 = "AB".repeat(32);
    let server = Server::start([Reply::problem(412, "precondition_failed", "changed", None)]);
    let upload = "blob upload --src Cargo.toml --if-match";
    let output = run_at(&server.url, &format!("{upload} {sha256}"));
    assert_eq!(output.code, 1, "{}", output.stderr);
    let condition = format!("if-match: \"{}\"", sha256.to_lowercase());
    assert_eq!(server.seen()[0].condition, Some(condition));
    for wrong in ["abc".to_owned(), format!("{sha256} --no-replace")] {
        let output = run_at("http://127.0.0.1:1", &format!("{upload} {wrong}"));
        assert_eq!(output.code, 2, "{}", output.stderr);
    }
}

#[test]
fn each_invalid_input_is_named() {
    let server = Server::start([Reply::json(&serde_json::json!({
        "title": "Invalid inputs", "status": 422, "code": "invalid_inputs", "detail": "2 inputs do not fit",
        "errors": [
            {"field": "inputs.domain", "message": "is required"},
            {"field": "inputs.dep", "message": "is not declared; did you mean deep?"},
        ],
    }))
    .status(422)]);
    let output = run_at(&server.url, "scan dispatch w s -i dep=true");
    assert_eq!((output.code, output.stdout.as_str()), (1, ""));
    assert_eq!(
        output.stderr,
        format!(
            "error: 2 inputs do not fit (POST {}/v0/workflows/w/scans/s/dispatch, status 422)\n  \
             inputs.domain: is required\n  inputs.dep: is not declared; did you mean deep?\n",
            server.url
        )
    );
}

#[test]
fn a_missing_token_has_a_hint() {
    for hint in [None, Some("send a header")] {
        let server = Server::start([Reply::problem(401, "unauthorized", "no token", hint)]);
        let output = run_at(&server.url, "token list");
        for part in [
            "SERVICE_TOKEN,",
            "SERVICE_TOKEN_FILE",
            "initial-admin-token",
        ] {
            assert!(output.stderr.contains(part), "{}", output.stderr);
        }
    }
}

#[test]
fn a_step_without_a_valid_token_is_not_sent_to_the_administrators() {
    let server = Server::start([Reply::problem(401, "unauthorized", "no token", None)]);
    let mut command = command("token list");
    command
        .env("SERVICE_URL", &server.url)
        .env("SERVICE_JOB_ID", id(1).to_string());
    let output = finished(command.output().unwrap());
    let hint = "hint: a step has the token of its job in SERVICE_TOKEN";
    assert!(output.stderr.contains(hint), "{}", output.stderr);
    assert!(!output.stderr.contains("admin"), "{}", output.stderr);
}

#[test]
fn a_token_does_not_cross_the_network_in_plain_text() {
    let run = |insecure: &str| {
        let mut command = command("token list");
        command
            .env("SERVICE_URL", "http://everscan.invalid:7411")
            .env("SERVICE_TOKEN", "hush")
            .env("SERVICE_INSECURE_HTTP", insecure);
        finished(command.output().unwrap())
    };
    let refused = run("false");
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    assert_eq!(
        refused.stderr,
        "error: http://everscan.invalid:7411/ is plain HTTP to another machine: the token would cross the network in \
         plain text\nhint: use https, or a tunnel to this machine; --insecure-http (SERVICE_INSECURE_HTTP=true) sends \
         it anyway\n"
    );
    // The name has no address, so that nothing is sent.
    let allowed = run("true");
    assert!(
        allowed.stderr.contains("cannot reach"),
        "{}",
        allowed.stderr
    );
}

#[test]
fn an_invalid_id_shows_the_form_of_an_id() {
    for line in ["job show hello", "job wait -j hello"] {
        let output = run_at("http://127.0.0.1:1", line);
        assert_eq!(output.code, 2);
        for part in ["0192f0c1-2d3e", "everscan job list"] {
            assert!(output.stderr.contains(part), "{}", output.stderr);
        }
    }
}

#[test]
fn a_command_takes_one_job() {
    for command in [
        "cancel",
        "show",
        "logs",
        "wait",
        "artifact list",
        "artifact delete -a x",
        "artifact download -a x",
    ] {
        let line = format!("job {command} {} -j {}", id(1), id(2));
        let output = run_at("http://127.0.0.1:1", &line);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{line}");
        assert!(
            output.stderr.contains("named twice"),
            "{line}: {}",
            output.stderr
        );
    }
}

#[test]
fn a_flag_overrides_the_token_of_the_environment() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"from-file\n").unwrap();
    let path = file.path().to_str().unwrap();
    let flag = format!("source list --token-file {path}");
    let plain = "source list".to_owned();
    for (line, token, token_file, expected) in [
        (&plain, None, None, None),
        (&plain, Some("from-env"), None, Some("Bearer from-env")),
        (&plain, None, Some(path), Some("Bearer from-file")),
        (
            &plain,
            Some("from-env"),
            Some(path),
            Some("Bearer from-env"),
        ),
        (&flag, Some("from-env"), None, Some("Bearer from-file")),
    ] {
        let server = Server::start([Reply::bytes(r#"{"items":[]}"#)]);
        let mut command = command(line);
        command.env("SERVICE_URL", &server.url);
        for (name, value) in [("SERVICE_TOKEN", token), ("SERVICE_TOKEN_FILE", token_file)] {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        let output = finished(command.output().unwrap());
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert_eq!(server.seen()[0].token.as_deref(), expected, "{line}");
    }
}

#[test]
fn token_files_that_cannot_be_used_are_named() {
    let empty = tempfile::NamedTempFile::new().unwrap();
    let empty = empty.path().display();
    for (path, text) in [
        ("/no/such/file".to_owned(), "cannot read /no/such/file"),
        ("/dev/zero".to_owned(), "longer than"),
        (empty.to_string(), "is empty"),
    ] {
        let output = run(&format!(
            "job list --url http://127.0.0.1:1 --token-file {path}"
        ));
        assert_eq!(output.code, 2, "{}", output.stderr);
        assert!(output.stderr.contains(text), "{}", output.stderr);
    }
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_sent() {
    for line in [
        "scan dispatch w s --input novalue",
        "scan dispatch w s --input a=1 --input a=2",
        "scan dispatch w s --timeout soon",
        "scan dispatch w s --timeout 1h",
        "job list --state done",
        "job list --limit 0",
        "job show not-an-id",
        "token create --name x",
        "nonsense",
    ] {
        let output = run_at("http://127.0.0.1:1", line);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{line}");
        assert!(
            output.stderr.starts_with("error: "),
            "{line}: {}",
            output.stderr
        );
    }
}
