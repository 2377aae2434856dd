//! Secrets reach the steps that name them, and never leave the runner.

use std::collections::BTreeMap;
use std::path::Path;

use uuid::Uuid;
use wire::{Assignment, JobFailure, Stream};

use crate::harness::{FAILED, Harness, SUCCEEDED, artifact, ends, job};

const SECRET: &str = "correct horse: battery/staple";

fn with_secret(scripts: &[&str]) -> Assignment {
    let mut job = job(scripts);
    job.env
        .push(("KEY".to_owned(), "${{ secrets.KEY }}".to_owned()));
    job.secrets.insert("KEY".to_owned(), SECRET.to_owned());
    job
}

/// All reports to the daemon about a job, as text.
fn completion_text(harness: &Harness, job: &Assignment) -> String {
    let state = harness.daemon.state();
    format!(
        "{:?} {:?} {:?}",
        state.logs.get(&job.job_id),
        state.timelines,
        state.completions
    )
}

/// Every file below a folder.
fn contents(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            bytes.extend(contents(&entry.path()));
        } else {
            bytes.extend(std::fs::read(entry.path()).unwrap());
        }
    }
    bytes
}

#[tokio::test]
async fn a_secret_reaches_the_step_and_not_its_log() {
    let harness = Harness::start().await;
    let job = with_secret(&[
        "echo \"it is $KEY.\"; printf %s \"$KEY\" | base64; printf %s \"$KEY\" | od -An -tx1 | tr -d ' \\n'; echo",
        "printf 'split: correct ho'; sleep 0.05; printf 'rse: battery/staple\\n'; echo \"$KEY\" >&2",
        "printf %s \"$KEY\" | wc -c",
    ]);
    assert_eq!(ends(&harness.run(&job).await), [SUCCEEDED; 3]);
    let stdout = harness.stdout(&job);
    assert_eq!(stdout[..2], ["it is ***.", "***"]);
    assert_eq!(stdout[2..4], ["***", "split: ***"]);
    assert_eq!(stdout[4].trim(), SECRET.len().to_string());
    assert_eq!(harness.lines(&job, Stream::Stderr), ["***"]);
}

#[tokio::test]
async fn short_lines_of_a_secret_stay_readable_and_its_values_do_not() {
    let harness = Harness::start().await;
    let mut job = with_secret(&[
        "echo 'users: 3 online, all done'; echo \"$KEY\" | sed -n 's/.*token: //p'",
        "echo \"$KEY\"",
    ]);
    let value = "users:\n- name: ci\n  token: s3cr3t-tok3n-value\ndone";
    job.secrets.insert("KEY".to_owned(), value.to_owned());
    assert_eq!(ends(&harness.run(&job).await), [SUCCEEDED; 2]);
    assert_eq!(
        harness.stdout(&job),
        ["users: 3 online, all done", "***", "***"]
    );
}

#[tokio::test]
async fn the_token_of_the_job_is_masked_like_a_secret() {
    let harness = Harness::start().await;
    let mut job = job(&[
        "echo \"token: $SERVICE_TOKEN.\"; printf %s \"$SERVICE_TOKEN\" | base64; printf %s \"$SERVICE_TOKEN\" | wc -c",
    ]);
    job.job_token = Some("evj_of_this_job".to_owned());
    harness.run(&job).await;
    assert_eq!(harness.stdout(&job), ["token: ***.", "***", "15"]);
}

#[tokio::test]
async fn a_line_is_visible_while_the_step_runs_unless_it_may_begin_a_secret() {
    let harness = Harness::start().await;
    let job = with_secret(&["echo one; printf 'correct\\ncorr'; sleep 60"]);
    harness.daemon.offer(job.clone());
    harness.daemon.line(job.job_id, "correct").await;
    harness.daemon.cancel(job.job_id);
    harness.daemon.completion(job.job_id).await;
    assert_eq!(harness.stdout(&job), ["one", "correct", "corr"]);
}

