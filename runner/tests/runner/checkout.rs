//! Files of the repository before the first step: from the daemon, from the cache, and not at all.

use bytes::Bytes;
use wire::{Assignment, Checkout, JobFailure, Stream};

use crate::fake_daemon::Fault;
use crate::harness::{CANCELLED, Harness, SKIPPED, SUCCEEDED, ends, job};

fn tar() -> Bytes {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, mode, content) in [
        ("run.sh", 0o755, "#!/bin/sh\necho ran\n"),
        ("text", 0o644, "content\n"),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_mode(mode);
        header.set_size(content.len() as u64);
        builder
            .append_data(&mut header, path, content.as_bytes())
            .unwrap();
    }
    builder.into_inner().unwrap().into()
}

/// A job with the files of commit `number`.
fn with_files(number: u32, scripts: &[&str]) -> Assignment {
    Assignment {
        checkout: Some(Checkout {
            commit: format!("{number:040}"),
            reference: "main".to_owned(),
            paths: Vec::new(),
        }),
        ..job(scripts)
    }
}

async fn harness() -> Harness {
    let harness = Harness::start().await;
    harness.daemon.state().tar = tar();
    harness
}

fn downloads(harness: &Harness) -> usize {
    let state = harness.daemon.state();
    let sources = state
        .requests
        .iter()
        .filter(|request| *request == "GET source");
    sources.count()
}

#[tokio::test]
async fn files_are_there_before_the_first_step_and_are_downloaded_once() {
    let harness = harness().await;
    let first = with_files(1, &["source/run.sh; echo changed >> source/text"]);
    let end = harness.run(&first).await;
    assert_eq!((ends(&end), end.failure), (vec![SUCCEEDED], None));
    assert_eq!(harness.stdout(&first), ["ran"]);
    let hello = harness.daemon.state().hellos[0].clone();
    assert_eq!(hello.capabilities, ["callback", "checkout", "job_token"]);
    let commit = format!("{:040}", 1);
    assert_eq!(
        harness.lines(&first, Stream::Runner),
        [format!("2 files of commit {commit} (main) in source")]
    );
    // Changes of a job do not reach other jobs.
    let second = with_files(1, &["cat \"$SERVICE_SOURCE_DIR/text\""]);
    harness.run(&second).await;
    assert_eq!(harness.stdout(&second), ["content"]);
    assert_eq!(downloads(&harness), 1);
    harness.run(&with_files(2, &["true"])).await;
    assert_eq!(downloads(&harness), 2);
    harness.idle().await;
    assert_eq!(harness.leftovers(), [] as [String; 0]);
}

/// Whatever a job does to the cache, the next job gets the files that the daemon sent.
#[tokio::test]
async fn changes_of_a_job_in_the_cache_do_not_reach_other_jobs() {
    let harness = harness().await;
    harness.run(&with_files(1, &["true"])).await;
    let tar = harness.cached_files();
    let honest = std::fs::read(&tar).unwrap();
    for (number, (from, to)) in [("content", "changed"), ("run.sh", "../run")]
        .into_iter()
        .enumerate()
    {
        let mut windows = honest.windows(from.len());
        let at = windows.position(|it| it == from.as_bytes()).unwrap();
        let mut changed = honest.clone();
        changed[at..at + to.len()].copy_from_slice(to.as_bytes());
        std::fs::write(&tar, &changed).unwrap();
        let job = with_files(1, &["cat source/text"]);
        let end = harness.run(&job).await;
        assert_eq!((ends(&end), end.failure), (vec![SUCCEEDED], None));
        assert_eq!(harness.stdout(&job), ["content"]);
        assert_eq!(downloads(&harness), number + 2);
        assert_eq!(std::fs::read(&tar).unwrap(), honest);
    }
}

#[tokio::test]
async fn a_checkout_is_retried_while_the_daemon_is_unreachable() {
    let harness = harness().await;
    for fault in [Fault::Unavailable, Fault::CutAfter, Fault::CutBefore] {
        harness.daemon.fail_next("source", fault);
    }
    let job = with_files(1, &["source/run.sh"]);
    let end = harness.run(&job).await;
    assert_eq!((ends(&end), end.failure), (vec![SUCCEEDED], None));
    assert_eq!(downloads(&harness), 4);
}

#[tokio::test]
async fn a_failed_checkout_fails_the_job_and_is_not_cached() {
    let harness = harness().await;
    for (fault, text) in [
        (Fault::CheckoutFailed, "the fake daemon refuses"),
        (Fault::Half, "a part of the files"),
    ] {
        harness.daemon.fail_next("source", fault);
        let job = with_files(1, &["true"]);
        let end = harness.run(&job).await;
        assert_eq!(ends(&end), [SKIPPED]);
        let Some(JobFailure::CheckoutFailed(message)) = end.failure else {
            panic!("{:?}", end.failure)
        };
        assert!(message.contains(text), "{message}");
        assert_eq!(harness.lines(&job, Stream::Runner), [message]);
    }
    let end = harness.run(&with_files(1, &["source/run.sh"])).await;
    assert_eq!(ends(&end), [SUCCEEDED]);
}

#[tokio::test]
async fn a_job_is_cancelled_while_it_waits_for_its_files() {
    let harness = harness().await;
    harness.daemon.go_away("source");
    let job = with_files(1, &["true"]);
    harness.daemon.offer(job.clone());
    let asked = |state: &crate::fake_daemon::State| {
        let mut requests = state.requests.iter();
        requests.find(|request| *request == "GET source").map(drop)
    };
    harness.daemon.wait_for("a request for files", asked).await;
    harness.daemon.cancel(job.job_id);
    let end = harness.daemon.completion(job.job_id).await;
    assert_eq!((ends(&end), end.failure), (vec![CANCELLED], None));
}
