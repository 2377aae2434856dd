//! A scan's timeout: the steps end, others clean up, and what is wanted after a failure is uploaded.

use std::path::Path;
use std::time::Duration;

use runner::Options;
use wire::{Assignment, CompleteJob, JobFailure, Stream, UploadOn};

use crate::harness::{
    CANCELLED, FAILED, Harness, OPTIONS, PATIENCE, SUCCEEDED, artifact, ends, job, step_if,
};

const PASSED: &str = "the scan's timeout has passed";

/// Longer than a busy machine needs to start a script and upload a file.
const TIMEOUT: Duration = Duration::from_secs(4);

/// The job has one artifact for each `upload_on`, all of the file `a`.
fn hanging(scripts: &[&str]) -> Assignment {
    let words = [
        ("success", UploadOn::Success),
        ("failure", UploadOn::Failure),
        ("always", UploadOn::Always),
    ];
    let artifacts = words.map(|(name, upload_on)| wire::ScanArtifact {
        upload_on,
        ..artifact(name, &["a"])
    });
    let job = job(scripts);
    Assignment {
        deadline: Some(job.now + TIMEOUT),
        artifacts: artifacts.into(),
        ..job
    }
}

fn uploaded(harness: &Harness) -> Vec<String> {
    let state = harness.daemon.state();
    let names = state.artifacts.keys();
    names.map(|(_, name)| name.clone()).collect()
}

fn has_timed_out(end: &CompleteJob) {
    assert_eq!(end.failure, Some(JobFailure::TimedOut));
}

#[tokio::test]
async fn after_a_timeout_steps_clean_up_and_artifacts_are_uploaded() {
    let harness = Harness::start().await;
    let mut job = hanging(&["echo a > a; sleep 100", "echo never"]);
    job.steps.push(step_if("always", "echo b >> a; exit 1"));
    let end = harness.run(&job).await;
    has_timed_out(&end);
    assert_eq!(ends(&end), [CANCELLED, CANCELLED, FAILED]);
    assert_eq!(uploaded(&harness), ["always", "failure"]);
    assert_eq!(harness.lines(&job, Stream::Runner), [PASSED]);
    harness.idle().await;
    assert!(harness.leftovers().is_empty());
}

#[tokio::test]
async fn escaped_processes_end_before_a_retry_may_begin() {
    let harness = Harness::start().await;
    let script = "setsid sh -c 'trap : TERM; while :; do sleep 0.01; done' > /dev/null 2>&1 & echo $!; sleep 100";
    let job = Assignment {
        artifacts: Vec::new(),
        ..hanging(&[script])
    };
    has_timed_out(&harness.run(&job).await);
    let lines = harness.lines(&job, Stream::Stdout);
    // The file is empty for a zombie.
    let command = Path::new("/proc").join(&lines[0]).join("cmdline");
    assert!(std::fs::read(command).unwrap_or_default().is_empty());
}

#[tokio::test]
async fn a_hanging_upload_is_abandoned_and_the_job_is_completed() {
    let hasty = Options {
        timeout_uploads: Duration::from_millis(400),
        ..OPTIONS
    };
    let harness = Harness::start_with(hasty, 1).await;
    let job = hanging(&["echo a > a; sleep 100"]);
    harness.daemon.go_away("failure");
    has_timed_out(&harness.run(&job).await);
    let lines = harness.lines(&job, Stream::Runner);
    let missing = |name| format!("artifact {name}: {PASSED}");
    assert_eq!(lines, [PASSED, &missing("failure"), &missing("always")]);
    assert!(uploaded(&harness).is_empty());
}

#[tokio::test]
async fn a_slow_upload_times_the_job_out_unless_a_step_failed() {
    let harness = Harness::start().await;
    // After the timeout, the daemon accepts only artifacts for failures.
    for (script, step, failure) in [
        ("echo a > a", SUCCEEDED, Some(JobFailure::TimedOut)),
        ("echo a > a; exit 1", FAILED, None),
    ] {
        let mut job = hanging(&[script]);
        job.artifacts.rotate_right(1);
        let stuck = if step == FAILED { "failure" } else { "success" };
        harness.daemon.go_away(stuck);
        harness.daemon.offer(job.clone());
        let passed = harness.daemon.line(job.job_id, PASSED);
        tokio::time::timeout(PATIENCE, passed).await.unwrap();
        harness.daemon.come_back();
        let end = harness.daemon.completion(job.job_id).await;
        assert_eq!((end.failure.clone(), ends(&end)), (failure, vec![step]));
        let state = harness.daemon.state();
        let names = state.artifacts.keys().filter(|(id, _)| *id == job.job_id);
        let names: Vec<_> = names.map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["always", "failure"]);
    }
    let state = harness.daemon.state();
    let uploads = state.requests.iter();
    let uploads = uploads.filter(|request| request.ends_with(" always"));
    assert_eq!(uploads.count(), 2, "once for each job");
}

#[tokio::test]
async fn a_cancel_ends_the_uploads_after_a_timeout() {
    let harness = Harness::start().await;
    let job = hanging(&["echo a > a; sleep 100"]);
    harness.daemon.go_away("failure");
    harness.daemon.offer(job.clone());
    harness
        .daemon
        .wait_for("an upload", |state| {
            let mut requests = state.requests.iter();
            requests
                .find(|request| request.ends_with(" failure"))
                .map(drop)
        })
        .await;
    harness.daemon.cancel(job.job_id);
    has_timed_out(&harness.daemon.completion(job.job_id).await);
    assert!(uploaded(&harness).is_empty());
}
