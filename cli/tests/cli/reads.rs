//! The output of commands that read the past and the present: jobs, scans, runners, projects.

use std::collections::BTreeMap;

use serde_json::json;
use wire::{
    ArtifactDiff, ArtifactEntry, FileChange, FinishedJobs, JobContext, JobLine, JobState, LeftOut,
    LeftOutFile, MissingName, Page, Project, Runner, ScanName, ScanStatus, Slot,
};

use crate::everscan::{Run, run, run_at};
use crate::fixtures::{at, id, job, runner, suspension, why, workflow};
use crate::server::{Reply, Server};
use crate::snapshot;

/// Compares the data of a command that makes one request.
#[track_caller]
pub(crate) fn check(name: &str, line: &str, request: &str, reply: Reply) -> Run {
    let server = Server::start([reply]);
    let output = run_at(&server.url, line);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(server.lines(), [request]);
    snapshot::check_listing(name, &output.stdout);
    output
}

#[test]
fn a_long_input_is_cut() {
    let mut job = job(JobState::Succeeded);
    let long = serde_json::from_value(json!("ü".repeat(5_000))).unwrap();
    job.inputs.insert("targets".to_owned(), long);
    let server = Server::start([Reply::json(&job)]);
    let output = run_at(&server.url, &format!("job show {}", id(1)));
    let cut = format!(
        "{}… (5000 characters; all of it with --output json)\n",
        "ü".repeat(200)
    );
    assert!(output.stdout.contains(&cut), "{}", output.stdout);
}

#[test]
fn left_out_files_of_an_artifact_are_shown() {
    let mut job = job(JobState::Succeeded);
    job.artifacts[0].left_out = Some(LeftOut {
        files: vec![LeftOutFile {
            name: "out/latest\u{1b}".to_owned(),
            reason: "is a link to nothing".to_owned(),
        }],
        more: 2,
    });
    let (line, request) = (
        format!("job show {}", id(1)),
        format!("GET /v0/jobs/{}?messages=true", id(1)),
    );
    check("job-show-left-out", &line, &request, Reply::json(&job));
}

/// Two scans of a workflow: one is running, the other never ran.
fn scans() -> Vec<ScanStatus> {
    let workflow = workflow();
    let running = job(JobState::Running);
    let line = JobLine {
        retried_by: None,
        causes: Vec::new(),
        id: running.id,
        state: running.state,
        trigger: running.trigger,
        revision: running.revision.id,
        reason: Some("claimed".to_owned()),
        runner: Some("box".to_owned()),
        created_at: running.created_at,
        started_at: running.started_at,
        finished_at: None,
        artifacts: BTreeMap::new(),
        bytes: 0,
    };
    let status = |(position, scan): (u64, wire::Scan)| ScanStatus {
        workflow: running.workflow.clone(),
        suspended: (position == 1).then(suspension),
        resumed: None,
        next_slot: (position == 0).then(|| at(3600)),
        unfinished: 1 - position,
        finished: FinishedJobs::default(),
        expect: None,
        proposed: None,
        last_job: (position == 0).then(|| line.clone()),
        scan,
    };
    (0..).zip(workflow.scans).map(status).collect()
}

#[test]
fn scans_are_listed_with_their_triggers() {
    let page = Page::all(scans());
    check(
        "scan-list",
        "scan list",
        "GET /v0/scans",
        Reply::json(&page),
    );
    let server = Server::start([Reply::json(&page)]);
    let output = run_at(&server.url, "scan list --workflow main/recon");
    assert_eq!(output.code, 0);
    assert_eq!(server.lines(), ["GET /v0/scans?workflow=main%2Frecon"]);
}

#[test]
fn a_scan_with_its_expectations_and_a_proposal() {
    let status = ScanStatus {
        expect: Some(wire::Expectations {
            success_every: Some("1d2h".to_owned()),
            ..wire::Expectations::default()
        }),
        proposed: Some(wire::Expectations {
            success_every: Some("1d1h".to_owned()),
            at_most: Some("21m".to_owned()),
            ..wire::Expectations::default()
        }),
        ..scans().remove(0)
    };
    check(
        "scan-show",
        "scan show main/recon subdomains",
        "GET /v0/workflows/main%2Frecon/scans/subdomains",
        Reply::json(&status),
    );
}

