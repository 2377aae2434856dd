//! The output of commands that read the past and the present: revisions, scans, runners, projects.

use serde_json::json;
use wire::{Change, Difference, Edit, Fate, Page, Part, Revision, RevisionDiff, ScanDifference};

use crate::everscan::{Run, run, run_at};
use crate::fixtures::{job, workflow};
use crate::server::{Reply, Server};
use crate::snapshot;

/// Compares the data of a command that makes one request.
#[track_caller]
fn check(name: &str, line: &str, request: &str, reply: Reply) -> Run {
    let server = Server::start([reply]);
    let output = run_at(&server.url, line);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(server.lines(), [request]);
    let path = snapshot::folder("listings").join(format!("{name}.txt"));
    snapshot::check(&path, &output.stdout);
    output
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

/// As the daemon sends it. The members of a change are in one object.
fn revision_diff(changes: Vec<Change>) -> RevisionDiff {
    let revision = job(wire::JobState::Running).revision;
    let lines = changes.iter().map(|_| "scan `a`: timeout `1h` → `2h`".to_owned());
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
    let same = Reply::json(&revision_diff(Vec::new()));
    let server = Server::start([same]);
    let output = run_at(&server.url, "workflow diff main/recon 3");
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    assert!(output.stderr.contains("no difference"), "{}", output.stderr);
}

#[test]
fn one_file_alone_is_compared_with_nothing() {
    let output = run("workflow diff recon.yaml");
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("the second file is missing"), "{}", output.stderr);
}
