//! Pages with little or nothing to show.

use maud::{Markup, html};
use ui::form::Refused;
use ui::pages::{
    self, Audit, Blobs, JobFilter, Jobs, Login, Overview, RunnerPage, Runners, ScanPage, Tokens,
    Unfinished, Variables,
};
use wire::*;

use crate::all::job_page;
use crate::lists::drawing;
use crate::more_values::*;
use crate::values::*;
use crate::workflow_values::*;

pub(crate) fn empty(texts: Texts) -> Vec<(&'static str, Markup)> {
    let visit = &reader(texts);
    let none = &Refused::default();
    let filter = &JobFilter::default();
    let other = id(5);
    let busy = Explanation {
        code: "runners_busy".to_owned(),
        message: texts.text(&format!("the only runner is busy with job {other}")),
        jobs: vec![other],
    };
    let bare_job = Job {
        waiting: Some(busy),
        inputs: std::collections::BTreeMap::new(),
        trigger: Trigger::Dispatch,
        ..job(texts, 9, JobState::Scheduled)
    };
    let why = Why {
        removed_by: None,
        renamed_from: None,
        renamed_to: None,
        suspended: None,
        resumed: None,
        cron: None,
        expr: None,
        unfinished: Vec::new(),
        newest: None,
        circle: None,
        cut_job: None,
        ..why(texts)
    };
    let by_hand = ScanStatus {
        scan: Scan {
            cron: None,
            expr: None,
            ..scan(texts)
        },
        suspended: None,
        finished: FinishedJobs::default(),
        ..scan_status(texts, None)
    };
    let (no_jobs, no_records) = (page(Vec::new()), page(Vec::new()));
    let never = ScanPage {
        status: &by_hand,
        why: &why,
        history: &no_jobs,
        ledger: &no_records,
        slots: &[],
        bars: html! {},
        has_neighbours: false,
    };
    let runner = Runner {
        capabilities: Vec::new(),
        heard_at: None,
        connected: false,
        ..runner(texts, true)
    };
    let idle = RunnerPage {
        runner: &runner,
        may_manage: false,
        past: &[],
        has_more: true,
        slots: drawing(),
        lanes: html! {},
        lanes_cut: None,
    };
    let without_jobs = &with(texts, &[Scope::WorkflowRead, Scope::RunnerRead]);
    let no_blobs = BlobList {
        items: Vec::new(),
        folders: Vec::new(),
        next_cursor: None,
    };
    let bare_project = Project {
        configured: true,
        missing_vars: Vec::new(),
        missing_secrets: Vec::new(),
        ..project(texts)
    };
    let health = Health {
        status: HealthStatus::Ok,
        reason: None,
    };
    vec![
        (
            "login-first",
            pages::login(
                &stranger(texts),
                &Login {
                    next: "",
                    passwords: false,
                    first_token: None,
                    refused: none,
                },
            ),
        ),
        (
            "jobs-none",
            pages::jobs(
                visit,
                &Jobs {
                    filter,
                    jobs: &page(Vec::new()),
                    is_later: false,
                    refused: none,
                },
            ),
        ),
        (
            "job-scheduled",
            job_page(texts, visit, &bare_job, None, &[], None),
        ),
        (
            "workflows-none",
            pages::workflows(visit, &[], "", &[], None),
        ),
        (
            "runners-none",
            pages::runners(
                visit,
                &Runners {
                    runners: &page(Vec::new()),
                    slots: Vec::new(),
                    registration: None,
                    server: "",
                },
            ),
        ),
        ("runner-none", pages::runner(visit, &idle)),
        ("scan-without-jobs", pages::scan(without_jobs, &never)),
        ("runner-without-jobs", pages::runner(without_jobs, &idle)),
        (
            "tokens-none",
            pages::tokens(
                visit,
                &Tokens {
                    tokens: &page(Vec::new()),
                    of: "",
                    must_sign_in: true,
                    created: None,
                    refused: none,
                },
            ),
        ),
        ("sources-none", pages::sources(visit, &page(Vec::new()))),
        ("artifacts-none", pages::artifacts(visit, &page(Vec::new()))),
        ("projects-none", pages::projects(visit, &page(Vec::new()))),
        (
            "audit-none",
            pages::audit(
                visit,
                &Audit {
                    records: &page(Vec::new()),
                    actor: "",
                    kind: "",
                    kinds: &["job_dispatched", "token_created"],
                },
            ),
        ),
        ("scan-never", pages::scan(visit, &never)),
        (
            "blobs-none",
            pages::blobs(
                visit,
                &Blobs {
                    projects: &[],
                    project: Some("infra"),
                    prefix: "",
                    blobs: &no_blobs,
                },
            ),
        ),
        (
            "blobs-no-project",
            pages::blobs(
                visit,
                &Blobs {
                    projects: &[],
                    project: None,
                    prefix: "",
                    blobs: &no_blobs,
                },
            ),
        ),
        (
            "variables-none",
            pages::variables(
                visit,
                &Variables {
                    project: &bare_project,
                    vars: &[],
                    secrets: &[],
                    callbacks: &[],
                    has_callbacks: true,
                    refused_callback: none,
                    payload_groups: &[],
                    refused_var: none,
                    refused_secret: none,
                },
            ),
        ),
        (
            "overview-first",
            pages::overview(
                &crate::values::visit(texts),
                &Overview {
                    server: "https://everscan.example.org",
                    health: &health,
                    sources: &[],
                    runners: &[],
                    scans: &[],
                    conditions: &[],
                    conditions_cut: false,
                    unfinished: &[],
                    counts: Unfinished::default(),
                    progress: Vec::new(),
                    slots: &[],
                    lanes: html! {},
                    lanes_cut: None,
                },
            ),
        ),
    ]
}
