//! Tests that logs become durable or the process ends.

use super::*;

#[tokio::test]
async fn appended_records_become_durable_with_the_next_sync() {
    let (_folder, opened, _, job) = a_running_job().await;
    let logs = opened.state.logs();
    logs.append(job, 0, lines(0..2)).await.unwrap();
    opened.state.sync_appended().await;
    let durable = LogReceipt {
        received: 2,
        durable: 2,
        cut: None,
    };
    assert_eq!(logs.receipt(job).await.unwrap(), durable);
    // The log of a cancelled job takes the worker's last lines, and is then closed.
    opened.cancel(job).await;
    logs.append(job, 2, lines(2..3)).await.unwrap();
    opened.state.settle_log(job, 3).await.unwrap();
    assert!(!logs.is_open(job), "its worker has finished");
    assert_eq!(read(&opened, job, 0).await.len(), 3);
}

#[tokio::test]
async fn the_log_of_a_finished_job_stays_open_while_its_worker_may_append() {
    let (_folder, opened, _, job) = a_running_job().await;
    let logs = opened.state.logs();
    logs.append(job, 0, lines(0..2)).await.unwrap();
    opened.cancel(job).await;
    let cancelled = Instant::now();
    assert!(
        !logs.sync(cancelled).unwrap(),
        "the log of a finished job was closed too early"
    );
    assert!(logs.is_open(job));
    logs.append(job, 2, lines(2..3)).await.unwrap();
    let last_words = model::limits::WORKER_LAST_WORDS.to_std().unwrap();
    assert!(logs.sync(cancelled + last_words).unwrap());
    assert!(!logs.is_open(job));
}

#[tokio::test]
async fn the_worker_of_a_finished_job_may_stop_once_its_log_is_durable() {
    let (mut folder, opened, fleet, job) = a_running_job().await;
    let logs = opened.state.logs();
    logs.append(job, 0, lines(0..2)).await.unwrap();
    opened.cancel(job).await;
    for _ in 0..2 {
        let lost = opened.state.settle_log(job, 3).await;
        assert!(
            matches!(lost, Err(LogError::Mismatch { next: 2 })),
            "{lost:?}"
        );
    }
    logs.append(job, 2, lines(2..3)).await.unwrap();
    opened.state.settle_log(job, 3).await.unwrap();
    opened.close();
    // After a start, `settle_log` syncs the log again. Later, the disk refuses the sync.
    let opened = folder.open().await;
    opened.state.settle_log(job, 3).await.unwrap();
    let silent = opened.running_job(fleet, "build").await;
    opened.cancel(silent).await;
    opened.state.settle_log(silent, 0).await.unwrap();
    let log = folder.path(&Layout::log(silent));
    assert!(!log.exists(), "a job without output has a log file");
    let job = opened.running_job(fleet, "build").await;
    refuse_syncs(&folder, job);
    let logs = opened.state.logs();
    logs.append(job, 0, lines(0..2)).await.unwrap();
    opened.cancel(job).await;
    opened.state.settle_log(job, 2).await.unwrap_err();
    opened.try_close().unwrap_err();
}

/// Makes a log that accepts every write and refuses every sync.
pub(super) fn refuse_syncs(folder: &Folder, job: JobId) {
    let path = folder.path(&Layout::log(job));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/dev/null", path).unwrap();
}

#[tokio::test]
async fn a_failed_sync_that_nobody_noticed_is_reported_at_the_stop() {
    let (folder, opened, _, job) = a_running_job().await;
    refuse_syncs(&folder, job);
    let logs = opened.state.logs().clone();
    logs.append(job, 0, lines(0..2)).await.unwrap();
    logs.sync(Instant::now()).unwrap_err();
    let closed = opened.try_close().unwrap_err();
    let CloseError::Failed(fatal) = closed else {
        panic!("{closed}");
    };
    assert!(fatal.message.contains("log.jsonl"), "{fatal}");
}

#[tokio::test]
async fn a_log_that_cannot_be_synced_ends_the_process() {
    let (folder, opened, _, job) = a_running_job().await;
    refuse_syncs(&folder, job);
    let logs = opened.state.logs();
    logs.append(job, 0, lines(0..2)).await.unwrap();
    opened.state.sync_appended().await;
    let failed = opened.state.failed().await;
    assert!(failed.message.contains("log.jsonl"), "{failed}");
    assert_eq!(logs.receipt(job).await.unwrap().durable, 0);
}
