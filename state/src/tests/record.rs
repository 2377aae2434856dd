//! Tests the form of records on disk. A change here changes the format, and old records must stay readable.
//! `UPDATE_RECORDS=1` writes the expected texts again, for a format that was not released.

use std::path::Path;

use super::fixture::{Folder, completion, line};
use crate::envelope::{self, Stamp};
use crate::layout::Layout;

/// Compares a file of the state with the expected text `name`.
fn assert_written(folder: &Folder, key: store::Key, name: &str) {
    let found = std::fs::read_to_string(folder.path(&key)).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/tests/record")
        .join(name);
    if std::env::var_os("UPDATE_RECORDS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(&path).unwrap(), "{name}");
}

fn stamp(folder: &Folder, key: &store::Key) -> Stamp {
    let bytes = std::fs::read(folder.path(key)).unwrap();
    envelope::read(&bytes).unwrap().stamp
}

#[tokio::test]
async fn the_form_of_job_records_is_unchanged() {
    let (folder, opened, fleet) = Folder::prepared().await;
    opened.announce_job_tokens(fleet).await;
    let job = opened.running_job(fleet, "build").await;
    folder.advance(1_500);
    opened.append(job, 0, vec![line("hello")]).await;
    opened.store_artifact(job, "report", "zip").await;
    opened.state.complete(completion(job, 1)).await.unwrap();
    opened.close();
    let scan = fleet.scan("build");
    for (key, name) in [
        (Layout::job(job), "job.json"),
        (Layout::log(job), "log.jsonl"),
        (Layout::head(&scan), "head.json"),
        (Layout::digests(&scan), "digests.json"),
        (Layout::history(&scan, 0), "history.jsonl"),
    ] {
        assert_written(&folder, key, name);
    }
}

#[tokio::test]
async fn the_form_of_project_values_is_unchanged() {
    let (folder, opened, _) = Folder::prepared().await;
    let project = opened.set_values().await;
    opened.close();
    assert_written(&folder, Layout::vars(project), "vars.json");
    assert_written(&folder, Layout::secrets(project), "secrets.json");
}

#[tokio::test]
async fn a_record_counts_its_commits_across_starts_and_names_the_last_commit() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let job = opened.running_job(fleet, "build").await;
    opened.state.settled().await.unwrap();
    let running = stamp(&folder, &Layout::job(job));
    assert_eq!(
        running.revision, 2,
        "not one commit each for dispatch and claim"
    );
    let head = stamp(&folder, &Layout::head(&fleet.scan("build")));
    assert_eq!(
        head.sequence, running.sequence,
        "job and head were written by different commits"
    );
    opened.close();
    let opened = folder.open().await;
    opened.complete(job).await;
    opened.close();
    let finished = stamp(&folder, &Layout::job(job));
    assert_eq!(finished.revision, 3);
    assert!(finished.sequence > running.sequence);
}
