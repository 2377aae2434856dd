//! The output of commands that read what came from repositories: revisions, tips, retired workflows.

use serde_json::json;
use wire::{
    Change, Difference, Edit, Fate, JobState, Page, Part, Revision, RevisionDiff, ScanDifference,
    SlotDifference,
};

use crate::everscan::{run, run_at};
use crate::fixtures::{at, job, source, workflow};
use crate::reads::check;
use crate::server::{Reply, Server};

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
