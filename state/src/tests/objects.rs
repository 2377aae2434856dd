//! Tests objects, which are too large for a commit: they appear together with their commit or not at all.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::decide::{Dispatch, EndJob, Loss, Refusal};
use model::{IdempotencyKey, Inputs, JobId, StepOutcome, StepStatus, TokenId};
use store::{Key, Staged};
use workflow::InputValue;

use super::fixture::{Fleet, Folder, WORKFLOW, artifact, large_inputs};
use crate::layout::Layout;
use crate::{PayloadError, ReadError, State, SubmitError};

/// The scan `announce` starts by itself. Its defaults together are too large for a job record.
fn with_large_defaults(value: &str) -> String {
    format!(
        "\
scans:
  build:
    on: {{dispatch: {{}}}}
    steps: [{{run: make}}]
  announce:
    on:
      expr: scans.build.is_available()
      dispatch:
        inputs:
          one: {{type: string, default: {value}}}
          two: {{type: string, default: {value}}}
    steps: [{{run: announce}}]
"
    )
}

fn note(text: String) -> BTreeMap<String, InputValue> {
    BTreeMap::from([("note".to_owned(), InputValue::Text(text))])
}

async fn received(state: &State, zip: &'static str) -> Staged {
    let upload = state.begin_upload().await.unwrap();
    let upload = upload.write(Bytes::from_static(zip.as_bytes())).await;
    upload.unwrap().finish().await.unwrap()
}

/// The number of objects in `tmp/`, and the paths of objects in their places.
fn objects(folder: &Folder) -> (usize, Vec<String>) {
    let (waiting, placed): (Vec<_>, Vec<_>) = folder
        .files()
        .into_iter()
        .filter(|path| path.contains("object") || path.ends_with(".zip"))
        .partition(|path| path.starts_with("tmp/"));
    (waiting.len(), placed)
}

fn exists(folder: &Folder, key: &Key) -> bool {
    folder.path(key).exists()
}

#[tokio::test]
async fn an_artifact_is_moved_to_its_place_only_if_its_job_names_it() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let job = opened.running_job(fleet, "build").await;
    let first = received(&opened.state, "one").await;
    assert_eq!((objects(&folder).0, objects(&folder).1.len()), (1, 0));
    let store = artifact(job, "report", &first);
    let stored = opened.state.store_artifact(store, first).await.unwrap();

    // A repeat gets the same answer, and different bytes are refused. Neither leaves a file.
    let again = received(&opened.state, "one").await;
    let store = artifact(job, "report", &again);
    assert_eq!(
        opened.state.store_artifact(store, again).await.unwrap(),
        stored
    );
    let other = received(&opened.state, "two").await;
    let store = artifact(job, "report", &other);
    let refused = opened.state.store_artifact(store, other).await;
    assert!(matches!(
        refused,
        Err(SubmitError::Refused(Refusal::ArtifactMismatch { .. }))
    ));
    let unknown = received(&opened.state, "two").await;
    let store = artifact(job, "unknown", &unknown);
    opened
        .state
        .store_artifact(store, unknown)
        .await
        .unwrap_err();
    opened.state.settled().await.unwrap();
    let place = Layout::artifact(job, "report").to_string();
    assert_eq!(objects(&folder), (0, vec![place]));
    let found = opened.state.open_artifact(job, "report").await.unwrap();
    assert_eq!(found.unwrap().read(0, 3).await.unwrap().1, "one");
}

#[tokio::test]
async fn after_a_crash_an_artifact_exists_whole_with_its_record_or_not_at_all() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let job = opened.running_job(fleet, "build").await;
    let unrecorded = received(&opened.state, "two").await;
    opened.store_artifact(job, "report", "one").await;
    // Wait first, because a copy of files that move meanwhile is not like a crash.
    opened.state.settled().await.unwrap();
    let mut crashed = folder.crashed();
    drop(unrecorded);
    let opened = crashed.open().await;
    let found = opened.state.open_artifact(job, "report").await.unwrap();
    assert_eq!(found.unwrap().read(0, 3).await.unwrap().1, "one");
    assert_eq!(objects(&crashed).0, 0);
}

