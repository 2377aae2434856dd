//! Waiting for a job and following it go on with the jobs that retry it.

use std::time::Duration;

use wire::{Job, JobReason, JobState, Page, Step, StepOutcome, StepStatus, Trigger};

use crate::everscan::run_at;
use crate::fixtures::{at, id, job, log};
use crate::server::{Reply, Server};

/// A chain of two jobs. The first has failed; the second ends as `end`.
fn chain(end: JobState) -> Server {
    Server::answering(move |line| {
        let is_first = line.contains(&id(1).to_string());
        if line.contains("/logs?") {
            return Reply::bytes(log(0, if is_first { &["one"] } else { &["two"] }));
        }
        let failed = Job {
            retried_by: Some(id(2)),
            ..job(JobState::Failed)
        };
        let retry = Job {
            id: id(2),
            retry_of: Some(id(1)),
            attempt: Some(2),
            attempts: Some(4),
            not_before: Some(at(10)),
            ..job(end)
        };
        Reply::json(&if is_first { failed } else { retry })
    })
}

fn expected(end: &str) -> String {
    format!(
        "job {first} failed: asked for\njob {second} retries it (attempt 2 of 4)\n{end}",
        first = id(1),
        second = id(2)
    )
}

#[test]
fn waiting_continues_with_the_retry_and_has_its_exit_code() {
    for (state, code) in [
        (JobState::Succeeded, 0),
        (JobState::Failed, 1),
        (JobState::Cancelled, 4),
    ] {
        let server = chain(state);
        let output = run_at(&server.url, &format!("job wait {}", id(1)));
        assert_eq!(output.code, code);
        assert_eq!(output.stdout, format!("{}\n", state.as_str()));
        let end = match state {
            JobState::Succeeded => String::new(),
            _ => format!("job {} {}: asked for\n", id(2), state.as_str()),
        };
        assert_eq!(output.stderr, expected(&end));
    }
}

#[test]
fn a_timeout_before_the_retry_names_the_failed_job_and_the_retry() {
    let server = Server::answering(move |line| {
        let failed = Job {
            retried_by: Some(id(2)),
            ..job(JobState::Failed)
        };
        let retry = Job {
            id: id(2),
            retry_of: Some(id(1)),
            not_before: Some(at(10)),
            ..job(JobState::Scheduled)
        };
        let is_first = line.contains(&id(1).to_string());
        let reply = Reply::json(&if is_first { failed } else { retry });
        if line.ends_with("?wait=true") {
            reply.held(Duration::from_secs(30))
        } else {
            reply
        }
    });
    let output = run_at(&server.url, &format!("job wait {} --timeout 5s", id(1)));
    assert_eq!((output.code, output.stdout.as_str()), (6, ""));
    assert_eq!(
        output.stderr,
        format!(
            "job {0} failed: asked for\njob {1} retries it at 2026-09-21T14:13:30Z\n\
             error: job {0} failed, and its retry {1}, due at 2026-09-21T14:13:30Z, is not over after 5s\n\
             hint: the job goes on; `everscan job wait {1}` waits again\n",
            id(1),
            id(2)
        )
    );
}

#[test]
fn waiting_shows_how_the_step_failed() {
    let step = |outcome, exit_code, error: Option<&str>| Step {
        index: 1,
        status: StepStatus::Failed,
        outcome: Some(outcome),
        exit_code,
        error: error.map(str::to_owned),
        ..job(JobState::Failed).steps.remove(0)
    };
    let allowed = step(StepOutcome::Succeeded, None, Some("timed out after 1 s"));
    for (exit_code, error, end) in [
        (
            None,
            Some("output `token` holds a secret"),
            "step 2 (build) failed: output `token` holds a secret",
        ),
        (Some(3), None, "step 2 (build) failed with exit code 3"),
        (None, None, "step 2 (build) failed"),
    ] {
        let failed = Job {
            reason: JobReason {
                code: "step_failed".to_owned(),
                message: "step 2 failed".to_owned(),
                actor: "runner box".to_owned(),
            },
            steps: vec![allowed.clone(), step(StepOutcome::Failed, exit_code, error)],
            ..job(JobState::Failed)
        };
        let server = Server::start([Reply::json(&failed)]);
        let output = run_at(&server.url, &format!("job wait {}", id(1)));
        assert_eq!(output.stderr, format!("job {} failed: {end}\n", id(1)));
    }
}

#[test]
fn waiting_shows_who_cancelled_the_job() {
    let cancelled = Job {
        reason: JobReason {
            code: "cancelled_by_user".to_owned(),
            message: "cancelled by a user".to_owned(),
            actor: "token ann".to_owned(),
        },
        ..job(JobState::Cancelled)
    };
    let server = Server::start([Reply::json(&cancelled)]);
    let output = run_at(&server.url, &format!("job wait {}", id(1)));
    assert_eq!((output.code, output.stdout.as_str()), (4, "cancelled\n"));
    let end = format!("job {} cancelled: by token ann\n", id(1));
    assert_eq!(output.stderr, end);
}

#[test]
fn following_continues_with_the_whole_log_of_the_retry() {
    let server = chain(JobState::Succeeded);
    let output = run_at(
        &server.url,
        &format!("job logs --follow --tail 1 {}", id(1)),
    );
    assert_eq!((output.code, output.stdout.as_str()), (0, "one\ntwo\n"));
    let end = format!("job {} succeeded: asked for\n", id(2));
    assert_eq!(output.stderr, expected(&end));
    let lines = server.lines();
    let log = |number, query: &str| format!("GET /v0/jobs/{}/logs?{query}", id(number));
    assert!(lines.contains(&log(1, "tail=1&follow=true")), "{lines:?}");
    assert!(lines.contains(&log(2, "from=0&follow=true")), "{lines:?}");
}

#[test]
fn a_retry_is_shown_with_its_place_in_the_chain() {
    let server = chain(JobState::Succeeded);
    let first = run_at(&server.url, &format!("job show {}", id(1))).stdout;
    assert!(
        first.contains(&format!("retried by:    {}\n", id(2))),
        "{first}"
    );
    let second = run_at(&server.url, &format!("job show {}", id(2))).stdout;
    assert!(
        second.contains(&format!("retry of:      {}\n", id(1))),
        "{second}"
    );
    assert!(second.contains("attempt:       2 of 4\n"), "{second}");
}

#[test]
fn the_jobs_of_a_scan_name_the_jobs_that_they_retry() {
    let retry = Job {
        id: id(2),
        retry_of: Some(id(1)),
        trigger: Trigger::Cron,
        ..job(JobState::Failed)
    };
    let page = Page::all(vec![retry]);
    let server = Server::answering(move |_| Reply::json(&page));
    let table = run_at(&server.url, "scan jobs nightly subdomains").stdout;
    assert!(table.contains("  cron, retry of 00000001  "), "{table}");
    let json = run_at(&server.url, "scan jobs nightly subdomains --output json").stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["items"][0]["trigger"], "cron");
}
