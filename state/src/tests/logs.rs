//! Tests logs while a job runs and afterwards, across crashes.

mod damaged;
mod limit;
mod sync;

use std::io::Write;
use std::time::Duration;

use model::{Job, JobId};
use tokio::time::Instant;

use super::fixture::{Fleet, Folder, Opened, completion, line};
use crate::blocking::while_awaited;
use crate::layout::Layout;
use crate::limits::LOG_PIECE;
use crate::{
    CloseError, CompleteError, EncodedRecord, LogError, LogFilter, LogMatches, LogReceipt,
    LogRecord, LogSearch, NewLogRecord, ReadError, Stream,
};

async fn a_running_job() -> (Folder, Opened, Fleet, JobId) {
    let (folder, opened, fleet) = Folder::prepared().await;
    let job = opened.running_job(fleet, "build").await;
    (folder, opened, fleet, job)
}

fn encoded(records: &[NewLogRecord]) -> Vec<EncodedRecord> {
    EncodedRecord::all(0, records).unwrap()
}

fn lines(range: std::ops::Range<u64>) -> Vec<NewLogRecord> {
    range.map(|n| line(format!("line {n}"))).collect()
}

async fn read(opened: &Opened, job: JobId, from: u64) -> Vec<LogRecord> {
    let mut stream = opened.state.logs().stream(job, from);
    let mut records = Vec::new();
    loop {
        let (next, chunk) = stream.next().await;
        stream = next;
        let Some(chunk) = chunk.unwrap() else {
            assert_eq!(stream.position(), from.max(records.len() as u64 + from));
            return records;
        };
        records.extend(
            chunk
                .split_inclusive(|byte| *byte == b'\n')
                .map(|line| serde_json::from_slice::<LogRecord>(line).unwrap()),
        );
    }
}

fn texts(records: &[LogRecord]) -> Vec<String> {
    records
        .iter()
        .map(|record| record.record.text.clone())
        .collect()
}

#[tokio::test]
async fn overlaps_are_compared_and_gaps_refused() {
    let (_folder, opened, _, job) = a_running_job().await;
    let logs = opened.state.logs();
    assert_eq!(
        logs.append(job, 0, lines(0..3)).await.unwrap(),
        LogReceipt {
            received: 3,
            durable: 0,
            cut: None
        }
    );
    assert_eq!(logs.append(job, 1, lines(1..5)).await.unwrap().received, 5);
    assert_eq!(logs.append(job, 0, lines(0..2)).await.unwrap().received, 5);
    assert_eq!(logs.append(job, 5, Vec::new()).await.unwrap().received, 5);
    assert!(matches!(
        logs.append(job, 6, lines(6..7)).await,
        Err(LogError::Mismatch { next: 5 })
    ));
    assert!(matches!(
        logs.append(job, 2, vec![line("other")]).await,
        Err(LogError::Mismatch { next: 5 })
    ));
    let long = line("x".repeat(crate::limits::LOG_TEXT_BYTES + 1));
    assert!(matches!(
        logs.append(job, 5, vec![line("fits"), long]).await,
        Err(LogError::TooLong { n: 6 })
    ));
    let records = read(&opened, job, 0).await;
    assert_eq!(
        texts(&records),
        (0..5).map(|n| format!("line {n}")).collect::<Vec<_>>()
    );
    assert_eq!(
        records.iter().map(|record| record.n).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4]
    );
    assert_eq!(texts(&read(&opened, job, 3).await), ["line 3", "line 4"]);
    assert!(read(&opened, job, 5).await.is_empty());
}

#[tokio::test]
async fn a_completion_needs_the_whole_log() {
    let (mut folder, opened, fleet, job) = a_running_job().await;
    opened.append(job, 0, lines(0..3)).await;
    for records in [0, 2, 4] {
        let refused = opened.state.complete(completion(job, records)).await;
        assert!(
            matches!(
                refused,
                Err(CompleteError::Log(LogError::Mismatch { next: 3 }))
            ),
            "{records}: {refused:?}"
        );
    }
    opened.close();
    let opened = folder.open().await;
    let refused = opened.state.complete(completion(job, 0)).await;
    assert!(
        matches!(
            refused,
            Err(CompleteError::Log(LogError::Mismatch { next: 3 }))
        ),
        "{refused:?}"
    );
    opened.state.complete(completion(job, 3)).await.unwrap();
    assert_eq!(read(&opened, job, 0).await.len(), 3);
    let silent = opened.running_job(fleet, "build").await;
    let never_read = folder.path(&Layout::log(silent));
    std::fs::create_dir_all(never_read.parent().unwrap()).unwrap();
    std::fs::write(&never_read, "lines that this daemon has not stored\n").unwrap();
    assert_eq!(opened.state.logs().records(silent).await.unwrap(), 0);
    std::fs::remove_file(never_read).unwrap();
    opened.complete(silent).await;
    assert!(
        !folder.path(&Layout::log(silent)).exists(),
        "a job without output has a log file"
    );
}