#[tokio::test]
async fn large_inputs_are_a_file_of_their_job() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let caller = TokenId::from_uuid(uuid::Uuid::from_u128(7));
    let dispatch = Dispatch {
        inputs: large_inputs(),
        idempotency: Some(IdempotencyKey::new(caller.uuid(), "dispatch", "key", b"a")),
        ..opened.dispatch(fleet, "build")
    };
    let first = opened.state.dispatch(dispatch.clone()).await.unwrap();
    let repeated = opened.state.dispatch(dispatch.clone()).await.unwrap();
    assert_eq!(repeated, first);
    let other = Dispatch {
        idempotency: None,
        ..dispatch
    };
    let second = opened.state.dispatch(other.clone()).await.unwrap();
    let nowhere = Dispatch {
        scan: super::fixture::scan_name("nowhere"),
        ..other
    };
    let refused = opened.state.dispatch(nowhere).await;
    assert!(matches!(
        refused,
        Err(PayloadError::Submit(SubmitError::Refused(_)))
    ));
    let inputs = |state: State, job: JobId| async move {
        let job = state.job(job).await.unwrap().unwrap();
        assert!(matches!(job.inputs, Inputs::Object { .. }));
        state.inputs(&job).await
    };
    for job in [first, second] {
        let found = inputs(opened.state.clone(), job).await.unwrap();
        assert_eq!(found, note("x".repeat(100_000)));
    }
    opened.close();
    let places = [first, second].map(|job| Layout::inputs(job).to_string());
    let (waiting, mut placed) = objects(&folder);
    placed.sort_by_key(|path| *path != places[0]);
    assert_eq!((waiting, placed), (0, places.to_vec()));

    let opened = folder.open().await;
    inputs(opened.state.clone(), first).await.unwrap();
    std::fs::write(folder.root().join(&places[0]), "{}").unwrap();
    let damaged = inputs(opened.state.clone(), first).await.unwrap_err();
    assert!(damaged.to_string().contains("is damaged: its SHA-256 is"));
    inputs(opened.state.clone(), second).await.unwrap();

    // A job may be removed after its record was read and before its inputs are read.
    let read = opened.state.job(second).await.unwrap().unwrap();
    opened.cancel(second).await;
    opened.delete(second).await;
    opened.state.settled().await.unwrap();
    let removed = opened.state.inputs(&read).await.unwrap_err();
    assert!(matches!(removed, ReadError::Removed { job } if job == second));
}

#[tokio::test]
async fn a_retry_has_its_own_copy_of_large_inputs() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let text = WORKFLOW.replace(
        "    on:\n      dispatch:\n",
        "    retry: {attempts: 2}\n    on:\n      dispatch:\n",
    );
    opened.activate("main", &text).await;
    let dispatch = Dispatch {
        inputs: large_inputs(),
        ..opened.dispatch(fleet, "build")
    };
    let first = opened.state.dispatch(dispatch).await.unwrap();
    opened.claim(fleet, first).await;
    let lost = EndJob::new(first, Loss::RunnerLost);
    let second = opened.state.end(lost).await.unwrap().retried_by.unwrap();
    opened.claim(fleet, second).await;
    let mut failed = super::fixture::completion(second, 0);
    failed.steps[0].outcome = Some(StepOutcome::Failed);
    failed.steps[0].status = StepStatus::Failed;
    let ended = opened.state.complete(failed).await.unwrap();
    let third = ended.retried_by.unwrap();
    // Wait until the runner can no longer report on these jobs.
    folder.advance(300_000);
    opened.delete(first).await;
    opened.delete(second).await;
    opened.state.settled().await.unwrap();
    opened.close();

    let opened = folder.open().await;
    let job = opened.state.job(third).await.unwrap().unwrap();
    assert_eq!(
        job.retry_of.unwrap().job,
        second,
        "the link to the deleted job is missing"
    );
    let found = opened.state.inputs(&job).await.unwrap();
    assert_eq!(found, note("x".repeat(100_000)));
    let (waiting, placed) = objects(&folder);
    assert_eq!(
        (waiting, placed),
        (0, vec![Layout::inputs(third).to_string()])
    );
    opened.claim(fleet, third).await;
    opened.complete(third).await;
    assert_eq!(objects(&folder).0, 0);
}

#[tokio::test]
async fn a_large_text_is_the_file_of_its_revision() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let text = format!("# {}\n{WORKFLOW}", "long ".repeat(20_000));
    let large = Fleet {
        workflow: opened.activate("large", &text).await,
        ..fleet
    };
    opened.activate("large", &text).await;
    let revision = opened.workflow(large).revision.clone();
    assert_eq!(revision.number, 1);
    opened.close();
    let place = Layout::revision_text(large.workflow, &revision);
    assert!(exists(&folder, &place));
    assert_eq!(objects(&folder), (0, Vec::new()));
    let opened = folder.open().await;
    let workflow = opened.state.read(|world| world.workflow(large.workflow));
    assert_eq!(workflow.unwrap().revision.definition.scans().count(), 2);
}

#[tokio::test]
async fn large_defaults_are_read_from_the_revision_of_the_job() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let before = "a".repeat(40_000);
    let fleet = Fleet {
        workflow: opened
            .activate("defaults", &with_large_defaults(&before))
            .await,
        ..fleet
    };
    let build = opened.running_job(fleet, "build").await;
    opened.complete(build).await;
    let started = opened
        .state
        .read(|world| world.jobs().next().map(|job| job.id));
    let announce = started.unwrap();
    opened.claim(fleet, announce).await;
    let job = opened.complete(announce).await;
    assert_eq!(job.inputs, Inputs::Defaults);

    let after = "b".repeat(40_000);
    opened
        .activate("defaults", &with_large_defaults(&after))
        .await;
    let found = opened.state.inputs(&job).await.unwrap();
    let value = InputValue::Text(before);
    assert_eq!(
        found,
        BTreeMap::from(["one", "two"].map(|name| (name.to_owned(), value.clone())))
    );
    // Wait until the object of the later revision was moved from `tmp/` to its place.
    opened.state.settled().await.unwrap();
    assert_eq!(objects(&folder), (0, Vec::new()));
}
