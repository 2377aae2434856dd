//! A log arrives complete and in order, whatever happens to the connection.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use runner::Options;
use wire::{JobFailure, Stream};

use crate::fake_daemon::{Fault, State};
use crate::harness::{CANCELLED, Harness, OPTIONS, PATIENCE, SUCCEEDED, ends, job};

const COUNT: &str = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.05; done";

fn counted() -> Vec<String> {
    (1..=8).map(|number| number.to_string()).collect()
}

#[tokio::test]
async fn cut_connections_neither_lose_nor_duplicate_records() {
    let harness = Harness::start().await;
    let job = job(&[COUNT]);
    for fault in [
        Fault::CutAfter,
        Fault::CutBefore,
        Fault::Unavailable,
        Fault::Busy,
        Fault::CutAfter,
    ] {
        harness.daemon.fail_next("logs", fault);
    }
    harness.daemon.fail_next("complete", Fault::CutBefore);
    harness.daemon.fail_next("resolve", Fault::CutAfter);
    harness.daemon.fail_next("messages", Fault::Unavailable);
    assert_eq!(ends(&harness.run(&job).await), [SUCCEEDED]);
    assert_eq!(harness.stdout(&job), counted());
}

#[tokio::test]
async fn records_the_daemon_has_lost_are_sent_again() {
    let harness = Harness::start().await;
    let job = job(&[COUNT]);
    harness.daemon.offer(job.clone());
    harness.daemon.line(job.job_id, "3").await;
    harness.daemon.fail_next("logs", Fault::LoseLogFrom(1));
    harness.daemon.fail_next("complete", Fault::LoseLogFrom(2));
    let end = harness.daemon.completion(job.job_id).await;
    assert_eq!(end.log_records, 8);
    assert_eq!(harness.stdout(&job), counted());
}

