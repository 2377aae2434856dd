//! The output of lists and single things, for people and programs.

use std::process::Command;

use wire::{CutJob, DamagedLines, JobState, LedgerCause, LogCut, Page, Why};

use crate::everscan::run_at;
use crate::fixtures::{artifact, at, id, job, runner, source, stale_file, token, why, workflow};
use crate::server::{Reply, Server};
use crate::snapshot;

/// Runs a command that makes one request, and compares its output with a snapshot.
#[track_caller]
fn check(name: &str, line: &str, request: &str, reply: Reply) {
    let server = Server::start([reply]);
    let output = run_at(&server.url, line);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(server.lines(), [request]);
    snapshot::check_listing(name, &output.stdout);
}

#[test]
fn jobs() {
    let jobs = Page {
        next_cursor: Some("next".to_owned()),
        ..Page::all(vec![job(JobState::Running), job(JobState::Failed)])
    };
    let request = "GET /v0/jobs?workflow=main%2Frecon&state=failed&limit=2";
    let line = "job list --workflow main/recon --state failed --limit 2";
    check("job-list", line, request, Reply::json(&jobs));
    let line = format!("{line} --output json");
    check("job-list-json", &line, request, Reply::json(&jobs));
}

#[test]
fn unreadable_lines_are_reported_after_the_page() {
    let damaged = vec![DamagedLines {
        file: "scans/a/history/0.jsonl".to_owned(),
        lines: 2,
    }];
    let jobs = Page {
        damaged: damaged.clone(),
        ..Page::all(vec![job(JobState::Running)])
    };
    let why = Why { damaged, ..why() };
    for (line, reply) in [
        ("job list", Reply::json(&jobs)),
        ("scan why main/recon changes", Reply::json(&why)),
    ] {
        let server = Server::start([reply]);
        let output = run_at(&server.url, line);
        assert_eq!(output.code, 0);
        let expected = "warning: 2 lines of scans/a/history/0.jsonl cannot be read";
        assert!(output.stderr.contains(expected), "{}", output.stderr);
    }
}

