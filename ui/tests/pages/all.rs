//! All pages. The pages in this file have much content.

use chrono::TimeDelta;
use maud::{Markup, html};
use ui::form::Refused;
use ui::pages::{
    self, Declared, DeclaredStep, Dispatch, JobPage, Lanes, LogPage, Login, Past, ScanPast,
    SignInLink, WorkflowPage,
};
use ui::shell::{Crumb, Visit, problem_page};
use wire::*;

use crate::lists::{details, drawing, lists};
use crate::more_values::*;
use crate::values::*;
use crate::workflow_values::*;
use crate::{callback_values, empty, notify_values, payload_values, user_pages};

/// The names of all pages, and the pages.
pub(crate) fn all(texts: Texts) -> Vec<(&'static str, String)> {
    let mut all = full(texts);
    all.extend(empty::empty(texts));
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
    let earlier = [job_line(texts, 2, JobState::Succeeded)];
    let job_of = |job, made_by| {
        let usual = Some(TimeDelta::seconds(104));
        job_page(texts, visit, job, made_by, &earlier, usual)
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
                    passwords: true,
                    first_token: Some(&texts.text("/state/token")),
                    refused: &typed,
                },
            ),
        ),
        (
            "login-link",
            pages::sign_in_link(
                stranger,
                &SignInLink {
                    user: &texts.text("owner"),
                    token: Some(&texts.text("initial admin")),
                    link: &texts.text("evi_secret"),
                },
            ),
        ),
        (
            "problem",
            problem_page(
                visit,
                &problem(texts, &["name"]),
                Some("/jobs"),
                Some(&Crumb::new(
                    texts.text("The scan"),
                    "/workflows/a/b/-/scans/c",
                )),
            ),
        ),
        (
            "problem-of-daemon",
            problem_page(
                visit,
                &Problem {
                    status: 500,
                    code: ErrorCode::Internal,
                    ..problem(texts, &[])
                },
                None,
                None,
            ),
        ),
        (
            "problem-signed-out",
            problem_page(stranger, &problem(texts, &[]), Some("//example.org"), None),
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
        (
            "job-differs",
            job_of(
                &Job {
                    not_before: Some(ago(255)),
                    ..running_job.clone()
                },
                Some(&differs(texts)),
            ),
        ),
        ("job-retry", job_of(&pending_retry(texts), None)),
        ("job-retried", retried(texts, visit, &pending_retry(texts))),
        ("job-retry-cancelled", retried(texts, visit, cancelled)),
        ("job-retried-twice", retried_twice(texts, visit, failed)),
        ("workflow", workflow_page(texts, visit, false)),
        ("workflow-week", workflow_page(texts, visit, true)),
        ("dispatch", dispatch_page(texts, visit, succeeded)),
    ];
    built.extend(lists);
    built.extend(user_pages::full(texts, visit));
    built.extend(notify_values::notifications(texts, visit));
    built.extend(callback_values::callbacks(texts, visit));
    built.extend(payload_values::payloads(texts, visit));
    built.extend(dispatch_waits(texts, visit));
    built.extend(details(texts, visit, succeeded));
    built
}

pub(crate) fn job_page(
    texts: Texts,
    visit: &Visit,
    job: &Job,
    made_by: Option<&LedgerRecord>,
    others: &[JobLine],
    usual: Option<TimeDelta>,
) -> Markup {
    let steps = [
        (None, "git clone"),
        (None, "tools/probe"),
        (None, "sort -u"),
        (Some("report"), "tools/report"),
    ];
    let steps = steps.map(|(name, script)| DeclaredStep {
        name: name.map(|name| texts.text(name)),
        script: texts.text(script),
    });
    let declared = Declared {
        steps: steps.to_vec(),
        has_artifacts: true,
        keeps_after_failure: job.state == JobState::Cancelled,
    };
    let page = JobPage {
        job,
        declared: Some(&declared),
        is_suspended: job.state == JobState::Skipped,
        others,
        made_by,
        retry: None,
        pending_retry: None,
        usual,
        history: drawing(),
        progress: html! {},
    };
    pages::job(visit, &page)
}

/// A failed job with a retry that is unfinished or never ran.
fn retried(texts: Texts, visit: &Visit, retry: &Job) -> Markup {
    let pending = (!retry.state.is_terminal()).then_some(retry.id);
    retried_by(texts, visit, retry, pending)
}

/// A failed job whose retry failed and is retried again.
fn retried_twice(texts: Texts, visit: &Visit, retry: &Job) -> Markup {
    retried_by(texts, visit, retry, Some(id(11)))
}

