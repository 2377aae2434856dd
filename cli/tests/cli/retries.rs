//! Waiting for a job and following it go on with the jobs that retry it.

use wire::{Job, JobReason, JobState};

use crate::everscan::run_at;
use crate::fixtures::{at, id, job, log};
use crate::server::{Reply, Server};

/// A chain of two jobs, of which the first has failed. The second ends as `end`.
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

fn said(end: &str) -> String {
    format!(
        "job {first} failed: asked for\njob {second} retries it (attempt 2 of 4)\n{end}",
        first = id(1),
        second = id(2)
    )
}

#[test]
fn waiting_goes_on_with_the_retry_and_ends_as_it_ended() {
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
        assert_eq!(output.stderr, said(&end));
    }
}

#[test]
fn waiting_says_who_cancelled_the_job() {
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
    let end = format!("job {} cancelled: cancelled by a user (token ann)\n", id(1));
    assert_eq!(output.stderr, end);
}

#[test]
fn following_goes_on_with_the_log_of_the_retry_from_its_beginning() {
    let server = chain(JobState::Succeeded);
    let output = run_at(
        &server.url,
        &format!("job logs --follow --tail 1 {}", id(1)),
    );
    assert_eq!((output.code, output.stdout.as_str()), (0, "one\ntwo\n"));
    let end = format!("job {} succeeded: asked for\n", id(2));
    assert_eq!(output.stderr, said(&end));
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