#[test]
fn the_jobs_of_a_scan() {
    let page = Page::all(vec![job(JobState::Running), job(JobState::Failed)]);
    let request = "GET /v0/jobs?workflow=main%2Frecon&scan=subdomains&limit=2";
    let line = "scan jobs main/recon subdomains --limit 2";
    check("scan-jobs", line, request, Reply::json(&page));
}

#[test]
fn the_ledger_of_a_scan_page_by_page() {
    let page = Page {
        next_cursor: Some("0-99".to_owned()),
        ..Page::all(why().records)
    };
    let request = "GET /v0/workflows/main%2Frecon/scans/changes/ledger?limit=6&cursor=1-20";
    let line = "scan ledger main/recon changes --limit 6 --cursor 1-20";
    let output = check("scan-ledger", line, request, Reply::json(&page));
    assert!(output.stderr.contains("--cursor 0-99"), "{}", output.stderr);
}

#[test]
fn a_runner_with_the_jobs_that_take_its_slots() {
    let reply = Reply::json(&runner());
    check(
        "runner-show",
        "runner show box",
        "GET /v0/runners/box",
        reply,
    );
    let hidden = Runner {
        taken: 4,
        heard_at: None,
        connected: false,
        ..runner()
    };
    let server = Server::start([Reply::json(&hidden)]);
    let output = run_at(&server.url, "runner show box");
    let expected = "other jobs that take its slots: 2";
    assert!(output.stdout.contains(expected), "{}", output.stdout);
    assert!(output.stdout.contains("not connected"), "{}", output.stdout);
}

#[test]
fn projects() {
    let project = |name: &str, configured| Project {
        id: id(7),
        name: name.to_owned(),
        configured,
        vars: 2,
        secrets: 1,
        missing_vars: Vec::new(),
        missing_secrets: vec![MissingName {
            name: "KEY".to_owned(),
            used_by: vec![ScanName {
                workflow: "main/recon".to_owned(),
                scan: "ports".to_owned(),
            }],
        }],
    };
    let page = Page::all(vec![project("main", true), project("old", false)]);
    check(
        "project-list",
        "project list",
        "GET /v0/projects",
        Reply::json(&page),
    );
    let request = "GET /v0/projects/main";
    let reply = Reply::json(&project("main", true));
    check("project-show", "project show main", request, reply);
}

#[test]
fn a_part_of_an_id_is_sent_as_typed_where_a_change_needs_no_other_right() {
    let part = "0000-0001";
    let gone = || Reply::bytes("").status(204);
    let made = json!({"job": job(JobState::Scheduled)});
    for (line, reply, request) in [
        (
            "job cancel",
            Reply::json(&job(JobState::Cancelled)),
            "POST /v0/jobs/0000-0001/cancel",
        ),
        (
            "job rerun",
            Reply::json(&made),
            "POST /v0/jobs/0000-0001/rerun",
        ),
        ("job delete", gone(), "DELETE /v0/jobs/0000-0001"),
        (
            "job artifact delete -a a",
            gone(),
            "DELETE /v0/jobs/0000-0001/artifacts/a",
        ),
    ] {
        let server = Server::start([reply]);
        let output = run_at(&server.url, &format!("{line} {part}"));
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert_eq!(server.lines(), [request]);
    }
    let found = || Reply::json(&job(JobState::Running));
    let server = Server::start([found(), found()]);
    let output = run_at(&server.url, &format!("job show {part}"));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let id = job(JobState::Running).id;
    assert_eq!(
        server.lines(),
        [
            "GET /v0/jobs/0000-0001".to_owned(),
            format!("GET /v0/jobs/{id}?messages=true")
        ]
    );
    for part in ["001", "job-9", "xyz0"] {
        let output = run(&format!("job show {part}"));
        assert_eq!(output.code, 2, "{}", output.stderr);
        let expected = "4 or more of its first or last digits";
        assert!(output.stderr.contains(expected), "{}", output.stderr);
    }
}

