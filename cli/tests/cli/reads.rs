//! The output of commands that read the past and the present: revisions, scans, runners, projects.

use std::collections::BTreeMap;

use serde_json::json;
use wire::{
    ArtifactDiff, ArtifactEntry, Change, Difference, Edit, Fate, FileChange, FinishedJobs,
    JobContext, JobLine, JobState, LeftOut, LeftOutFile, MissingName, Page, Part, Project,
    Revision, RevisionDiff, Runner, ScanDifference, ScanName, ScanStatus, Slot, SlotDifference,
};

use crate::everscan::{Run, run, run_at};
use crate::fixtures::{at, id, job, runner, source, suspension, why, workflow};
use crate::server::{Reply, Server};
use crate::snapshot;

/// Compares the data of a command that makes one request.
#[track_caller]
fn check(name: &str, line: &str, request: &str, reply: Reply) -> Run {
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
        format!("GET /v0/jobs/{}", id(1)),
    );
    check("job-show-left-out", &line, &request, Reply::json(&job));
}

#[test]
fn the_revisions_of_a_workflow() {
    let newest = workflow().revision;
    let unreadable = Revision {
        number: 3,
        activated_at: None,
        sha256: None,
        ..newest.clone()
    };
    let page = Page {
        next_cursor: Some("3".to_owned()),
        ..Page::all(vec![newest, unreadable])
    };
    let output = check(
        "workflow-history",
        "workflow history main/recon --limit 2",
        "GET /v0/workflows/main%2Frecon/revisions?limit=2",
        Reply::json(&page),
    );
    assert!(output.stderr.contains("--cursor 3"), "{}", output.stderr);
}

#[test]
fn the_tips_of_a_source() {
    let newest = source(true).tip.unwrap();
    let rewritten = wire::Tip {
        number: 1,
        history_rewritten: true,
        ..newest.clone()
    };
    let after_skipped = wire::Tip {
        passed_over: vec!["a".to_owned(), "b".to_owned()],
        more_passed_over: true,
        number: 3,
        ..newest.clone()
    };
    let page = Page {
        next_cursor: Some("1".to_owned()),
        ..Page::all(vec![after_skipped, newest, rewritten])
    };
    let output = check(
        "source-history",
        "source history main --limit 3",
        "GET /v0/sources/main/tips?limit=3",
        Reply::json(&page),
    );
    assert!(output.stderr.contains("--cursor 1"), "{}", output.stderr);
}

#[test]
fn a_force_push_is_shown() {
    let mut source = source(true);
    source.tip.as_mut().unwrap().history_rewritten = true;
    check(
        "source-rewritten",
        "source show main",
        "GET /v0/sources/main",
        Reply::json(&source),
    );
}

#[test]
fn retired_workflows_are_listed_on_request() {
    let mut retired = workflow();
    retired.state = "retired".to_owned();
    check(
        "workflow-all",
        "workflow list --state all",
        "GET /v0/workflows?state=all",
        Reply::json(&Page::all(vec![retired])),
    );
}

/// A difference as the daemon sends it: one flat object for each change.
fn revision_diff(changes: Vec<Change>) -> RevisionDiff {
    let revision = job(JobState::Running).revision;
    let lines = changes
        .iter()
        .map(|_| "scan `a`: timeout `1h` → `2h`".to_owned());
    let lines = lines.collect();
    let scan = ScanDifference {
        scan: "a".to_owned(),
        fate: Fate::Changed,
        changes,
    };
    RevisionDiff {
        from: wire::RevisionRef {
            number: 3,
            ..revision.clone()
        },
        to: revision,
        difference: Difference {
            workflow: Vec::new(),
            scans: vec![scan],
        },
        lines,
        untouched: Vec::new(),
        next_slots: vec![SlotDifference {
            scan: "a".to_owned(),
            from: Vec::new(),
            to: vec![at(4 * 3_600).fixed_offset(), at(28 * 3_600).fixed_offset()],
        }],
        text: wire::TextDifference::default(),
    }
}

#[test]
fn two_revisions_are_compared_by_the_daemon() {
    let change = Change {
        part: Part::Step { position: 2 },
        member: Some("timeout".to_owned()),
        edit: Edit::Changed {
            from: "1h".to_owned(),
            to: "2h".to_owned(),
        },
        read_by: Vec::new(),
    };
    let sent = serde_json::to_value(&change).unwrap();
    let expected = json!({"part": "step", "position": 2, "member": "timeout", "edit": "changed", "from": "1h", "to": "2h"});
    assert_eq!(sent, expected);
    assert_eq!(serde_json::from_value::<Change>(sent).unwrap(), change);
    let reply = Reply::json(&revision_diff(vec![change]));
    let output = check(
        "workflow-diff",
        "workflow diff main/recon",
        "GET /v0/workflows/main%2Frecon/revisions/newest/diff",
        reply.clone(),
    );
    let heading = "revision 3 (0123456789ab) → 4 (0123456789ab)";
    assert!(output.stderr.contains(heading), "{}", output.stderr);
    check(
        "workflow-diff-json",
        "workflow diff main/recon 3 4 --output json",
        "GET /v0/workflows/main%2Frecon/revisions/4/diff?from=3",
        reply,
    );
    let same = Reply::json(&RevisionDiff {
        next_slots: Vec::new(),
        ..revision_diff(Vec::new())
    });
    let server = Server::start([same]);
    let output = run_at(&server.url, "workflow diff main/recon 3");
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    assert!(output.stderr.contains("no difference"), "{}", output.stderr);
}

#[test]
fn what_is_active_is_compared_with_a_file_that_is_not_pushed() {
    let text = |timeout: &str| {
        format!(
            "scans:\n  hosts:\n    on: {{ dispatch: {{}} }}\n    timeout: {timeout}\n    \
             steps:\n      - run: \"true\"\n"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("draft.yaml");
    std::fs::write(&file, text("2h")).unwrap();
    let active = wire::RevisionText {
        revision: workflow().revision,
        file: "workflows/recon.yaml".to_owned(),
        text: text("1h"),
        valid: true,
        scans: Vec::new(),
        diagnostics: Vec::new(),
    };
    let server = Server::start([Reply::json(&active)]);
    let line = format!("workflow diff main/recon {}", file.display());
    let output = run_at(&server.url, &line);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(
        server.lines(),
        ["GET /v0/workflows/main%2Frecon/revisions/newest"]
    );
    assert_eq!(output.stdout, "scan `hosts`: timeout `1h` → `2h`\n");
    let heading = format!("→ {}", file.display());
    assert!(output.stderr.contains(&heading), "{}", output.stderr);
}

#[test]
fn workflow_diff_needs_two_files() {
    let output = run("workflow diff recon.yaml");
    assert_eq!(output.code, 2);
    assert!(
        output.stderr.contains("the second file is missing"),
        "{}",
        output.stderr
    );
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
            format!("GET /v0/jobs/{id}")
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
