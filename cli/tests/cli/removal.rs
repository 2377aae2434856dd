//! Deleting jobs and artifacts, and making room.

use wire::{Amount, Page, Pruned, PrunedScan, Removed, RetentionPolicy};

use crate::everscan::run_at;
use crate::fixtures::{artifact, at, id};
use crate::server::{Reply, Server};
use crate::snapshot;

fn empty() -> Reply {
    Reply::bytes("").status(204)
}

fn pruned(dry_run: bool) -> Pruned {
    let scan = |name: &str, removed: u64, newest_successes| PrunedScan {
        scan: name.to_owned(),
        removed: Amount {
            jobs: removed,
            bytes: removed * 1024,
        },
        kept: Amount {
            jobs: 2,
            bytes: 5 << 30,
        },
        newest_successes,
        just_ended: newest_successes / 2,
        unreadable: u64::from(removed == 0),
        unfinished: 1,
    };
    Pruned {
        dry_run,
        policy: RetentionPolicy {
            jobs: Some(3),
            ..RetentionPolicy::default()
        },
        scans: vec![scan("hosts", 3, 2), scan("ports", 0, 0)],
        has_more: !dry_run,
        age_waits: dry_run,
    }
}

#[test]
fn jobs_are_deleted_in_order_until_one_fails() {
    let refused = Reply::problem(409, "illegal_transition", "it runs", None);
    let server = Server::start([empty(), refused]);
    let output = run_at(
        &server.url,
        &format!("job delete {} {} {}", id(1), id(2), id(3)),
    );
    assert_eq!((output.code, output.stdout.as_str()), (1, ""));
    assert!(
        output
            .stderr
            .starts_with(&format!("job {} is deleted\n", id(1)))
    );
    assert!(
        output.stderr.contains("\nerror: it runs ("),
        "{}",
        output.stderr
    );
    let lines = [1, 2].map(|number| format!("DELETE /v0/jobs/{}", id(number)));
    assert_eq!(server.lines(), lines);
}

#[test]
fn a_deleted_artifact_is_shown_as_deleted() {
    let gone = Removed {
        at: at(9),
        code: "deleted_by_user".to_owned(),
        message: "deleted by a user".to_owned(),
        actor: "token ci".to_owned(),
    };
    let mut artifact = artifact();
    artifact.removed = Some(gone);
    let server = Server::start([empty(), Reply::json(&Page::all(vec![artifact]))]);
    let output = run_at(
        &server.url,
        &format!("job artifact delete -j {} -a a/b", id(1)),
    );
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(output.stderr, "artifact a/b is deleted\n");
    let output = run_at(&server.url, &format!("job artifact list -j {}", id(1)));
    snapshot::check_listing("artifact-list-removed", &output.stdout);
    let route = format!("/v0/jobs/{}/artifacts", id(1));
    assert_eq!(
        server.lines(),
        [format!("DELETE {route}/a%2Fb"), format!("GET {route}")]
    );
}

#[test]
fn prune_shows_the_removed_jobs_per_scan() {
    for (name, line, body) in [
        (
            "workflow-prune-dry-run",
            "workflow prune main/nightly --dry-run --jobs 3 --age 30d --bytes 10GiB",
            r#"{"dry_run":true,"jobs":3,"age_seconds":2592000,"bytes":10737418240}"#,
        ),
        (
            "workflow-prune",
            "workflow prune main/nightly",
            r#"{"dry_run":false}"#,
        ),
        (
            "workflow-prune-json",
            "workflow prune main/nightly --output json",
            r#"{"dry_run":false}"#,
        ),
    ] {
        let server = Server::start([Reply::json(&pruned(line.contains("--dry-run")))]);
        let output = run_at(&server.url, line);
        assert_eq!(output.code, 0, "{}", output.stderr);
        snapshot::check_listing(name, &format!("{}{}", output.stdout, output.stderr));
        assert_eq!(server.lines(), ["POST /v0/workflows/main%2Fnightly/prune"]);
        assert_eq!(server.seen()[0].body, body);
    }
}

#[test]
fn without_a_policy_the_output_shows_that_nothing_is_removed() {
    let mut answer = pruned(false);
    answer.policy = RetentionPolicy::default();
    answer.scans.clear();
    let server = Server::start([Reply::json(&answer)]);
    let output = run_at(&server.url, "workflow prune main/nightly");
    assert_eq!(output.code, 0);
    assert!(output.stderr.contains("give --jobs, --age or --bytes"));
    let output = run_at(&server.url, "workflow prune x --bytes 10GB");
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("10GiB"), "{}", output.stderr);
}
