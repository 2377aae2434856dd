//! Values that are not about workflows and jobs.

use std::net::{IpAddr, Ipv4Addr};

use chrono::{FixedOffset, NaiveDate, TimeDelta};
use ui::form::Refused;
use wire::*;

use crate::values::*;
use crate::workflow_values::*;

pub(crate) fn runner(texts: Texts, connected: bool) -> Runner {
    Runner {
        id: id(50),
        name: texts.text("north-1"),
        labels: vec![texts.text("linux"), "gpu".to_owned()],
        exclusive: false,
        projects: connected.then(|| vec![texts.text("recon")]),
        has_other_projects: connected,
        capacity: 4,
        version: "0.0.9".to_owned(),
        capabilities: vec!["checkout".to_owned()],
        registered_at: ago(90_000),
        heard_at: connected.then(|| ago(2)),
        connected,
        running: vec![id(3)],
        taken: 1,
        jobs: vec![RunnerJob {
            id: id(3),
            workflow: workflow_ref(texts),
            scan: texts.text("probe"),
            state: JobState::Cancelled,
            started_at: Some(ago(252)),
        }],
    }
}

pub(crate) fn source(texts: Texts) -> Source {
    let condition = |kind: &str, status: &str| Condition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        reason: "fetched".to_owned(),
        message: texts.text("the repository was read"),
        changed_at: ago(12),
    };
    Source {
        name: texts.text("infra"),
        project_id: id(60),
        url: texts.text("https://git.example.org/infra.git"),
        reference: Some(texts.text("main")),
        path: texts.text("workflows"),
        interval_seconds: 60,
        access: SourceAccess {
            token_file: Some(texts.text("/etc/everscan/infra.token")),
            token_command: None,
            username: Some(texts.text("x-access-token")),
            ca_file: Some(texts.text("/etc/everscan/ca.pem")),
        },
        tip: Some(Tip {
            number: 7,
            commit: texts.text("9f2c41d0aa55"),
            summary: texts.text("probe: follow redirects"),
            author: texts.text("Ada"),
            seen_at: ago(7_200),
            history_rewritten: true,
            passed_over: vec![texts.text("77ab03e11"), texts.text("1e90c4b22")],
            more_passed_over: true,
        }),
        checked_at: Some(ago(12)),
        conditions: vec![
            condition("Fetched", "true"),
            condition("Valid", "false"),
            condition("Stalled", "false"),
            condition("Active", "unknown"),
        ],
        stale_files: vec![stale(texts)],
        warnings: vec![diagnostic(texts, Severity::Warning)],
        active_workflows: 6,
    }
}

/// A source without a successful poll.
pub(crate) fn unread_source(texts: Texts) -> Source {
    Source {
        name: texts.text("away"),
        tip: None,
        checked_at: None,
        conditions: vec![Condition {
            kind: "Fetched".to_owned(),
            status: "false".to_owned(),
            reason: "fetch_failed".to_owned(),
            message: texts.text("https://git.example.org/away.git does not answer"),
            changed_at: ago(7_200),
        }],
        stale_files: Vec::new(),
        warnings: Vec::new(),
        active_workflows: 0,
        ..source(texts)
    }
}

pub(crate) fn project(texts: Texts) -> Project {
    let missing = |name: &str| MissingName {
        name: texts.text(name),
        used_by: vec![scan_name(texts)],
    };
    Project {
        id: id(60),
        name: texts.text("infra"),
        configured: false,
        vars: 2,
        secrets: 1,
        missing_vars: vec![missing("MODE")],
        missing_secrets: vec![missing("API_KEY")],
    }
}

fn scan_name(texts: Texts) -> ScanName {
    ScanName {
        workflow: texts.text("infra/net/recon"),
        scan: texts.text("probe"),
    }
}

fn named(texts: Texts, name: &str) -> Named {
    Named {
        name: texts.text(name),
        version: 3,
        updated_at: ago(90_000),
        updated_by: texts.text("ada"),
        used_by: vec![scan_name(texts)],
    }
}

pub(crate) fn vars(texts: Texts) -> Vec<Var> {
    vec![Var {
        named: named(texts, "PAUSED"),
        value: texts.text("no"),
    }]
}

pub(crate) fn secrets(texts: Texts) -> Vec<Secret> {
    let states = [
        ("TOKEN", KeyState::Current),
        ("PASSWORD", KeyState::Old),
        ("API_KEY", KeyState::Missing),
    ];
    let secret = |(name, key_state)| Secret {
        named: named(texts, name),
        key: texts.text("k1"),
        key_state,
    };
    states.map(secret).to_vec()
}

