//! Answers of a daemon.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;
use wire::{
    Artifact, ArtifactPhase, ArtifactProgress, CausedJob, Circle, Clause, Condition, Delivery,
    DeliveryResult, Diagnostic, Evaluation, Explanation, Input, Job, JobReason, JobState,
    LedgerCause, LedgerOutcome, LedgerRecord, Listening, LogRecord, LogSummary, NewLogRecord,
    Revision, RevisionRef, Runner, RunnerJob, RunnerRef, Scan, ScanInput, ScanRead, Schedule,
    SendResult, Severity, Source, SourceAccess, StaleFile, Step, StepOutcome, StepStatus, Stream,
    SuspendedPart, Suspension, Tip, Token, Trigger, UnfinishedJob, WaitingInteractions, Watching,
    Why, Workflow, WorkflowRef,
};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

pub(crate) fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000 + second, 0).unwrap()
}

pub(crate) fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x0192_f0c1_2d3e_7a4b_8c5d_0000_0000_0000 + number)
}

pub(crate) fn job(state: JobState) -> Job {
    Job {
        id: id(1),
        workflow: WorkflowRef {
            id: id(2),
            source: "main".to_owned(),
            name: "nightly/recon".to_owned(),
        },
        revision: RevisionRef {
            id: id(3),
            number: 4,
            commit: COMMIT.to_owned(),
        },
        scan: "subdomains".to_owned(),
        state,
        waiting: (state == JobState::Scheduled).then(|| Explanation {
            code: "no_runner".to_owned(),
            message: "no runner is registered".to_owned(),
            jobs: Vec::new(),
        }),
        trigger: Trigger::Dispatch,
        reason: JobReason {
            code: "dispatched".to_owned(),
            message: "asked for".to_owned(),
            actor: "ann".to_owned(),
        },
        inputs: BTreeMap::from([
            ("deep".to_owned(), Input::Bool(true)),
            ("domain".to_owned(), Input::Text("example.org".to_owned())),
        ]),
        created_at: at(0),
        dispatched_by: None,
        rerun_of: None,
        messages: Vec::from_iter((state == JobState::Succeeded).then(delivery)),
        storing: (state == JobState::Running).then(|| ArtifactProgress {
            name: "hosts".to_owned(),
            phase: ArtifactPhase::Uploading,
            bytes: 3 << 20,
            of: 40 << 20,
        }),
        source: None,
        retry_of: None,
        retried_by: None,
        attempt: None,
        attempts: None,
        not_before: None,
        causes: Vec::new(),
        hops: 0,
        callback: None,
        started_at: Some(at(1)),
        finished_at: state.is_terminal().then(|| at(9)),
        runner: Some(RunnerRef {
            id: id(5),
            name: "box".to_owned(),
        }),
        steps: vec![Step {
            name: Some("build".to_owned()),
            index: 0,
            status: StepStatus::Succeeded,
            outcome: Some(StepOutcome::Succeeded),
            exit_code: Some(0),
            error: None,
            started_at: Some(at(1)),
            finished_at: Some(at(2)),
        }],
        artifacts: vec![artifact()],
        outputs: BTreeMap::from([("hosts".to_owned(), "12".to_owned())]),
        log: LogSummary {
            records: 2,
            cut: None,
        },
    }
}

pub(crate) fn artifact() -> Artifact {
    Artifact {
        id: id(6),
        name: "report.zip".to_owned(),
        size: 1536,
        sha256: "ab".repeat(32),
        content_digest: "sha256:cd".to_owned(),
        created_at: at(8),
        expires_at: None,
        removed: None,
        left_out: None,
    }
}

/// Log lines as the daemon streams them.
pub(crate) fn log(from: u64, texts: &[&str]) -> String {
    let line = |(n, text): (u64, &&str)| {
        let record = LogRecord {
            n,
            record: NewLogRecord {
                at: at(1),
                step: Some(0),
                stream: Stream::Stdout,
                text: (*text).to_owned(),
            },
        };
        serde_json::to_string(&record).unwrap() + "\n"
    };
    (from..).zip(texts).map(line).collect()
}

pub(crate) fn stale_file() -> StaleFile {
    StaleFile {
        file: "workflows/nightly/recon.yaml".to_owned(),
        commit: COMMIT.to_owned(),
        since: at(5),
        last_good: Some(RevisionRef {
            id: id(3),
            number: 4,
            commit: COMMIT.to_owned(),
        }),
        diagnostics: vec![Diagnostic {
            file: "workflows/nightly/recon.yaml".to_owned(),
            line: 3,
            column: 7,
            end_line: 3,
            end_column: 14,
            severity: Severity::Error,
            code: "unknown-key".to_owned(),
            message: "unknown key `uploads`".to_owned(),
            hint: Some("it was replaced by `artifacts`".to_owned()),
        }],
        excerpt: None,
    }
}

