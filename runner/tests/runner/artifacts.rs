//! Which artifacts are uploaded, and what a failed upload means for the job.

use std::io::{Cursor, Read as _};

use wire::{ArtifactPhase, JobFailure, Stream, UploadOn};

use crate::fake_daemon::Fault;
use crate::harness::{FAILED, Harness, SKIPPED, SUCCEEDED, artifact, ends, job, step_if};

#[tokio::test]
async fn artifacts_hold_what_the_steps_left() {
    let harness = Harness::start().await;
    let mut job = job(&["mkdir -p out; echo content > out/file; echo other > b"]);
    job.artifacts = vec![
        artifact("one.zip", &["out"]),
        artifact("two", &["b", "out/file"]),
    ];
    job.artifacts.push(artifact("three", &["missing"]));
    job.artifacts[2].condition = Some("false".to_owned());
    harness.daemon.fail_next("one.zip", Fault::Unavailable);
    let end = harness.run(&job).await;
    assert_eq!(end.failure, None);
    let state = harness.daemon.state();
    assert_eq!(state.artifacts.len(), 2);
    let (digest, zip) = &state.artifacts[&(job.job_id, "one.zip".to_owned())];
    assert!(digest.starts_with("sha256:"));
    let mut archive = zip::ZipArchive::new(Cursor::new(zip.to_vec())).unwrap();
    let mut content = String::new();
    let mut file = archive.by_name("out/file").unwrap();
    file.read_to_string(&mut content).unwrap();
    assert_eq!(content, "content\n");
}

#[tokio::test]
async fn an_artifact_that_takes_long_is_reported() {
    let harness = Harness::start().await;
    let mut job = job(&["echo content > file"]);
    job.artifacts = vec![artifact("one.zip", &["file"])];
    harness.daemon.go_away("one.zip");
    harness.daemon.offer(job.clone());
    let reported = harness.daemon.wait_for("the upload", |state| {
        let mut timelines = state.timelines.iter();
        timelines.find_map(|(_, timeline)| {
            let artifact = timeline.artifact.clone()?;
            (artifact.phase == ArtifactPhase::Uploading).then_some(artifact)
        })
    });
    let reported = reported.await;
    assert_eq!(reported.name, "one.zip");
    assert!(0 < reported.bytes && reported.bytes == reported.of);
    harness.daemon.come_back();
    assert_eq!(harness.daemon.completion(job.job_id).await.failure, None);
}

#[tokio::test]
async fn the_artifact_of_a_skipped_step_is_not_uploaded_when_its_condition_is_the_same() {
    let harness = Harness::start().await;
    let mut job = job(&["echo a > a"]);
    let condition = "vars.GREETING == 'other'";
    job.steps.push(step_if(condition, "echo b > b"));
    job.artifacts = vec![artifact("first", &["a"]), artifact("skipped", &["b"])];
    job.artifacts[1].condition = Some(condition.to_owned());
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [SUCCEEDED, SKIPPED]);
    assert_eq!(end.failure, None);
    let state = harness.daemon.state();
    let names: Vec<_> = state.artifacts.keys().map(|(_, name)| name).collect();
    assert_eq!(names, ["first"]);
}

#[tokio::test]
async fn a_missing_path_fails_the_job_and_earlier_uploads_stay() {
    let harness = Harness::start().await;
    let mut job = job(&["echo a > a"]);
    job.artifacts = vec![
        artifact("one", &["a"]),
        artifact("two", &["b"]),
        artifact("three", &["a"]),
    ];
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [SUCCEEDED]);
    assert_eq!(
        end.failure,
        Some(JobFailure::ArtifactFailed(
            "artifact two: path \"b\" does not exist".to_owned()
        ))
    );
    let state = harness.daemon.state();
    let names: Vec<_> = state
        .artifacts
        .keys()
        .map(|(_, name)| name.as_str())
        .collect();
    assert_eq!(names, ["one"]);
}

#[tokio::test]
async fn a_failed_job_uploads_nothing() {
    let harness = Harness::start().await;
    let mut job = job(&["echo a > a; exit 1"]);
    job.artifacts = vec![artifact("one", &["a"])];
    let end = harness.run(&job).await;
    assert_eq!(end.failure, None);
    assert!(harness.daemon.state().artifacts.is_empty());
}

/// Leaves a finding and a broken link.
const FINDING: &str = "mkdir out; echo finding > out/findings.txt; ln -s nowhere out/latest";

