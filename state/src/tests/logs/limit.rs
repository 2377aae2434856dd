//! Tests logs that reach their limit.

use super::sync::refuse_syncs;
use super::*;

#[tokio::test]
async fn a_log_is_cut_in_the_same_way_despite_repeats_and_restarts() {
    const LIMIT: u64 = 4_000;
    let word = |text: &str| NewLogRecord {
        stream: Stream::Runner,
        ..line(text.to_owned())
    };
    let mut sent = lines(0..100);
    sent[70] = word("the step was killed");
    sent[99] = word("the job was cancelled");
    let mut ends = Vec::new();
    // The number of records per append, whether each append is repeated, and whether the daemon restarts after it.
    for (piece, is_repeated, is_restarted) in [
        (100, false, false),
        (7, false, false),
        (7, true, false),
        (9, true, true),
        (4, false, true),
    ] {
        let (mut folder, mut opened, _, job) = a_running_job().await;
        for (at, records) in sent.chunks(piece).enumerate() {
            let from = (at * piece) as u64;
            let end = from + records.len() as u64;
            for _ in 0..=usize::from(is_repeated) {
                let append = opened
                    .state
                    .logs()
                    .append_within(LIMIT, job, from, encoded(records));
                let receipt = append.await.unwrap();
                assert_eq!(
                    receipt.received, end,
                    "dropped records do not count as received"
                );
                if let Some(cut) = receipt.cut {
                    assert_eq!(
                        receipt.durable, end,
                        "dropped records do not count as durable"
                    );
                    assert!(cut < end);
                } else {
                    assert!(receipt.durable <= receipt.received);
                }
            }
            if is_restarted {
                opened.close();
                opened = folder.open().await;
            }
        }
        let short = opened.state.complete(completion(job, 10)).await;
        assert!(
            matches!(short, Err(CompleteError::Log(LogError::Mismatch { .. }))),
            "{short:?}"
        );
        let ended = opened.state.complete(completion(job, 100)).await.unwrap();
        let records = read(&opened, job, 0).await;
        let run = ended.state.run().unwrap();
        let log = folder.path(&Layout::log(job));
        assert_eq!(run.log_records, records.len() as u64);
        assert_eq!(run.log_bytes, std::fs::metadata(log).unwrap().len());
        ends.push(records);
    }
    let texts = texts(&ends[0]);
    let (kept, end) = texts.split_at(texts.len() - 3);
    assert_eq!(
        kept,
        (0..kept.len())
            .map(|n| format!("line {n}"))
            .collect::<Vec<_>>()
    );
    assert!(
        end[0].starts_with("the log is cut here: it has reached its limit of 4000 bytes"),
        "{end:?}"
    );
    assert_eq!(end[1..], ["the step was killed", "the job was cancelled"]);
    for end in &ends {
        assert_eq!(*end, ends[0]);
    }
}

#[tokio::test]
async fn records_after_the_cut_are_only_accepted_once_the_cut_is_durable() {
    let (folder, opened, _, job) = a_running_job().await;
    refuse_syncs(&folder, job);
    let append = opened
        .state
        .logs()
        .append_within(200, job, 0, encoded(&lines(0..9)));
    append.await.unwrap_err();
    opened.try_close().unwrap_err();
}

#[tokio::test]
async fn few_records_of_the_runner_are_stored_after_the_cut() {
    let (_folder, opened, _, job) = a_running_job().await;
    let limit = 1_000;
    let mut words = lines(0..2_000);
    for word in &mut words {
        word.stream = Stream::Runner;
        word.text = format!("{} {}", word.text, "\u{1}".repeat(100));
    }
    opened
        .state
        .logs()
        .append_within(limit, job, 0, encoded(&words))
        .await
        .unwrap();
    let path = _folder.path(&Layout::log(job));
    let bytes = std::fs::metadata(path).unwrap().len();
    assert!((60_000..70_000).contains(&bytes), "{bytes}");
}