pub(crate) fn blobs(texts: Texts) -> BlobList {
    BlobList {
        items: vec![Blob {
            path: texts.text("lists/a%2Fb.txt"),
            size: 4_096,
            sha256: "cd".repeat(32),
            modified_at: ago(3_600),
            modified_by: texts.text("ada"),
            expires_at: Some(now() + TimeDelta::hours(12)),
        }],
        folders: vec![format!("{}/", texts.text("lists/deep"))],
        next_cursor: Some(texts.text("next")),
    }
}

pub(crate) fn token(texts: Texts) -> Token {
    Token {
        id: id(80),
        name: texts.text("ci"),
        user: texts.text("ann"),
        scopes: vec![texts.text("job:read"), "dispatch".to_owned()],
        projects: Some(vec![texts.text("infra")]),
        created_at: ago(90_000),
        expires_at: Some(now() + TimeDelta::days(3)),
        expires_soon: true,
        former_expires_at: Some(now() + TimeDelta::hours(1)),
        last_used: NaiveDate::from_ymd_opt(2026, 9, 20),
    }
}

pub(crate) fn session(texts: Texts) -> Session {
    Session {
        id: id(81),
        device: texts.text("Firefox on Linux"),
        token: Some(texts.text("ci")),
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        created_at: ago(90_000),
        seen_at: ago(60),
        expires_at: now() + TimeDelta::days(30),
        current: true,
    }
}

pub(crate) fn audit_record(texts: Texts) -> AuditRecord {
    AuditRecord {
        at: ago(30),
        user: Some(texts.text("owner")),
        token: Some(AuditToken {
            id: id(80),
            name: texts.text("ci"),
        }),
        job: None,
        runner: None,
        session: Some(id(81)),
        address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        method: "POST".to_owned(),
        path: texts.text("/v0/tokens"),
        request_id: id(90),
        actions: vec![AuditAction {
            id: Some(id(82)),
            name: Some(texts.text("deploy")),
            scopes: vec!["job:read".to_owned()],
            ..audit_action("token_created")
        }],
        more_actions: 3,
    }
}

/// A line of a step, and a line of a claim that got a secret.
pub(crate) fn records_of_jobs(texts: Texts) -> [AuditRecord; 2] {
    let of_nobody = refused_sign_ins();
    let by_step = AuditRecord {
        job: Some(id(5)),
        path: "/v0/blobs/report".to_owned(),
        actions: vec![AuditAction {
            name: Some(texts.text("report")),
            ..audit_action("blob_stored")
        }],
        ..of_nobody.clone()
    };
    let by_runner = AuditRecord {
        runner: Some(AuditRunner {
            id: id(83),
            name: texts.text("builder"),
        }),
        actions: vec![AuditAction {
            name: Some(texts.text("API_KEY")),
            version: Some(3),
            job: Some(id(5)),
            ..audit_action("secret_read")
        }],
        ..of_nobody
    };
    [by_step, by_runner]
}

/// A line of failed sign-ins from several addresses.
pub(crate) fn refused_sign_ins() -> AuditRecord {
    AuditRecord {
        at: ago(60),
        user: None,
        token: None,
        job: None,
        runner: None,
        session: None,
        address: None,
        method: "POST".to_owned(),
        path: "/v0/sessions".to_owned(),
        request_id: id(91),
        actions: vec![AuditAction {
            count: Some(37),
            ..audit_action("sign_in_refused")
        }],
        more_actions: 0,
    }
}

fn audit_action(kind: &str) -> AuditAction {
    AuditAction {
        kind: kind.to_owned(),
        id: None,
        name: None,
        project: None,
        workflow: None,
        scan: None,
        job: None,
        version: None,
        scopes: Vec::new(),
        expires_at: None,
        reason: None,
        count: None,
    }
}

pub(crate) fn problem(texts: Texts, fields: &[&str]) -> Problem {
    let error = |field: &&str| FieldError {
        field: (*field).to_owned(),
        message: texts.text("it is too long"),
    };
    Problem {
        title: texts.text("The request is not valid"),
        status: 400,
        code: ErrorCode::InvalidInputs,
        detail: texts.text("Some inputs were refused"),
        hint: Some(texts.text("the scan's file says what it takes")),
        request_id: Some(texts.text("0199c3a2")),
        errors: fields.iter().map(error).collect(),
        diagnostics: Vec::new(),
        next: None,
        made: None,
    }
}