#[tokio::test]
async fn a_record_torn_by_a_crash_is_written_again() {
    let (mut folder, opened, _, job) = a_running_job().await;
    opened.append(job, 0, lines(0..3)).await;
    opened.close();
    let path = folder.path(&Layout::log(job));
    let whole = std::fs::read(&path).unwrap();
    let ends: Vec<usize> = (0..whole.len())
        .filter(|at| whole[*at] == b'\n')
        .map(|at| at + 1)
        .collect();
    for length in (ends[1]..whole.len()).step_by(7) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let opened = folder.open().await;
        assert_eq!(read(&opened, job, 0).await.len(), 2, "cut at {length}");
        assert_eq!(opened.state.logs().records(job).await.unwrap(), 2);
        let receipt = opened.state.logs().receipt(job).await.unwrap();
        assert_eq!(
            receipt,
            LogReceipt {
                received: 2,
                durable: 2,
                cut: None
            }
        );
        opened.append(job, 2, lines(2..4)).await;
        assert_eq!(read(&opened, job, 0).await.len(), 4);
        opened.close();
    }
}

#[tokio::test]
async fn a_reader_never_sees_half_a_record() {
    let (folder, opened, _, job) = a_running_job().await;
    opened.append(job, 0, lines(0..2)).await;
    let path = folder.path(&Layout::log(job));
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(b"{\"n\":2,\"at\":\"2026-").unwrap();
    assert_eq!(read(&opened, job, 0).await.len(), 2);
    assert!(read(&opened, job, 2).await.is_empty());
}

#[tokio::test]
async fn a_long_log_is_read_from_any_record() {
    const RECORDS: u64 = 6_000;
    let (_folder, opened, _, job) = a_running_job().await;
    let long: Vec<_> = (0..RECORDS)
        .map(|n| {
            line(format!(
                "{n} {}",
                "x".repeat(if n == 4_000 { 200_000 } else { 800 })
            ))
        })
        .collect();
    for (at, records) in long.chunks(1_000).enumerate() {
        opened
            .append(job, at as u64 * 1_000, records.to_vec())
            .await;
    }
    for from in [
        0,
        1,
        2,
        255,
        1_999,
        3_000,
        3_999,
        4_000,
        4_001,
        5_998,
        RECORDS - 1,
        RECORDS,
        RECORDS + 1,
    ] {
        let (_, chunk) = opened.state.logs().stream(job, from).next().await;
        let first = chunk.unwrap().map(|chunk| {
            assert!(
                chunk.len() <= LOG_PIECE || from == 4_000,
                "the piece is too long"
            );
            serde_json::from_slice::<LogRecord>(chunk.split(|byte| *byte == b'\n').next().unwrap())
                .unwrap()
        });
        assert_eq!(
            first.map(|record| record.n),
            (from < RECORDS).then_some(from)
        );
    }
    let all = read(&opened, job, 0).await;
    assert_eq!(all.len() as u64, RECORDS);
    opened
        .state
        .complete(completion(job, RECORDS))
        .await
        .unwrap();
    assert_eq!(
        read(&opened, job, 0).await,
        all,
        "the log has changed at the end of the job"
    );
}

#[tokio::test]
async fn followers_are_woken_by_growth_and_by_the_end() {
    let (_folder, opened, _, job) = a_running_job().await;
    let logs = opened.state.logs();
    let mut growth = logs.subscribe(job);
    let mut changes = opened.state.job_changed(job);
    logs.append(job, 0, lines(0..2)).await.unwrap();
    growth.changed().await.unwrap();
    assert!(
        !changes.has_changed().unwrap(),
        "a log line counts as a change of the job"
    );
    opened.state.complete(completion(job, 2)).await.unwrap();
    assert!(growth.changed().await.is_err(), "the log is still open");
    changes.changed().await.unwrap();
}

/// Simulates a full disk: the log file accepts no bytes and reads as empty.
fn fill_the_disk(folder: &Folder, job: JobId) -> std::path::PathBuf {
    let path = folder.path(&Layout::log(job));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    path
}

#[tokio::test]
async fn a_job_ends_on_a_full_disk_with_its_whole_log() {
    let (mut folder, opened, _, job) = a_running_job().await;
    let path = fill_the_disk(&folder, job);
    let logs = opened.state.logs();
    let receipt = logs.append(job, 0, lines(0..2)).await.unwrap();
    assert_eq!((receipt.received, receipt.durable), (2, 0));
    assert_eq!(logs.append(job, 1, lines(1..4)).await.unwrap().received, 4);
    assert!(matches!(
        logs.append(job, 3, vec![line("other")]).await,
        Err(LogError::Mismatch { next: 4 })
    ));
    let long = line("x".repeat(usize::try_from(crate::limits::LOG_TAIL_BYTES).unwrap()));
    assert!(matches!(
        logs.append(job, 4, vec![long]).await,
        Err(LogError::Write(crate::WriteError::DiskFull))
    ));
    let ended = opened.state.complete(completion(job, 4)).await.unwrap();
    assert_eq!(ended.state.name(), "succeeded");
    assert!(
        !logs.is_open(job),
        "the log is still open after the commit of its end"
    );

    let unfinished = store::CloseError::Unfinished;
    let closed = opened.try_close().unwrap_err();
    assert_eq!(closed.to_string(), unfinished.to_string());
    std::fs::remove_file(path).unwrap();
    let opened = folder.open().await;
    assert_eq!(
        texts(&read(&opened, job, 0).await),
        ["line 0", "line 1", "line 2", "line 3"]
    );
}