#[tokio::test]
async fn no_spool_holds_a_secret() {
    let harness = Harness::start().await;
    let job = with_secret(&["echo \"$KEY\"; echo done; sleep 60"]);
    for _ in 0..3 {
        harness
            .daemon
            .fail_next("logs", crate::fake_daemon::Fault::Unavailable);
    }
    harness.daemon.offer(job.clone());
    harness.daemon.line(job.job_id, "done").await;
    let spool = contents(&runner::folder_of(harness.home.path(), "test").unwrap());
    let holds = |text: &str| {
        spool
            .windows(text.len())
            .any(|bytes| bytes == text.as_bytes())
    };
    assert!(holds("done") && !holds("horse"));
    harness.daemon.cancel(job.job_id);
    harness.daemon.completion(job.job_id).await;
}

#[tokio::test]
async fn errors_mask_secrets() {
    let harness = Harness::start().await;
    let mut broken = with_secret(&["${{ string(int(secrets.KEY)) }}"]);
    let end = harness.run(&broken).await;
    assert_eq!(ends(&end), [FAILED]);
    assert!(end.steps[0].error.is_some());

    broken = with_secret(&["true"]);
    broken.env = vec![(
        "N".to_owned(),
        "${{ string(timestamp(secrets.KEY)) }}".to_owned(),
    )];
    let end = harness.run(&broken).await;
    assert!(
        matches!(end.failure, Some(JobFailure::EnvFailed(_))),
        "{end:?}"
    );

    broken = with_secret(&["true"]);
    broken.artifacts = vec![artifact("out", &[SECRET])];
    let end = harness.run(&broken).await;
    assert!(
        matches!(end.failure, Some(JobFailure::ArtifactFailed(_))),
        "{end:?}"
    );
    let reported = completion_text(&harness, &broken);
    assert!(
        !reported.contains("horse") && reported.contains("***"),
        "{reported}"
    );

    let mut odd = with_secret(&["mkdir -p \"out/${KEY%/*}\"; ln -s nowhere \"out/$KEY\""]);
    odd.artifacts = vec![artifact("out", &["out"])];
    let end = harness.run(&odd).await;
    assert_eq!(end.left_out["out"].files[0].name, "out/***");
    let reported = completion_text(&harness, &odd);
    assert!(!reported.contains("horse"), "{reported}");
}

#[tokio::test]
async fn a_missing_value_is_named_with_a_hint() {
    let harness = Harness::start().await;
    let mut job = job(&["echo ${{ vars.URL }}", "echo ${{ secrets.KEY }}"]);
    job.steps[1].condition = Some("always".to_owned());
    job.missing = BTreeMap::from([
        (
            "vars.URL".to_owned(),
            "is not set in project main".to_owned(),
        ),
        ("secrets.KEY".to_owned(), "cannot be opened".to_owned()),
    ]);
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [FAILED, FAILED]);
    let lines = harness.lines(&job, Stream::Runner).join("\n");
    for sentence in [
        "vars.URL is not set in project main",
        "secrets.KEY cannot be opened",
    ] {
        assert!(lines.contains(sentence), "{lines}");
    }
    assert!(
        end.steps[0]
            .error
            .as_ref()
            .unwrap()
            .contains("vars.URL is not set")
    );

    // The error of `env` names the var once.
    job.job_id = Uuid::now_v7();
    job.env = vec![("A".to_owned(), "${{ vars.URL }}".to_owned())];
    let end = harness.run(&job).await;
    let message = "cannot evaluate env A: vars.URL is not set in project main";
    let failure = JobFailure::EnvFailed(message.to_owned());
    assert_eq!(end.failure, Some(failure));

    // A job without the name that its scan asks for does not start.
    job.job_id = Uuid::now_v7();
    job.missing = BTreeMap::from([("callback".to_owned(), "there is no server shop".to_owned())]);
    let end = harness.run(&job).await;
    let message = "SERVICE_CALLBACK_HOST has no value: there is no server shop";
    let failure = JobFailure::EnvFailed(message.to_owned());
    assert_eq!(end.failure, Some(failure));
}