#[test]
fn the_context_of_a_job_fits_expr_eval() {
    let context = JobContext {
        frozen_at: at(1),
        context: json!({"project": "p", "workflow": "w", "revision": "r", "vars": {"A": "b"}}),
        secrets: BTreeMap::from([("KEY".to_owned(), 3)]),
    };
    let request = format!("GET /v0/jobs/{}/context", id(1));
    let line = format!("job context {}", id(1));
    let output = check("job-context", &line, &request, Reply::json(&context));
    let expected = "KEY (version 3)";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[test]
fn the_next_slots_of_schedules() {
    let slot = |hours: i64| Slot {
        at: at(3600 * hours),
        local: at(3600 * hours).fixed_offset(),
        workflow: job(JobState::Running).workflow,
        scan: "subdomains".to_owned(),
        schedule: "0 * * * *".to_owned(),
        timezone: "Europe/Oslo".to_owned(),
    };
    let page = Page::all(vec![slot(1), slot(2)]);
    let request = "GET /v0/schedule?limit=2&workflow=main%2Frecon&scan=subdomains";
    let line = "scan next main/recon subdomains --limit 2";
    check("scan-next", line, request, Reply::json(&page));
    let server = Server::start([Reply::json(&Page::<Slot>::all(Vec::new()))]);
    let output = run_at(&server.url, "scan next");
    assert_eq!(server.lines(), ["GET /v0/schedule?limit=10"]);
    assert!(output.stderr.contains("no schedule"), "{}", output.stderr);
}

#[test]
fn the_files_in_an_artifact_page_by_page() {
    let page = |name: &str, next: Option<&str>| {
        let entry = ArtifactEntry {
            name: name.to_owned(),
            size: 4096,
            packed_size: 1000,
            crc32: "916087ce".to_owned(),
        };
        let page = Page {
            next_cursor: next.map(str::to_owned),
            ..Page::all(vec![entry])
        };
        Reply::json(&page)
    };
    let server = Server::start([page("a\u{1b}", Some("a")), page("b", None)]);
    let line = format!("job artifact files {} -a report", id(1));
    let output = run_at(&server.url, &line);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let path = format!(
        "GET /v0/jobs/{}/artifacts/report/entries?limit=10000",
        id(1)
    );
    assert_eq!(server.lines(), [path.clone(), format!("{path}&cursor=a")]);
    snapshot::check_listing("artifact-files", &output.stdout);
}

#[test]
fn two_artifacts_are_compared_by_the_daemon() {
    let file = |name: &str, from_size, to_size| FileChange {
        name: name.to_owned(),
        from_size,
        to_size,
    };
    let diff = |files, next: Option<&str>| {
        Reply::json(&ArtifactDiff {
            artifact: "report".to_owned(),
            from: id(2),
            to: id(1),
            same: false,
            added: 1,
            removed: 1,
            changed: 1,
            unchanged: 7,
            files,
            next_cursor: next.map(str::to_owned),
        })
    };
    let first = vec![file("gone", Some(1), None), file("new", None, Some(2048))];
    let rest = vec![file("other", Some(3), Some(4))];
    let server = Server::start([diff(first, Some("new")), diff(rest, None)]);
    let line = format!("job artifact diff {} -a report --against {}", id(1), id(2));
    let output = run_at(&server.url, &line);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let path = format!(
        "GET /v0/jobs/{}/artifacts/report/diff?against={}&limit=10000",
        id(1),
        id(2)
    );
    assert_eq!(server.lines(), [path.clone(), format!("{path}&cursor=new")]);
    let expected = "1 added, 1 removed, 1 changed, 7 unchanged";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
    snapshot::check_listing("artifact-diff", &output.stdout);
}