#[tokio::test]
async fn a_damaged_record_fails_the_job_with_a_reason() {
    let options = Options {
        ship_after: PATIENCE,
        ..OPTIONS
    };
    let harness = Harness::start_with(options, 1).await;
    // The log is sent when it is complete, or when a batch is full.
    let job = job(&[
        "echo one; echo two; until [ -e ../damaged ]; do sleep 0.02; done; seq 1 100000; sleep 60",
    ]);
    harness.daemon.offer(job.clone());
    let path = harness.spool_file(&job);
    let place = loop {
        let spool = std::fs::read_to_string(&path).unwrap_or_default();
        match spool.find("two") {
            Some(place) => break place as u64,
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    let spool = OpenOptions::new().write(true).open(&path).unwrap();
    spool.write_all_at(&[0xff], place).unwrap();
    std::fs::write(harness.work().join("damaged"), "").unwrap();
    let end = harness.daemon.completion(job.job_id).await;
    assert_eq!(ends(&end), [CANCELLED]);
    let Some(JobFailure::SetupFailed(reason)) = end.failure else {
        panic!("{end:?}");
    };
    assert!(
        reason.starts_with("the daemon refuses the log: "),
        "{reason}"
    );
}

#[tokio::test]
async fn any_bytes_become_text() {
    let harness = Harness::start().await;
    let job = job(&[r"printf 'a\0b\377c\r\n'; head -c 100000 /dev/zero | tr '\0' x"]);
    harness.run(&job).await;
    let stdout = harness.stdout(&job);
    assert_eq!(stdout[0], "a\0b\u{fffd}c");
    assert_eq!(stdout[1..].concat(), "x".repeat(100_000));
    assert_eq!(stdout.len(), 3);
}

#[tokio::test]
async fn steps_are_reported_while_they_run() {
    let harness = Harness::start().await;
    let job = job(&["true", "sleep 60"]);
    harness.daemon.fail_next("timeline", Fault::CutBefore);
    harness.daemon.offer(job.clone());
    let reported = harness.daemon.wait_for("the second step's start", |state| {
        let (_, newest) = state.timelines.last()?;
        (newest.steps.len() == 2).then(|| newest.steps.clone())
    });
    let steps = reported.await;
    assert_eq!(steps[0].status, wire::StepStatus::Succeeded);
    assert_eq!(steps[1].status, wire::StepStatus::Running);
    assert_eq!(steps[1].outcome, None);
    harness.daemon.cancel(job.job_id);
    harness.daemon.completion(job.job_id).await;
}

#[tokio::test]
async fn a_job_that_the_daemon_has_ended_is_stopped_and_not_completed() {
    let harness = Harness::start().await;
    let job = job(&["echo up; sleep 60"]);
    harness.daemon.fail_next("logs", Fault::JobOver);
    harness.daemon.offer(job.clone());
    let held = |state: &State| {
        let is_held = |poll: &wire::Poll| poll.holding.contains(&job.job_id);
        state.polls.iter().any(is_held).then_some(())
    };
    harness.daemon.wait_for("the job in hand", held).await;
    harness.idle().await;
    assert!(harness.daemon.state().completions.is_empty());
    assert!(harness.leftovers().is_empty());
}

#[tokio::test]
async fn a_cancelled_job_that_keeps_printing_frees_its_slot_when_the_daemon_closes_it() {
    let harness = Harness::start_with(OPTIONS, 1).await;
    let job = job(&["trap '' TERM; yes"]);
    harness.daemon.offer(job.clone());
    harness.daemon.line(job.job_id, "y").await;
    harness.daemon.cancel(job.job_id);
    harness.daemon.close(job.job_id);
    let before = count(&harness.daemon.state(), "PATCH logs");
    harness.idle().await;
    assert!(harness.leftovers().is_empty());
    // One request may have been in flight. The next one gets the answer that the job is closed.
    let after = count(&harness.daemon.state(), "PATCH logs");
    assert!(after <= before + 2, "{after} requests after {before}");
}

fn count(state: &State, request: &str) -> usize {
    let requests = state.requests.iter();
    requests.filter(|one| *one == request).count()
}

#[tokio::test]
async fn the_unsent_log_of_a_cancelled_job_is_cut_with_a_line() {
    let options = Options {
        final_log: Duration::ZERO,
        final_report: PATIENCE,
        ..OPTIONS
    };
    let harness = Harness::start_with(options, 1).await;
    let job = job(&["seq 1 100000; touch printed; sleep 60"]);
    // When the log is cut the daemon has the first lines, but the runner does not know that.
    harness.daemon.fail_next("logs", Fault::CutAfter);
    harness.daemon.go_away("logs");
    harness.daemon.offer(job.clone());
    harness.daemon.line(job.job_id, "1").await;
    let printed = harness.work().join(job.job_id.to_string()).join("printed");
    while !printed.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    harness.daemon.cancel(job.job_id);
    harness.logged("cut the end of a log").await;
    harness.daemon.come_back();
    let end = harness.daemon.completion(job.job_id).await;
    assert_eq!(ends(&end), [CANCELLED]);
    let stdout = harness.stdout(&job);
    assert_eq!(end.log_records, stdout.len() as u64 + 1);
    let shipped = 1..=stdout.len();
    assert!(stdout == shipped.map(|number| number.to_string()).collect::<Vec<_>>());
    // A log that was cut ends with the runner's own line.
    let cut = 100_000 - stdout.len() + 1;
    assert_eq!(
        harness.lines(&job, Stream::Runner),
        [format!(
            "the end of this log is cut ({cut} lines): the job was cancelled, and what was not sent 0 s after its processes \
             had ended is dropped"
        )]
    );
}

#[tokio::test]
async fn a_cancelled_job_drops_a_log_that_the_daemon_does_not_accept() {
    let options = Options {
        final_log: Duration::ZERO,
        final_report: Duration::ZERO,
        ..OPTIONS
    };
    let harness = Harness::start_with(options, 1).await;
    let job = job(&["sleep 60"]);
    harness.daemon.go_away("logs");
    harness.daemon.fail_next("complete", Fault::Unavailable);
    harness.daemon.offer(job.clone());
    let started = |state: &State| state.timelines.first().map(drop);
    harness.daemon.wait_for("the step's start", started).await;
    harness.daemon.cancel(job.job_id);
    let end = harness.daemon.completion(job.job_id).await;
    assert_eq!(ends(&end), [CANCELLED]);
    assert_eq!(end.log_records, 0);
    harness.idle().await;
    let log = harness.log();
    assert_eq!(log.matches("the end of a log is lost").count(), 1, "{log}");
}

#[tokio::test]
async fn a_job_with_retries_stops_when_contact_is_lost() {
    let options = Options {
        silence: Duration::from_millis(600),
        ..OPTIONS
    };
    let harness = Harness::start_with(options, 1).await;
    let mut job = job(&["sleep 60"]);
    job.retries = true;
    // The fake daemon holds polls forever, so the runner hears nothing while a step runs without output.
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [CANCELLED]);
    let reason = "the daemon did not answer for 100 seconds".to_owned();
    assert_eq!(end.failure, Some(JobFailure::RunnerStopped(reason)));
}
