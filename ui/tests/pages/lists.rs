//! Lists, and the pages of their entries.

use chrono::TimeDelta;
use maud::{Markup, html};
use ui::form::Refused;
use ui::pages::{
    self, About, ArtifactEntries, Audit, Blobs, Disk, JobFilter, Jobs, Overview, RevisionPage,
    RunnerPage, Runners, ScanPage, Tokens, Unfinished, Variables, WorkflowRow,
};
use ui::shell::Visit;
use wire::*;

use crate::all::{due_retry, pending_retry};
use crate::more_values::*;
use crate::values::*;
use crate::workflow_values::*;

/// Stands for a drawing.
pub(crate) fn drawing() -> Markup {
    html! { svg.bars role="img" aria-label="a drawing" width="8" height="8" { rect width="4" height="4" {} } }
}

pub(crate) fn lists(texts: Texts, visit: &Visit, jobs: &[Job]) -> Vec<(&'static str, Markup)> {
    let filter = JobFilter {
        state: "failed".to_owned(),
        scan: texts.text("probe"),
        ..JobFilter::default()
    };
    let with_digits = JobFilter {
        id: texts.text("c3a2"),
        ..JobFilter::default()
    };
    let beside = |field: &str, message| Refused {
        problem: Some(Problem {
            errors: vec![FieldError {
                field: field.to_owned(),
                message: texts.text(message),
            }],
            ..problem(texts, &[])
        }),
        ..Refused::default()
    };
    let failed = scan_status(texts, Some(JobState::Failed));
    let workflow = workflow(texts);
    let row = WorkflowRow {
        workflow: &workflow,
        running: 2,
        next: Some(now() + TimeDelta::hours(2)),
        history: drawing(),
    };
    let retries = [pending_retry(texts), due_retry(texts)];
    let registration = Registration {
        token: texts.text("evr_secret"),
        expires_at: now() + TimeDelta::hours(1),
        projects: Some(vec![texts.text("recon"), texts.text("vault")]),
        labels: None,
    };
    let created = CreatedToken {
        token: token(texts),
        secret: texts.text("evt_secret"),
    };
    vec![
        (
            "jobs",
            pages::jobs(
                visit,
                &Jobs {
                    filter: &filter,
                    jobs: &long_page([jobs, &retries].concat(), texts),
                    is_later: false,
                    refused: &Refused::default(),
                },
            ),
        ),
        (
            "jobs-not-yet",
            pages::jobs(
                visit,
                &Jobs {
                    filter: &filter,
                    jobs: &Page {
                        next_cursor: Some(texts.text("next")),
                        ..page(Vec::new())
                    },
                    is_later: false,
                    refused: &Refused::default(),
                },
            ),
        ),
        (
            "jobs-refused",
            pages::jobs(
                visit,
                &Jobs {
                    filter: &filter,
                    jobs: &page(Vec::new()),
                    is_later: false,
                    refused: &beside("workflow", "there is no workflow `none`"),
                },
            ),
        ),
        (
            "jobs-refused-trigger",
            pages::jobs(
                visit,
                &Jobs {
                    filter: &JobFilter {
                        trigger: texts.text("foo"),
                        ..JobFilter::default()
                    },
                    jobs: &page(Vec::new()),
                    is_later: false,
                    refused: &beside("trigger", "must be `dispatch`, `cron` or `expr`"),
                },
            ),
        ),
        (
            "jobs-refused-state",
            pages::jobs(
                visit,
                &Jobs {
                    filter: &JobFilter {
                        state: texts.text("fine"),
                        ..JobFilter::default()
                    },
                    jobs: &page(Vec::new()),
                    is_later: false,
                    refused: &beside("state", "is not a state of a job"),
                },
            ),
        ),
        (
            "jobs-with-digits",
            pages::jobs(
                visit,
                &Jobs {
                    filter: &with_digits,
                    jobs: &page(jobs[..2].to_vec()),
                    is_later: false,
                    refused: &Refused::default(),
                },
            ),
        ),
        (
            "workflows",
            pages::workflows(
                visit,
                &[row],
                "all",
                &[source(texts)],
                Some(&texts.text("next")),
            ),
        ),
        (
            "runners",
            pages::runners(
                visit,
                &Runners {
                    runners: &page(vec![runner(texts, true), runner(texts, false)]),
                    slots: vec![drawing()],
                    registration: Some(&registration),
                    server: "https://everscan.example.org",
                },
            ),
        ),
        (
            "sources",
            pages::sources(visit, &page(vec![source(texts), unread_source(texts)])),
        ),
        ("source-unread", pages::source(visit, &unread_source(texts))),
        (
            "artifacts",
            pages::artifacts(
                visit,
                &page(vec![scan_status(texts, Some(JobState::Succeeded))]),
            ),
        ),
        (
            "projects",
            pages::projects(visit, &long_page(vec![project(texts)], texts)),
        ),
        (
            "tokens",
            pages::tokens(
                visit,
                &Tokens {
                    tokens: &page(vec![
                        token(texts),
                        Token {
                            id: id(83),
                            user: texts.text("ada"),
                            ..token(texts)
                        },
                    ]),
                    of: "all",
                    must_sign_in: false,
                    created: Some(&created),
                    refused: &refused(texts, &["name", "scopes"]),
                },
            ),
        ),
        (
            "audit",
            pages::audit(
                visit,
                &Audit {
                    records: &long_page(
                        [audit_record(texts), refused_sign_ins()]
                            .into_iter()
                            .chain(records_of_jobs(texts))
                            .collect(),
                        texts,
                    ),
                    actor: &texts.text("ci"),
                    kind: "token_created",
                    kinds: &["job_dispatched", "token_created"],
                },
            ),
        ),
        (
            "overview",
            pages::overview(
                visit,
                &Overview {
                    server: "https://everscan.example.org",
                    health: &Health {
                        status: HealthStatus::DiskLow,
                        reason: Some(texts.text("2 % are free")),
                    },
                    sources: &[source(texts), unread_source(texts)],
                    runners: &[runner(texts, true), runner(texts, false)],
                    scans: &[failed.clone(), scan_status(texts, None)],
                    conditions: &conditions(texts),
                    conditions_cut: true,
                    unfinished: &[&jobs[..1], &retries].concat(),
                    counts: Unfinished {
                        running: 1_201,
                        waiting: 1_002,
                        oldest_wait: Some(ago(7_400)),
                    },
                    progress: vec![drawing()],
                    slots: &[slot(texts, -600)],
                    lanes: drawing(),
                    lanes_cut: Some(200),
                },
            ),
        ),
    ]
}

