//! Every page, with much on it and with nothing.

use chrono::TimeDelta;
use maud::{Markup, html};
use ui::form::Refused;
use ui::pages::{
    self, Audit, Blobs, Dispatch, JobFilter, JobPage, Jobs, LogPage, Login, Overview, Runners,
    ScanPage, Variables, WorkflowPage,
};
use ui::shell::{Visit, problem_page};
use wire::*;

use crate::lists::{details, drawing, lists};
use crate::more_values::*;
use crate::values::*;
use crate::workflow_values::*;

/// The names of all pages, and the pages.
pub(crate) fn all(texts: Texts) -> Vec<(&'static str, String)> {
    let mut all = full(texts);
    all.extend(empty(texts));
    all.into_iter()
        .map(|(name, page)| (name, page.into_string()))
        .collect()
}

fn full(texts: Texts) -> Vec<(&'static str, Markup)> {
    let visit = &visit(texts);
    let stranger = &stranger(texts);
    let states = [
        JobState::Running,
        JobState::Scheduled,
        JobState::Succeeded,
        JobState::Failed,
        JobState::Cancelled,
        JobState::Skipped,
    ];
    let jobs: Vec<Job> = (3..)
        .zip(states)
        .map(|(number, state)| job(texts, number, state))
        .collect();
    let [running_job, _, succeeded, failed, cancelled, skipped] = &jobs[..] else {
        unreachable!("six states")
    };
    let made_by = &ledger(texts)[0];
    let job_of = |job, made_by| {
        let usual = Some(TimeDelta::seconds(104));
        job_page(visit, job, made_by, usual)
    };
    let typed = refused(texts, &["token"]);
    let lists = lists(texts, visit, &jobs);
    let mut built = vec![
        (
            "login",
            pages::login(
                stranger,
                &Login {
                    next: "/jobs?state=failed",
                    first_token: Some(&texts.text("/state/token")),
                    refused: &typed,
                },
            ),
        ),
        (
            "problem",
            problem_page(visit, &problem(texts, &["name"]), Some("/jobs")),
        ),
        (
            "problem-signed-out",
            problem_page(stranger, &problem(texts, &[]), Some("//example.org")),
        ),
        ("job-running", job_of(running_job, Some(made_by))),
        ("job-succeeded", job_of(succeeded, None)),
        ("job-failed", job_of(failed, ledger(texts).get(2))),
        ("job-cancelled", job_of(cancelled, None)),
        ("job-skipped", job_of(skipped, None)),
        ("job-log", log(texts, visit, succeeded)),
        (
            "job-context",
            pages::job_context(visit, succeeded, &context(texts)),
        ),
        ("workflow", workflow_page(texts, visit)),
        ("dispatch", dispatch_page(texts, visit, succeeded)),
    ];
    built.extend(lists);
    built.extend(details(texts, visit, succeeded));
    built
}

fn job_page(
    visit: &Visit,
    job: &Job,
    made_by: Option<&LedgerRecord>,
    usual: Option<TimeDelta>,
) -> Markup {
    let page = JobPage {
        job,
        steps: Some(4),
        made_by,
        usual,
        history: drawing(),
        progress: html! {},
    };
    pages::job(visit, &page)
}

fn log(texts: Texts, visit: &Visit, job: &Job) -> Markup {
    let page = LogPage {
        job,
        records: &records(texts),
        from: 1_000,
        limit: 1_000,
        query: &texts.text("example"),
        step: None,
        next: Some(2_000),
        total: Some(31),
    };
    pages::job_log(visit, &page)
}

fn context(texts: Texts) -> JobContext {
    JobContext {
        frozen_at: ago(252),
        context: serde_json::json!({
            "inputs": { texts.text("domain"): texts.text("example.org") },
            "scans": { "hosts": { "list": [1, 2, null] } },
            "empty": {},
        }),
        secrets: std::iter::once((texts.text("API_KEY"), 3)).collect(),
    }
}

fn workflow_page(texts: Texts, visit: &Visit) -> Markup {
    let page = WorkflowPage {
        workflow: &workflow(texts),
        scans: &[
            scan_status(texts, Some(JobState::Failed)),
            scan_status(texts, None),
        ],
        revisions: &[revision(texts, 12), revision(texts, 10)],
        graph: drawing(),
        lanes: drawing(),
        histories: vec![drawing()],
    };
    pages::workflow(visit, &page)
}

fn dispatch_page(texts: Texts, visit: &Visit, earlier: &Job) -> Markup {
    let key = format!("inputs.{}", texts.text("domain"));
    let page = Dispatch {
        scan: &scan_status(texts, None),
        earlier: Some((earlier.id, &earlier.inputs)),
        waits: Some(&explanation(texts)),
        refused: &refused(texts, &[&key]),
    };
    pages::dispatch(visit, &page)
}

fn empty(texts: Texts) -> Vec<(&'static str, Markup)> {
    let visit = &reader(texts);
    let none = &Refused::default();
    let filter = &JobFilter::default();
    let bare_job = Job {
        inputs: std::collections::BTreeMap::new(),
        trigger: Trigger::Dispatch,
        ..job(texts, 9, JobState::Scheduled)
    };
    let why = Why {
        removed_by: None,
        cron: None,
        expr: None,
        unfinished: Vec::new(),
        cut_job: None,
        ..why(texts)
    };
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
                },
            ),
        ),
        ("job-scheduled", job_page(visit, &bare_job, None, None)),
        ("workflows-none", pages::workflows(visit, &[])),
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
        ("sources-none", pages::sources(visit, &page(Vec::new()))),
        ("artifacts-none", pages::artifacts(visit, &page(Vec::new()))),
        ("projects-none", pages::projects(visit, &page(Vec::new()))),
        (
            "audit-none",
            pages::audit(
                visit,
                &Audit {
                    records: &page(Vec::new()),
                    token: "",
                },
            ),
        ),
        (
            "scan-never",
            pages::scan(
                visit,
                &ScanPage {
                    status: &scan_status(texts, None),
                    why: &why,
                    history: &page(Vec::new()),
                    ledger: &page(Vec::new()),
                    slots: &[],
                    bars: html! {},
                },
            ),
        ),
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
                    refused_var: none,
                    refused_secret: none,
                },
            ),
        ),
        (
            "overview-first",
            pages::overview(
                visit,
                &Overview {
                    health: &health,
                    sources: &[],
                    runners: &[],
                    scans: &[],
                    unfinished: &[],
                    progress: Vec::new(),
                    slots: &[],
                    missing_secrets: &[],
                    lanes: html! {},
                },
            ),
        ),
    ]
}
