//! Tests a disk that is nearly full: no new jobs are made, and running jobs can end.

use model::JobState;

use super::fixture::{Folder, completion, line};
use crate::{Room, SubmitError, WriteError};

#[tokio::test]
async fn on_a_full_disk_jobs_can_end_and_nothing_else_begins() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let job = opened.running_job(fleet, "build").await;
    opened.close();

    let opened = folder.open_on_full_disk().await;
    let dispatched = opened.state.submit(opened.dispatch(fleet, "build")).await;
    assert!(matches!(dispatched, Err(SubmitError::DiskFull)));
    let upload = opened.state.begin_upload().await;
    assert!(matches!(upload, Err(WriteError::DiskFull)));
    let log = opened.state.logs();
    log.append(job, 0, vec![line("the end")]).await.unwrap();
    let ended = opened.state.complete(completion(job, 1)).await.unwrap();
    assert!(matches!(ended.state, JobState::Succeeded { .. }));
    opened.close();
    assert!(!folder.walk().keys().any(|path| path.starts_with("tmp/")));
}

#[tokio::test]
async fn while_the_disk_is_getting_full_jobs_run_but_no_new_jobs_are_made() {
    let (mut folder, opened, fleet) = Folder::prepared().await;
    let job = opened.new_job(fleet, "build").await;
    opened.close();

    let opened = folder.open_on_low_disk().await;
    assert_eq!(opened.state.room(), Room::Low);
    let dispatched = opened.state.submit(opened.dispatch(fleet, "build")).await;
    assert!(matches!(dispatched, Err(SubmitError::DiskLow)));
    opened.claim(fleet, job).await;
    opened.store_artifact(job, "report", "zip").await;
    assert_eq!(opened.complete(job).await.state.name(), "succeeded");
    opened.close();
}