pub(crate) fn source(valid: bool) -> Source {
    let condition = |kind: &str, status: bool, reason: &str| Condition {
        kind: kind.to_owned(),
        status: status.to_string(),
        reason: reason.to_owned(),
        message: "a sentence".to_owned(),
        changed_at: at(3),
    };
    Source {
        name: "main".to_owned(),
        project_id: id(7),
        url: "https://git.example.org/scans.git".to_owned(),
        reference: Some("main".to_owned()),
        path: "workflows/".to_owned(),
        interval_seconds: 60,
        access: SourceAccess::default(),
        tip: Some(Tip {
            number: 2,
            commit: COMMIT.to_owned(),
            summary: "add \u{1b}[31mrecon".to_owned(),
            author: "Ann".to_owned(),
            seen_at: at(3),
            history_rewritten: false,
            passed_over: Vec::new(),
            more_passed_over: false,
        }),
        checked_at: Some(at(4)),
        conditions: vec![
            condition("Fetched", true, "fetched"),
            condition(
                "Valid",
                valid,
                if valid { "valid" } else { "invalid_files" },
            ),
        ],
        stale_files: if valid {
            Vec::new()
        } else {
            vec![stale_file()]
        },
        warnings: Vec::new(),
        active_workflows: 1,
    }
}

pub(crate) fn suspension() -> Suspension {
    Suspension {
        part: SuspendedPart::Scan,
        since: at(3),
        by: "token ann".to_owned(),
        reason: "too loud".to_owned(),
    }
}

pub(crate) fn workflow() -> Workflow {
    Workflow {
        id: id(2),
        source: "main".to_owned(),
        name: "nightly/recon".to_owned(),
        title: Some("Recon".to_owned()),
        description: None,
        state: "active".to_owned(),
        retired: None,
        suspended: None,
        resumed: None,
        suspended_scans: Vec::new(),
        revision: Revision {
            id: id(3),
            number: 4,
            commit: COMMIT.to_owned(),
            activated_at: Some(at(2)),
            sha256: Some("ef".repeat(32)),
        },
        scans: vec![
            Scan {
                name: "subdomains".to_owned(),
                cron: Some("0 3 * * *".to_owned()),
                timezone: Some("UTC".to_owned()),
                expr: None,
                callback: Some("shop".to_owned()),
                inputs: Some(vec![ScanInput {
                    key: "domain".to_owned(),
                    description: Some("The domain and all \u{1b}[31mbelow".to_owned()),
                    kind: "string".to_owned(),
                    options: Vec::new(),
                    required: true,
                    default: String::new(),
                }]),
                artifacts: vec!["report.zip".to_owned()],
                reads: Vec::new(),
                steps: 2,
                runs_on: Vec::new(),
                checkout: None,
                callback_server: None,
                retry: None,
            },
            Scan {
                name: "ports".to_owned(),
                cron: None,
                timezone: None,
                expr: Some("scans.subdomains.has_diff()".to_owned()),
                callback: None,
                inputs: None,
                artifacts: Vec::new(),
                reads: vec![wire::Reading {
                    scan: "subdomains".to_owned(),
                    how: wire::How::Starts,
                }],
                steps: 1,
                runs_on: Vec::new(),
                checkout: None,
                callback_server: None,
                retry: None,
            },
        ],
        warnings: Vec::new(),
        stale: Some(stale_file()),
    }
}

pub(crate) fn runner() -> Runner {
    Runner {
        id: id(5),
        name: "box".to_owned(),
        labels: vec!["linux".to_owned(), "big".to_owned()],
        exclusive: true,
        projects: Some(vec!["recon".to_owned(), "vault".to_owned()]),
        has_other_projects: true,
        capacity: 4,
        version: "0.1.0".to_owned(),
        capabilities: vec!["checkout".to_owned()],
        registered_at: at(0),
        heard_at: Some(at(6)),
        connected: true,
        running: vec![id(1)],
        taken: 2,
        jobs: [(1, JobState::Running), (2, JobState::Cancelled)]
            .map(|(number, state)| RunnerJob {
                id: id(number),
                workflow: job(state).workflow,
                scan: "subdomains".to_owned(),
                state,
                started_at: Some(at(1)),
            })
            .to_vec(),
    }
}

pub(crate) fn token() -> Token {
    Token {
        id: id(8),
        name: "ci".to_owned(),
        user: "ann".to_owned(),
        scopes: vec!["job:read".to_owned(), "dispatch".to_owned()],
        projects: Some(vec!["main".to_owned()]),
        created_at: at(0),
        expires_at: Some(at(9)),
        expires_soon: true,
        former_expires_at: None,
        last_used: Some(at(0).date_naive()),
    }
}