pub(crate) fn refused(texts: Texts, fields: &[&str]) -> Refused {
    let typed = fields
        .iter()
        .map(|field| ((*field).to_owned(), texts.text("typed")));
    Refused {
        typed: typed.collect(),
        problem: Some(problem(texts, &[fields, &["other"]].concat())),
    }
}

pub(crate) fn slot(texts: Texts, seconds: i64) -> Slot {
    Slot {
        at: ago(seconds),
        local: ago(seconds).with_timezone(&FixedOffset::east_opt(7_200).expect("an offset")),
        workflow: workflow_ref(texts),
        scan: texts.text("probe"),
        schedule: texts.text("0 */6 * * *"),
        timezone: texts.text("Europe/Berlin"),
    }
}

pub(crate) fn artifact_diff(texts: Texts) -> ArtifactDiff {
    let file = |from_size, to_size| FileChange {
        name: texts.text("hosts.txt"),
        from_size,
        to_size,
    };
    ArtifactDiff {
        artifact: texts.text("hosts"),
        from: id(2),
        to: id(3),
        same: false,
        added: 1,
        removed: 1,
        changed: 1,
        unchanged: 5,
        files: vec![
            file(None, Some(4)),
            file(Some(9_000), None),
            file(Some(1), Some(2)),
        ],
        next_cursor: Some(texts.text("next")),
    }
}

pub(crate) fn records(texts: Texts) -> Vec<LogRecord> {
    let record = |n, step, stream, text: &str| LogRecord {
        n,
        record: NewLogRecord {
            at: ago(200),
            step,
            stream,
            text: texts.text(text),
        },
    };
    vec![
        record(0, None, Stream::Runner, "begins"),
        record(
            1,
            Some(0),
            Stream::Stdout,
            "\u{1b}[32m200\u{1b}[0m https://example.org",
        ),
        record(2, Some(0), Stream::Stderr, "refused"),
    ]
}

/// A condition of each subject.
pub(crate) fn conditions(texts: Texts) -> Vec<OpenCondition> {
    let job = id(8);
    let one = |code: &str, message: &str| OpenCondition {
        id: id(700),
        code: code.to_owned(),
        message: texts.text(message),
        since: ago(90_000),
        project: Some(texts.text("infra")),
        workflow: None,
        scan: None,
        source: None,
        runner: None,
        token: None,
        job: None,
        acknowledged: None,
        silenced_until: None,
    };
    let workflow = Some(workflow_ref(texts));
    let named = |name: &str| ConditionSubject {
        id: id(78),
        name: texts.text(name),
    };
    let all = [
        OpenCondition {
            workflow: workflow.clone(),
            scan: Some(texts.text("probe")),
            job: Some(job),
            ..one(
                "failing",
                &format!(
                    "3 jobs failed, the last was job {job}; the last success was at 2026-09-20T03:00:09Z"
                ),
            )
        },
        OpenCondition {
            workflow: workflow.clone(),
            scan: Some(texts.text("probe")),
            job: Some(job),
            silenced_until: Some(now() + TimeDelta::hours(2)),
            ..one(
                "too_long",
                &format!("job {job} takes longer than the expected 30m"),
            )
        },
        OpenCondition {
            workflow,
            acknowledged: Some(Acknowledgement {
                by: texts.text("token ci"),
                at: ago(60),
                note: Some(texts.text("until Monday")),
            }),
            ..one("suspended", "suspended by token ci: too loud")
        },
        OpenCondition {
            source: Some(texts.text("infra")),
            ..one("invalid_file", "a.yaml is invalid: `steps` is missing")
        },
        one(
            "missing_var",
            "a workflow uses the var `LEVEL`, which is not set",
        ),
        OpenCondition {
            project: None,
            runner: Some(named("first")),
            ..one("runner_lost", "the runner is not connected")
        },
        OpenCondition {
            project: None,
            token: Some(named("ci")),
            ..one("token_expires", "the token expires at 2026-12-01T00:00:00Z")
        },
        OpenCondition {
            project: None,
            ..one(
                "disk_low",
                "the disk of the state is nearly full: no job starts",
            )
        },
    ];
    let numbered = (700..).zip(all);
    numbered
        .map(|(number, one)| OpenCondition {
            id: id(number),
            ..one
        })
        .collect()
}