pub(crate) fn details(texts: Texts, visit: &Visit, job: &Job) -> Vec<(&'static str, Markup)> {
    let entry = ArtifactEntry {
        name: texts.text("hosts.txt"),
        size: 4_096,
        packed_size: 1_024,
        crc32: texts.text("cafe"),
    };
    let entries = |artifact: &Artifact| {
        let entries = long_page(vec![entry.clone()], texts);
        pages::artifact_entries(
            visit,
            &ArtifactEntries {
                job,
                artifact,
                entries: &entries,
            },
        )
    };
    vec![
        (
            "revisions",
            pages::revisions(
                visit,
                &texts.text("infra/net/recon"),
                &page(vec![revision(texts, 12), revision(texts, 10)]),
            ),
        ),
        (
            "revision",
            pages::revision(
                visit,
                &RevisionPage {
                    workflow: &texts.text("infra/net/recon"),
                    revision: &revision_text(texts),
                    diff: Some(&revision_diff(texts)),
                },
            ),
        ),
        (
            "revision-same",
            pages::revision(
                visit,
                &RevisionPage {
                    workflow: &texts.text("infra/net/recon"),
                    revision: &revision_text(texts),
                    diff: Some(&RevisionDiff {
                        difference: Difference::default(),
                        next_slots: Vec::new(),
                        text: TextDifference::default(),
                        ..revision_diff(texts)
                    }),
                },
            ),
        ),
        (
            "scan",
            pages::scan(
                visit,
                &ScanPage {
                    status: &scan_status(texts, Some(JobState::Running)),
                    why: &why(texts),
                    history: &long_page(vec![job_line(texts, 3, JobState::Succeeded)], texts),
                    ledger: &long_page(ledger(texts), texts),
                    slots: &[slot(texts, 60), slot(texts, -600)],
                    bars: drawing(),
                    has_neighbours: true,
                },
            ),
        ),
        (
            "scan-schedules",
            pages::scan(
                visit,
                &ScanPage {
                    status: &ScanStatus {
                        scan: Scan {
                            cron: Some(texts.text("0 */6 * * *; 0 12 * * 6")),
                            expr: None,
                            ..scan(texts)
                        },
                        suspended: None,
                        ..scan_status(texts, None)
                    },
                    why: &several_schedules(texts),
                    history: &page(Vec::new()),
                    ledger: &page(Vec::new()),
                    slots: &[
                        slot(texts, -600),
                        Slot {
                            schedule: texts.text("0 12 * * 6"),
                            ..slot(texts, -7_800)
                        },
                    ],
                    bars: drawing(),
                    has_neighbours: false,
                },
            ),
        ),
        (
            "scan-suspended",
            pages::scan(
                visit,
                &ScanPage {
                    status: &scan_status(texts, None),
                    why: &Why {
                        expr: None,
                        ..why(texts)
                    },
                    history: &page(Vec::new()),
                    ledger: &page(Vec::new()),
                    slots: &[],
                    bars: drawing(),
                    has_neighbours: false,
                },
            ),
        ),
        (
            "runner",
            pages::runner(
                visit,
                &RunnerPage {
                    runner: &runner(texts, true),
                    may_manage: true,
                    past: std::slice::from_ref(job),
                    has_more: true,
                    slots: drawing(),
                    lanes: drawing(),
                    lanes_cut: Some(200),
                },
            ),
        ),
        ("source", pages::source(visit, &source(texts))),
        ("artifact-entries", entries(&artifact(texts))),
        ("artifact-removed", entries(&removed(texts))),
        (
            "artifact-diff",
            pages::artifact_diff(visit, &artifact_diff(texts)),
        ),
        (
            "blobs",
            pages::blobs(
                visit,
                &Blobs {
                    projects: &[project(texts), project(texts)],
                    project: Some(&texts.text("infra")),
                    prefix: &format!("{}/", texts.text("lists")),
                    blobs: &blobs(texts),
                },
            ),
        ),
        ("variables", variables(texts, visit)),
        (
            "about",
            about(
                texts,
                visit,
                &[
                    (&texts.text("serde 1.0.0"), "MIT OR Apache-2.0"),
                    ("uuid 1.0.0", "MIT OR Apache-2.0"),
                    ("zlib-rs 0.6.0", &texts.text("Zlib")),
                ],
            ),
        ),
    ]
}

pub(crate) fn variables(texts: Texts, visit: &Visit) -> Markup {
    let page = Variables {
        project: &project(texts),
        vars: &vars(texts),
        secrets: &secrets(texts),
        callbacks: &[crate::callback_values::callback_server(texts)],
        has_callbacks: true,
        refused_callback: &refused(texts, &["name"]),
        payload_groups: &[crate::payload_values::group(texts)],
        refused_var: &refused(texts, &["name", "value"]),
        refused_secret: &refused(texts, &["name", "value"]),
    };
    pages::variables(visit, &page)
}

pub(crate) fn about(texts: Texts, visit: &Visit, licences: &[(&str, &str)]) -> Markup {
    let page = About {
        health: &Health {
            status: HealthStatus::Ok,
            reason: None,
        },
        readiness: &Readiness {
            status: ReadyStatus::NotReady,
            reasons: vec![texts.text("it is stopping")],
        },
        state_folder: Some(&texts.text("/var/lib/everscan")),
        disk: Some(Disk {
            total: 40 << 30,
            free: 12 << 30,
        }),
        licences,
    };
    pages::about(visit, &page)
}