/// A scan with a schedule and an expression, and every kind of ledger record.
pub(crate) fn why() -> Why {
    let left_out = |text: &str| Clause {
        text: text.to_owned(),
        ..Clause::default()
    };
    let clause = |text: &str, value: bool, parts: Vec<Clause>| Clause {
        value: Some(value.into()),
        parts,
        ..left_out(text)
    };
    let ids = |numbers: &[u128]| {
        numbers
            .iter()
            .map(|number| id(*number).to_string())
            .collect()
    };
    let jobs = |numbers: &[u128]| BTreeMap::from([("hosts".to_owned(), ids(numbers))]);
    let diff = Clause {
        jobs: jobs(&[5, 4]),
        ..clause("scans.hosts.has_diff('list')", true, Vec::new())
    };
    let failed = Clause {
        error: Some("the list has no such position".to_owned()),
        jobs: jobs(&[6, 5, 4, 3, 2, 1]),
        more_jobs: 94,
        ..left_out("scans.hosts[0].state == 'succeeded'")
    };
    let read = ScanRead {
        size: 3,
        available: true,
        diff: true,
        news: None,
        failed: false,
        successes: ids(&[5, 4]),
    };
    let evaluation = Evaluation {
        clause: clause("||", true, vec![failed, diff, left_out("vars.X == 'y'")]),
        scans: BTreeMap::from([("hosts".to_owned(), read)]),
    };
    let evaluated = |second, cause, evaluation, outcome| LedgerRecord {
        at: at(second),
        cause,
        evaluation,
        outcome,
    };
    let not_made = |code: &str, message: &str| LedgerOutcome::NotMade {
        code: code.to_owned(),
        message: message.to_owned(),
    };
    let (first, last) = (at(-7200), at(-3600));
    Why {
        workflow: "main/recon".to_owned(),
        scan: "changes".to_owned(),
        state: "active".to_owned(),
        removed_by: None,
        renamed_from: None,
        renamed_to: None,
        suspended: None,
        resumed: None,
        cron: Some(Schedule {
            schedule: "0 * * * *".to_owned(),
            description: "at minute 0 past every hour".to_owned(),
            timezone: "Europe/Oslo".to_owned(),
            next: Some(at(3600)),
            next_schedule: None,
            ahead: Some(at(1800)),
        }),
        callback: Some(Listening {
            server: "shop".to_owned(),
            id: Some("abcdefghijklmnop".to_owned()),
            min_interval: "1m".to_owned(),
            problem: None,
            considered: Some(40),
            waiting: Some(WaitingInteractions {
                first: 41,
                last: 45,
                count: 4,
                own: 1,
                until: "the scan is resumed".to_owned(),
            }),
        }),
        expr: Some(Watching {
            expression: "scans.hosts[0].state == 'succeeded' || scans.hosts.has_diff('list')"
                .to_owned(),
            now: Some(evaluation.clone()),
            after_successes: vec!["hosts".to_owned()],
            after_failures: vec!["backup".to_owned()],
        }),
        dispatch: true,
        unfinished: vec![UnfinishedJob {
            id: id(6),
            state: JobState::Scheduled,
            trigger: Trigger::Expr,
            created_at: at(2),
            waiting: Some(Explanation {
                code: "no_runner".to_owned(),
                message: "no runner is registered".to_owned(),
                jobs: Vec::new(),
            }),
            not_before: None,
            attempt: Some(2),
            attempts: Some(4),
            log_cut: None,
        }],
        newest: Some(CausedJob {
            id: id(6),
            created_at: at(2),
            causes: vec![id(5), id(4)],
        }),
        circle: Some(Circle {
            scans: vec!["changes".to_owned(), "report".to_owned()],
            laps: 101,
            job: id(6),
        }),
        cut_job: None,
        damaged: Vec::new(),
        messages: vec![delivery()],
        records: vec![
            evaluated(
                2,
                LedgerCause::Success {
                    scan: "hosts".to_owned(),
                    job: id(5),
                },
                Some(evaluation),
                LedgerOutcome::Made { job: id(6) },
            ),
            evaluated(
                1,
                LedgerCause::Claim { job: id(3) },
                None,
                LedgerOutcome::Skipped {
                    job: id(3),
                    code: "expression_false".to_owned(),
                    message: "its expression is false".to_owned(),
                },
            ),
            evaluated(
                0,
                LedgerCause::Clock { cursor: at(1800) },
                None,
                not_made("clock_set_back", "it goes on from now"),
            ),
            evaluated(
                0,
                LedgerCause::Repeats {
                    first,
                    last,
                    count: 3,
                },
                None,
                not_made("overlap", "job 1 of the scan had not finished"),
            ),
            evaluated(
                0,
                LedgerCause::Slots {
                    first,
                    last,
                    count: 9,
                    schedule: None,
                },
                None,
                not_made(
                    "slots_missed",
                    "the scan could not start in time: the daemon was away, or a job of the scan was in the way",
                ),
            ),
            evaluated(
                0,
                LedgerCause::Slots {
                    first,
                    last: first,
                    count: 1,
                    schedule: None,
                },
                None,
                LedgerOutcome::Made { job: id(2) },
            ),
        ],
    }
}

fn delivery() -> Delivery {
    Delivery {
        at: at(10),
        message: id(40),
        channel: "ops".to_owned(),
        project: Some("main".to_owned()),
        attempt: 1,
        repeated: false,
        result: SendResult {
            result: DeliveryResult::Delivered,
            reply: "204".to_owned(),
        },
        retry_at: None,
        title: "Recovered: main/nightly/recon subdomains".to_owned(),
        events: 1,
        jobs: vec![id(1)],
    }
}