#[tokio::test]
async fn a_job_whose_log_was_removed_or_shortened_ends_and_its_log_reports_the_loss() {
    let (mut folder, opened, fleet, _) = a_running_job().await;
    let mut jobs = Vec::new();
    for left in [None, Some(0), Some(2)] {
        let job = opened.running_job(fleet, "build").await;
        let logs = opened.state.logs();
        logs.append(job, 0, lines(0..5)).await.unwrap();
        logs.sync(Instant::now()).unwrap();
        logs.append(job, 5, lines(5..7)).await.unwrap();
        let path = folder.path(&Layout::log(job));
        match left {
            None => std::fs::remove_file(&path).unwrap(),
            Some(records) => {
                let text = std::fs::read_to_string(&path).unwrap();
                let whole: String = text.split_inclusive('\n').take(records).collect();
                // Half a record remains after the whole records.
                std::fs::write(&path, whole + "{\"n\":").unwrap();
            }
        }
        let ended = opened.state.complete(completion(job, 7)).await.unwrap();
        let kept = left.unwrap_or(0);
        assert_eq!(ended.state.run().unwrap().log_records, kept as u64 + 1);
        jobs.push((job, kept));
    }
    opened.close();
    let opened = folder.open().await;
    for (job, kept) in jobs {
        let texts = texts(&read(&opened, job, 0).await);
        assert_eq!(texts.len(), kept + 1);
        let word = format!("log records {kept} to 6 are lost");
        assert!(texts[kept].starts_with(&word), "{texts:?}");
    }
}

#[tokio::test]
async fn a_log_is_searched_and_filtered_while_it_grows_and_afterwards() {
    let (_folder, opened, _, job) = a_running_job().await;
    let logs = opened.state.logs();
    let search = |text: &str| {
        let wanted = LogSearch {
            text: text.to_owned(),
            ignores_case: false,
            filter: LogFilter::default(),
            from: 0,
            limit: 2,
        };
        logs.search(job, wanted)
    };
    let stderr = LogFilter {
        stream: Some(Stream::Stderr),
        ..LogFilter::default()
    };
    let none = LogFilter::default();
    assert_eq!(search("line").await.unwrap(), LogMatches::default());
    assert_eq!(logs.begin_of_last(job, none, 5).await.unwrap(), 0);
    assert_eq!(logs.begin_of_last(job, stderr, 5).await.unwrap(), 0);
    let mut records = lines(0..10);
    records[4].stream = Stream::Stderr;
    records[6].stream = Stream::Stderr;
    opened.append(job, 0, records).await;
    for is_over in [false, true] {
        let found = search("line").await.unwrap();
        assert_eq!((found.total, found.records, found.next), (10, 10, Some(2)));
        assert_eq!(texts(&found.matches), ["line 0", "line 1"]);
        let found = search("line 7").await.unwrap();
        assert_eq!((found.total, found.records, found.next), (1, 10, None));
        assert_eq!(logs.begin_of_last(job, none, 3).await.unwrap(), 7);
        assert_eq!(logs.begin_of_last(job, stderr, 1).await.unwrap(), 6);
        assert_eq!(logs.begin_of_last(job, stderr, 2).await.unwrap(), 4);
        let mut stream = logs.stream(job, 0).filtered(stderr).limited(1);
        let mut given = Vec::new();
        while !stream.has_given_all() {
            let (next, chunk) = stream.next().await;
            stream = next;
            given.extend_from_slice(&chunk.unwrap().unwrap());
        }
        let given: LogRecord = serde_json::from_slice(&given).unwrap();
        assert_eq!(given.n, 4);
        if !is_over {
            opened.state.complete(completion(job, 10)).await.unwrap();
            opened.state.settled().await.unwrap();
        }
    }
}

#[tokio::test]
async fn long_work_on_a_log_can_detect_that_nobody_waits() {
    let (_folder, opened, _, _) = a_running_job().await;
    let (send, ended) = tokio::sync::oneshot::channel();
    let work = while_awaited(opened.state.volume(), move |_, awaited| {
        while awaited.check().is_ok() {
            std::thread::yield_now();
        }
        send.send(()).unwrap();
        Ok::<_, ReadError>(())
    });
    let waited = tokio::time::timeout(Duration::from_millis(10), work).await;
    assert!(waited.is_err());
    ended.await.unwrap();
}
