//! Suspending and resuming workflows and scans.

use wire::{Resumption, SuspendedPart, Suspension, SuspensionStatus, Why, Workflow};

use crate::everscan::run_at;
use crate::fixtures::{at, job, suspension, why, workflow};
use crate::server::{Reply, Server};

fn status(suspended: Option<Suspension>, resumed: Option<Resumption>) -> Reply {
    Reply::json(&SuspensionStatus {
        workflow: job(wire::JobState::Running).workflow,
        scan: None,
        suspended,
        resumed,
    })
}

fn resumption(reason: Option<&str>) -> Resumption {
    Resumption {
        at: at(9),
        by: "token ann".to_owned(),
        reason: reason.map(str::to_owned),
    }
}

#[test]
fn a_suspension_has_a_reason_and_a_time() {
    for (line, request) in [
        (
            "workflow suspend main/a",
            "POST /v0/workflows/main%2Fa/suspend",
        ),
        (
            "scan suspend main/a b",
            "POST /v0/workflows/main%2Fa/scans/b/suspend",
        ),
    ] {
        let server = Server::start([status(Some(suspension()), None)]);
        let output = run_at(&server.url, &format!("{line} --reason loud"));
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert_eq!(
            output.stdout,
            "suspended since 2026-09-21T14:13:23Z by token ann: too loud\n"
        );
        assert_eq!(server.lines(), [request]);
        assert_eq!(server.seen()[0].body, r#"{"reason":"loud"}"#);
        let output = run_at(&server.url, line);
        assert_eq!(output.code, 2, "a suspension needs a reason");
    }
}

#[test]
fn a_resumption_may_have_a_reason() {
    for (line, request, body) in [
        ("workflow resume a", "POST /v0/workflows/a/resume", "{}"),
        (
            "scan resume a b --reason quiet",
            "POST /v0/workflows/a/scans/b/resume",
            r#"{"reason":"quiet"}"#,
        ),
    ] {
        let server = Server::start([status(None, Some(resumption(Some("quiet"))))]);
        let output = run_at(&server.url, line);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (0, "resumed 2026-09-21T14:13:29Z by token ann: quiet\n")
        );
        assert_eq!(server.lines(), [request]);
        assert_eq!(server.seen()[0].body, body);
    }
}

#[test]
fn a_resumption_without_effect_shows_the_reason() {
    let whole = Suspension {
        part: SuspendedPart::Workflow,
        ..suspension()
    };
    let and_now = "the workflow is suspended since 2026-09-21T14:13:23Z by token ann: too loud\n\
                   resume it: everscan workflow resume main/a\n";
    for (line, suspended, resumed, expected) in [
        (
            "workflow resume main/a",
            None,
            None,
            "the workflow main/a was not suspended; nothing changed\n".to_owned(),
        ),
        (
            "scan resume main/a b",
            None,
            None,
            "the scan b was not suspended; nothing changed\n".to_owned(),
        ),
        (
            "scan resume main/a b",
            Some(whole.clone()),
            None,
            format!("the scan b was not suspended by itself; {and_now}"),
        ),
        (
            "scan resume main/a b",
            Some(whole),
            Some(resumption(None)),
            format!("the scan b was resumed 2026-09-21T14:13:29Z by token ann; {and_now}"),
        ),
    ] {
        let status = SuspensionStatus {
            workflow: job(wire::JobState::Running).workflow,
            scan: line.starts_with("scan").then(|| "b".to_owned()),
            suspended,
            resumed,
        };
        let server = Server::start([Reply::json(&status)]);
        let output = run_at(&server.url, line);
        assert_eq!((output.code, output.stdout), (0, expected));
    }
}

#[test]
fn scan_why_shows_the_suspension_first_and_no_next_slot() {
    let suspended = Why {
        suspended: Some(suspension()),
        ..why()
    };
    let server = Server::start([Reply::json(&suspended)]);
    let output = run_at(&server.url, "scan why a b").stdout;
    let state = output.lines().nth(1).unwrap();
    assert_eq!(
        state,
        "state:      suspended since 2026-09-21T14:13:23Z by token ann: too loud"
    );
    assert!(output.contains("cron: "), "{output}");
    assert!(!output.contains("; next "), "{output}");
}

#[test]
fn suspensions_are_shown() {
    let suspended = Workflow {
        suspended: Some(Suspension {
            part: SuspendedPart::Workflow,
            ..suspension()
        }),
        suspended_scans: vec!["a".to_owned(), "b".to_owned()],
        ..workflow()
    };
    let page = wire::Page::all(vec![suspended.clone()]);
    let server = Server::start([Reply::json(&page), Reply::json(&suspended)]);
    let output = run_at(&server.url, "workflow list");
    for part in ["active, suspended", "2, 2 suspended"] {
        assert!(output.stdout.contains(part), "{}", output.stdout);
    }
    let output = run_at(&server.url, "workflow show a");
    for line in ["by token ann", "with the whole workflow: too loud", "a, b"] {
        assert!(output.stdout.contains(line), "{}", output.stdout);
    }
    let resumed = Why {
        resumed: Some(resumption(Some("quiet"))),
        ..why()
    };
    let suspended = Why {
        suspended: Some(suspension()),
        ..why()
    };
    let server = Server::start([Reply::json(&suspended), Reply::json(&resumed)]);
    for line in [
        "since 2026-09-21T14:13:23Z by token ann: too loud",
        "by token ann: quiet",
    ] {
        let output = run_at(&server.url, "scan why a b");
        assert!(output.stdout.contains(line), "{}", output.stdout);
    }
}