fn retried_by(texts: Texts, visit: &Visit, retry: &Job, pending: Option<uuid::Uuid>) -> Markup {
    let page = JobPage {
        job: &Job {
            retried_by: Some(retry.id),
            ..job(texts, 6, JobState::Failed)
        },
        declared: None,
        is_suspended: false,
        others: &[],
        made_by: None,
        retry: Some(retry),
        pending_retry: pending,
        usual: None,
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

/// A retry that is not due yet.
pub(crate) fn pending_retry(texts: Texts) -> Job {
    Job {
        waiting: Some(Explanation {
            code: "retry_due".to_owned(),
            message: texts.text("retry at 14:03 (attempt 2 of 4)"),
            jobs: Vec::new(),
        }),
        retry_of: Some(id(5)),
        attempt: Some(2),
        attempts: Some(4),
        not_before: Some(now() + TimeDelta::seconds(10)),
        ..job(texts, 9, JobState::Scheduled)
    }
}

/// A due retry that waits for a runner.
pub(crate) fn due_retry(texts: Texts) -> Job {
    Job {
        id: id(10),
        waiting: Some(explanation(texts)),
        not_before: Some(ago(20)),
        ..pending_retry(texts)
    }
}

/// The ledger record of a job that was made because an artifact differs.
fn differs(texts: Texts) -> LedgerRecord {
    let hosts = texts.text("hosts");
    let clause = Clause {
        text: format!("scans.{hosts}.has_diff('hosts')"),
        value: Some(true.into()),
        ..Clause::default()
    };
    LedgerRecord {
        evaluation: Some(Evaluation {
            clause: Clause {
                text: "||".to_owned(),
                value: Some(true.into()),
                parts: vec![clause],
                ..Clause::default()
            },
            scans: std::collections::BTreeMap::new(),
        }),
        ..ledger(texts).swap_remove(0)
    }
}

pub(crate) fn workflow_page(texts: Texts, visit: &Visit, is_week: bool) -> Markup {
    let ended = [
        job_line(texts, 8, JobState::Failed),
        JobLine {
            retried_by: Some(id(8)),
            ..job_line(texts, 7, JobState::Failed)
        },
    ];
    let scan = texts.text("probe");
    let page = WorkflowPage {
        workflow: &workflow(texts),
        scans: &[
            scan_status(texts, Some(JobState::Failed)),
            scan_status(texts, None),
        ],
        revisions: &[revision(texts, 12), revision(texts, 10)],
        graph: drawing(),
        focus: is_week.then_some(scan.as_str()),
        lanes: Some(Lanes {
            chart: if is_week {
                html! {}
            } else {
                drawing()
            },
            is_week,
            cut: is_week.then_some(1_000),
        }),
        pasts: vec![ScanPast {
            bars: drawing(),
            usual: Some(TimeDelta::seconds(104)),
        }],
        feed: &[Past {
            scan: &scan,
            ledger: &ledger(texts),
            jobs: if is_week { &[] } else { &ended },
        }],
    };
    pages::workflow(visit, &page)
}

fn dispatch_page(texts: Texts, visit: &Visit, earlier: &Job) -> Markup {
    let key = format!("inputs.{}", texts.text("domain"));
    let page = Dispatch {
        scan: &scan_status(texts, None),
        earlier: Some((earlier.id, &earlier.inputs)),
        runners: Some(&page(vec![runner(texts, true)])),
        project: Some(&project(texts)),
        refused: &refused(texts, &[&key]),
    };
    pages::dispatch(visit, &page)
}

/// The form with runners that can or cannot take the job.
fn dispatch_waits(texts: Texts, visit: &Visit) -> Vec<(&'static str, Markup)> {
    let able = Runner {
        labels: vec![texts.text("gpu")],
        exclusive: true,
        ..runner(texts, true)
    };
    let busy = Runner {
        taken: 4,
        ..able.clone()
    };
    let away = Runner {
        connected: false,
        ..able.clone()
    };
    let complete = Project {
        missing_vars: Vec::new(),
        missing_secrets: Vec::new(),
        ..project(texts)
    };
    let scan = ScanStatus {
        suspended: None,
        ..scan_status(texts, None)
    };
    [
        ("dispatch-ready", vec![able.clone(); 5], &complete),
        ("dispatch-busy", vec![busy], &complete),
        ("dispatch-away", vec![away], &complete),
        ("dispatch-no-runner", Vec::new(), &complete),
        ("dispatch-missing", vec![able.clone()], &project(texts)),
    ]
    .map(|(name, runners, project)| {
        let dispatch = Dispatch {
            scan: &scan,
            earlier: None,
            runners: Some(&page(runners)),
            project: Some(project),
            refused: &Refused::default(),
        };
        (name, pages::dispatch(visit, &dispatch))
    })
    .to_vec()
}
