//! Which artifacts are uploaded, and what a failed upload means for the job.

use std::io::{Cursor, Read as _};

use wire::JobFailure;

use crate::fake_daemon::Fault;
use crate::harness::{Harness, SKIPPED, SUCCEEDED, artifact, ends, job, step_if};

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