#[tokio::test]
async fn a_broken_link_is_left_out_and_reported() {
    let harness = Harness::start().await;
    let mut job = job(&[FINDING]);
    job.artifacts = vec![
        artifact("folder", &["out"]),
        artifact("file", &["out/findings.txt"]),
    ];
    let end = harness.run(&job).await;
    assert_eq!((ends(&end), end.failure), (vec![SUCCEEDED], None));
    assert_eq!(uploaded(&harness, &job), ["file", "folder"]);
    let left_out: Vec<_> = end.left_out.into_iter().collect();
    let [(name, left_out)] = left_out.as_slice() else {
        panic!("{left_out:?}");
    };
    assert_eq!((name.as_str(), left_out.more), ("folder", 0));
    let [file] = left_out.files.as_slice() else {
        panic!("{left_out:?}");
    };
    assert_eq!(
        (file.name.as_str(), file.reason.as_str()),
        ("out/latest", "is a link to nothing")
    );
    assert_eq!(
        harness.lines(&job, Stream::Runner),
        ["artifact folder: left out: \"out/latest\" is a link to nothing"]
    );
}

#[tokio::test]
async fn a_broken_link_fails_a_strict_artifact() {
    let harness = Harness::start().await;
    let mut job = job(&[FINDING]);
    job.artifacts = vec![wire::ScanArtifact {
        strict: true,
        ..artifact("folder", &["out"])
    }];
    let message = "artifact folder: \"out/latest\" is a link to nothing";
    assert_eq!(
        harness.run(&job).await.failure,
        Some(JobFailure::ArtifactFailed(message.to_owned()))
    );
}

#[tokio::test]
async fn escaped_processes_end_before_artifacts_are_packed() {
    let harness = Harness::start().await;
    let mut job = job(&[
        "mkdir out; setsid sh -c 'trap \"echo ended > out/ended; exit\" TERM; : > up; while :; do sleep 0.01; done' \
         > /dev/null 2>&1 & until [ -e up ]; do sleep 0.01; done",
    ]);
    job.artifacts = vec![artifact("one", &["out/ended"])];
    assert_eq!(harness.run(&job).await.failure, None);
    assert_eq!(uploaded(&harness, &job), ["one"]);
}

/// One artifact of the same file for each word.
fn artifacts_of_each_word() -> Vec<wire::ScanArtifact> {
    let words = [
        ("success", UploadOn::Success),
        ("failure", UploadOn::Failure),
        ("always", UploadOn::Always),
    ];
    let artifact = |(name, upload_on)| wire::ScanArtifact {
        upload_on,
        ..artifact(name, &["a"])
    };
    words.map(artifact).into()
}

fn uploaded(harness: &Harness, job: &wire::Assignment) -> Vec<String> {
    let state = harness.daemon.state();
    let of_job = state.artifacts.keys().filter(|(id, _)| *id == job.job_id);
    of_job.map(|(_, name)| name.clone()).collect()
}

#[tokio::test]
async fn upload_on_decides_after_which_end_an_artifact_is_uploaded() {
    let harness = Harness::start().await;
    for (script, expected) in [
        ("echo a > a", ["always", "success"]),
        ("echo a > a; exit 1", ["always", "failure"]),
    ] {
        let mut job = job(&[script]);
        job.artifacts = artifacts_of_each_word();
        assert_eq!(harness.run(&job).await.failure, None);
        assert_eq!(uploaded(&harness, &job), expected);
    }
}

#[tokio::test]
async fn after_a_failure_a_failed_upload_is_a_line_in_the_log() {
    let harness = Harness::start().await;
    let mut job = job(&["echo a > a; exit 1"]);
    let always = |name, path| wire::ScanArtifact {
        upload_on: UploadOn::Always,
        ..artifact(name, &[path])
    };
    job.artifacts = vec![
        always("missing", "b"),
        always("unwanted", "a"),
        always("there", "a"),
    ];
    job.artifacts[1].condition = Some("ok".to_owned());
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [FAILED]);
    assert_eq!(end.failure, None);
    assert_eq!(uploaded(&harness, &job), ["there"]);
    let lines = harness.lines(&job, Stream::Runner);
    assert_eq!(lines, ["artifact missing: path \"b\" does not exist"]);
}

#[tokio::test]
async fn nothing_is_uploaded_after_a_cancel() {
    let harness = Harness::start().await;
    let mut job = job(&["echo a > a; echo up; sleep 100"]);
    job.artifacts = artifacts_of_each_word();
    harness.daemon.offer(job.clone());
    harness
        .daemon
        .wait_for("the script", |state| state.logs.get(&job.job_id).map(drop))
        .await;
    harness.daemon.cancel(job.job_id);
    harness.daemon.completion(job.job_id).await;
    assert!(uploaded(&harness, &job).is_empty());
}