#[test]
fn one_job() {
    let request = format!("GET /v0/jobs/{}?messages=true", id(1));
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
fn a_waiting_job_shows_the_reason() {
    let reply = Reply::json(&job(JobState::Scheduled));
    let request = format!("GET /v0/jobs/{}?messages=true", id(1));
    check(
        "job-show-waiting",
        &format!("job show {}", id(1)),
        &request,
        reply,
    );
}

#[test]
fn artifacts() {
    let request = format!("GET /v0/jobs/{}/artifacts", id(1));
    let line = format!("job artifact list -j {}", id(1));
    check(
        "artifact-list",
        &line,
        &request,
        Reply::json(&Page::all(vec![artifact()])),
    );
}

#[test]
fn sources() {
    let list = Page::all(vec![source(true), source(false)]);
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
fn a_truncated_log_is_shown_with_its_job_and_its_scan() {
    let cut = Some(LogCut {
        record: 41,
        limit: 256 << 20,
    });
    let printed = |line: &str, reply: Reply| {
        let server = Server::start([reply]);
        run_at(&server.url, line).stdout
    };
    let mut job = job(JobState::Running);
    job.log.cut = cut;
    let shown = printed(&format!("job show {}", id(1)), Reply::json(&job));
    let expected = "cut at record 41: it has reached its limit of 256MiB";
    assert!(shown.contains(expected), "{shown}");
    let mut why = why();
    why.unfinished[0].log_cut = cut;
    let shown = printed("scan why main/recon changes", Reply::json(&why));
    assert!(shown.contains(expected), "{shown}");
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
        cut_job: Some(CutJob {
            id: id(6),
            log_cut: LogCut {
                record: 12_000,
                limit: 1024 * 1024,
            },
        }),
        ..why()
    };
    check("scan-why-dispatch", line, request, Reply::json(&by_hand));
}

#[test]
fn a_slot_of_several_schedules_names_its_schedule() {
    let noon = || Some("0 12 * * 6".to_owned());
    let mut several = Why {
        expr: None,
        ..why()
    };
    if let Some(cron) = &mut several.cron {
        "0 3 * * *; 0 12 * * 6".clone_into(&mut cron.schedule);
        "at 03:00; at 12:00, on Saturday".clone_into(&mut cron.description);
        cron.next_schedule = noon();
    }
    several.records.truncate(2);
    for (record, cause) in several.records.iter_mut().zip([
        LedgerCause::Slots {
            first: at(0),
            last: at(0),
            count: 1,
            schedule: noon(),
        },
        LedgerCause::Resumed {
            slot: at(0),
            schedule: noon(),
        },
    ]) {
        record.cause = cause;
    }
    let request = "GET /v0/workflows/main%2Frecon/scans/changes/why?limit=10";
    let line = "scan why main/recon changes";
    check("scan-why-schedules", line, request, Reply::json(&several));
}

#[test]
fn a_file_that_was_never_valid_has_no_active_revision() {
    let source = wire::Source {
        stale_files: vec![wire::StaleFile {
            last_good: None,
            ..stale_file()
        }],
        ..source(false)
    };
    let server = Server::start([Reply::json(&source)]);
    let output = run_at(&server.url, "source show main");
    assert!(
        output.stdout.contains("it has no good version yet"),
        "{}",
        output.stdout
    );
    assert!(!output.stdout.contains("goes on"), "{}", output.stdout);
}

#[test]
fn a_source_and_a_workflow_show_their_warnings() {
    let warning = wire::Diagnostic {
        severity: wire::Severity::Warning,
        code: "no-effect".to_owned(),
        message: "nobody reads it".to_owned(),
        ..stale_file().diagnostics.remove(0)
    };
    let source = wire::Source {
        warnings: vec![warning.clone()],
        ..source(true)
    };
    let workflow = wire::Workflow {
        warnings: vec![warning],
        ..workflow()
    };
    let server = Server::start([Reply::json(&source), Reply::json(&workflow)]);
    let output = run_at(&server.url, "source show main");
    assert!(output.stdout.contains("ok, 1 warning"), "{}", output.stdout);
    let line = "warning[no-effect]: nobody reads it";
    assert!(output.stdout.contains(line), "{}", output.stdout);
    let output = run_at(&server.url, "workflow show w");
    assert!(output.stdout.contains(line), "{}", output.stdout);
}

#[test]
fn a_removed_scan_names_the_revision_that_removed_it() {
    let removed = Why {
        state: "removed".to_owned(),
        removed_by: Some(wire::RevisionRef {
            id: id(3),
            number: 4,
            commit: "abcdef".to_owned(),
        }),
        cron: None,
        expr: None,
        records: Vec::new(),
        ..why()
    };
    let unknown = Why {
        removed_by: None,
        renamed_from: None,
        renamed_to: None,
        ..removed.clone()
    };
    let server = Server::start([Reply::json(&removed), Reply::json(&unknown)]);
    for state in [
        "removed: revision 4 (abcdef) of the workflow is the first without it",
        "removed: the workflow is without it",
    ] {
        let output = run_at(&server.url, "scan why w gone");
        assert!(output.stdout.contains(state), "{}", output.stdout);
        assert!(
            !output.stdout.contains("dispatches it"),
            "{}",
            output.stdout
        );
    }
}

#[test]
fn a_retired_workflow_shows_the_reason() {
    let workflow = wire::Workflow {
        state: "retired".to_owned(),
        retired: Some(wire::Explanation {
            code: "source_dropped".to_owned(),
            message: "its source is no longer configured".to_owned(),
            jobs: Vec::new(),
        }),
        ..workflow()
    };
    let server = Server::start([Reply::json(&workflow)]);
    let output = run_at(&server.url, "workflow show w");
    assert!(
        output
            .stdout
            .contains("retired: its source is no longer configured"),
        "{}",
        output.stdout
    );
}

#[test]
fn workflows() {
    let list = Page::all(vec![workflow()]);
    check(
        "workflow-list",
        "workflow list",
        "GET /v0/workflows?state=active",
        Reply::json(&list),
    );
    let request = "GET /v0/workflows/main%2Fnightly%2Frecon";
    let line = "workflow show main/nightly/recon";
    check("workflow-show", line, request, Reply::json(&workflow()));
}

#[test]
fn runners_and_tokens() {
    let list = Page::all(vec![runner()]);
    check(
        "runner-list",
        "runner list",
        "GET /v0/runners",
        Reply::json(&list),
    );
    let list = Page::all(vec![token()]);
    check(
        "token-list",
        "token list",
        "GET /v0/tokens",
        Reply::json(&list),
    );
}

#[test]
fn a_runner_of_all_projects_says_so_and_only_an_old_program_is_reported() {
    let cases = [
        (None, Some(at(6)), true),
        (Some("checkout"), None, true),
        (Some("job_token"), Some(at(6)), false),
        (None, None, false),
    ];
    for (capability, heard_at, is_old) in cases {
        let runner = wire::Runner {
            projects: None,
            has_other_projects: false,
            capabilities: capability.map(str::to_owned).into_iter().collect(),
            heard_at,
            ..runner()
        };
        let server = Server::start([Reply::json(&runner)]);
        let shown = run_at(&server.url, "runner show box").stdout;
        assert!(
            shown.contains("serves all projects, also future ones"),
            "{shown}"
        );
        assert_eq!(shown.contains("Update it."), is_old, "{shown}");
    }
}

#[test]
fn a_job_in_a_chain_shows_its_hops() {
    let job = wire::Job {
        hops: 11,
        ..job(JobState::Failed)
    };
    let server = Server::start([Reply::json(&job)]);
    let shown = run_at(&server.url, &format!("job show {}", id(1))).stdout;
    let line = shown.lines().find(|line| line.starts_with("hops:"));
    assert!(line.is_some_and(|line| line.ends_with(" 11")), "{shown}");
}

#[test]
fn an_empty_list_has_only_headings() {
    let server = Server::start([Reply::json(&Page::<wire::Job>::all(Vec::new()))]);
    let output = run_at(&server.url, "job list");
    assert_eq!(output.stdout.lines().count(), 1, "{}", output.stdout);
}

#[test]
fn a_token_that_ends_earlier_than_asked_is_reported() {
    for (case, asked, days) in [
        ("token-cut", "30d", 29),
        ("token-cut", "never", 29),
        ("token-whole", "29d", 29),
    ] {
        let mut token = token();
        token.expires_at = Some(token.created_at + chrono::TimeDelta::days(days));
        let secret = "evs_secret".to_owned();
        let server = Server::start([Reply::json(&wire::CreatedToken { token, secret })]);
        let line = format!("token create --name ci --scope job:read --expires-in {asked}");
        let output = run_at(&server.url, &line);
        assert_eq!((output.code, output.stdout.as_str()), (0, "evs_secret\n"));
        snapshot::check_listing(case, &output.stderr);
    }
    let output = run_at(
        "http://127.0.0.1:1",
        "token regenerate ci --expires-in never",
    );
    assert_eq!(output.code, 2);
    snapshot::check_listing("token-never", &output.stderr);
}

#[test]
fn secrets_are_printed_without_a_message() {
    let created = wire::CreatedToken {
        token: token(),
        secret: "evs_secret".to_owned(),
    };
    let server = Server::start([Reply::json(&created)]);
    let line = "token create --name ci --scope job:read --scope dispatch --expires-in 30d";
    let output = run_at(&server.url, line);
    assert_eq!((output.code, output.stdout.as_str()), (0, "evs_secret\n"));
    assert_eq!(
        server.seen()[0].body,
        r#"{"name":"ci","scopes":["job:read","dispatch"],"expires_in_seconds":2592000}"#
    );
    let registration = serde_json::json!({"token": "reg", "expires_at": "2026-11-20T10:00:00Z"});
    let server = Server::start([Reply::json(&registration)]);
    let output = run_at(&server.url, "runner register-token");
    assert_eq!((output.code, output.stdout.as_str()), (0, "reg\n"));
    for (flag, ignored) in [("--project recon", "projects"), ("--label gpu", "labels")] {
        let server = Server::start([Reply::json(&registration)]);
        let output = run_at(&server.url, &format!("runner register-token {flag}"));
        assert_eq!((output.code, output.stdout.as_str()), (1, ""));
        let error = format!("error: this daemon does not limit runners to {ignored}; update it\n");
        assert_eq!(output.stderr, error);
    }
    let link =
        serde_json::json!({"url_path": "/login/evi_x", "expires_at": "2026-11-20T10:00:00Z"});
    let server = Server::start([Reply::json(&link)]);
    let output = run_at(&server.url, "session link");
    assert_eq!(server.lines(), ["POST /v0/sign-in-links"]);
    let url = format!("{}/login/evi_x\n", server.url);
    assert_eq!((output.code, output.stdout), (0, url));
    assert_eq!(
        output.stderr,
        "good for one browser until 2026-11-20T10:00:00Z\n"
    );
}

#[test]
fn a_sync_with_wait_fails_with_its_source() {
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
        let output = run_at(&server.url, line);
        assert_eq!(output.code, code, "{line}: {}", output.stderr);
        assert_eq!(server.lines(), [request]);
    }
}

#[test]
fn deleting_a_runner_prints_a_message() {
    for runner in [id(5).to_string(), "box".to_owned()] {
        let server = Server::start([Reply::bytes("").status(204)]);
        let output = run_at(&server.url, &format!("runner delete {runner}"));
        assert_eq!((output.code, output.stdout.as_str()), (0, ""));
        assert_eq!(server.lines(), [format!("DELETE /v0/runners/{runner}")]);
    }
}

#[test]
fn data_and_messages_keep_their_order() {
    let registration = serde_json::json!({"token": "reg", "expires_at": "2026-11-20T10:00:00Z"});
    let server = Server::start([Reply::json(&registration)]);
    let program = env!("CARGO_BIN_EXE_everscan");
    let output = Command::new("sh")
        .args(["-c", &format!("'{program}' runner register-token 2>&1")])
        .env_clear()
        .env("SERVICE_URL", &server.url)
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    assert!(output.starts_with("reg\ngood for one"), "{output}");
}
