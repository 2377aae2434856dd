//! Data outside of the journal: logs and artifacts.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::Utc;
use state::{NewLogRecord, Stream};

use crate::fleet::{Fleet, NOTHING, scan};

/// Bytes of text, without the frame of a log record.
const LINE: usize = 100;
const BATCH: usize = 64 * 1024;
const LOG: usize = 512 * 1024 * 1024;
const ARTIFACT: usize = 512 * 1024 * 1024;
const PIECE: usize = 256 * 1024;

/// Log lines through the library, in megabytes of text, compared with the same bytes written and synced once a second.
pub(crate) fn log() {
    let folder = crate::folder();
    let root = folder.path().join("state");
    let runtime = crate::runtime();
    let (appended, took, stored) = runtime.block_on(async {
        let (fleet, closing) = Fleet::open(&root, NOTHING).await;
        let job = fleet.dispatch(&scan("nothing")).await;
        fleet.claim(job).await;
        let lines = BATCH / LINE;
        let batch: Vec<NewLogRecord> = (0..lines)
            .map(|n| NewLogRecord {
                at: Utc::now(),
                step: Some(0),
                stream: Stream::Stdout,
                text: format!("{n:>0width$}", width = LINE),
            })
            .collect();
        let begun = Instant::now();
        let mut from = 0;
        for _ in 0..LOG / BATCH {
            let batch = batch.clone();
            fleet.state.logs().append(job, from, batch).await.unwrap();
            from += lines as u64;
        }
        let appended = begun.elapsed();
        fleet.complete(job, from).await;
        let took = begun.elapsed();
        fleet.close(closing).await;
        (appended, took, size_of_log(&root))
    });
    let floor = write_and_sync(&folder.path().join("raw"), stored, BATCH);
    let rate = |bytes: u64, took: Duration| bytes as f64 / 1_000_000.0 / took.as_secs_f64();
    println!(
        "log, batches of 64 KiB of text     {:>6.0} MB/s appended ({:.0} of text), {:.0} MB/s durable",
        rate(stored, appended),
        rate(LOG as u64, appended),
        rate(stored, took)
    );
    println!(
        "  write the stored bytes, one sync {:>6.0} MB/s",
        rate(stored, floor)
    );
}

fn size_of_log(root: &Path) -> u64 {
    let output = Command::new("find")
        .arg(root)
        .args(["-name", "log.jsonl", "-printf", "%s"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().parse().unwrap()
}

fn write_and_sync(path: &Path, bytes: u64, piece: usize) -> Duration {
    let mut file = File::create(path).unwrap();
    let content = vec![b'x'; piece];
    let begun = Instant::now();
    for _ in 0..bytes / piece as u64 {
        file.write_all(&content).unwrap();
    }
    file.sync_data().unwrap();
    begun.elapsed()
}

/// An artifact, hashed and durable, compared with `cp` and a sync of the copy.
pub(crate) fn artifact() {
    let folder = crate::folder();
    let original = folder.path().join("original");
    write_and_sync(&original, ARTIFACT as u64, PIECE);
    let runtime = crate::runtime();
    let content = Bytes::from(vec![b'x'; PIECE]);
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    for round in 0..3 {
        let root = folder.path().join(format!("state-{round}"));
        ours.push(runtime.block_on(upload(&root, &content)));
        std::fs::remove_dir_all(&root).unwrap();
        let copy = folder.path().join("copy");
        let begun = Instant::now();
        let status = Command::new("cp")
            .arg(&original)
            .arg(&copy)
            .status()
            .unwrap();
        assert!(status.success());
        File::open(&copy).unwrap().sync_data().unwrap();
        floors.push(begun.elapsed());
        std::fs::remove_file(&copy).unwrap();
    }
    let (ours, _) = crate::percentiles(&mut ours);
    let (floor, _) = crate::percentiles(&mut floors);
    println!(
        "artifact of {} MiB                {:>6.0} ms",
        ARTIFACT / 1024 / 1024,
        crate::ms(ours)
    );
    println!(
        "  cp, fsync                        {:>6.0} ms  ratio {:.2}",
        crate::ms(floor),
        ours.as_secs_f64() / floor.as_secs_f64()
    );
}

async fn upload(root: &Path, content: &Bytes) -> Duration {
    let (fleet, closing) = Fleet::open(root, NOTHING).await;
    let job = fleet.dispatch(&scan("nothing")).await;
    fleet.claim(job).await;
    let begun = Instant::now();
    let mut upload = fleet.state.begin_upload().await.unwrap();
    for _ in 0..ARTIFACT / PIECE {
        upload = upload.write(content.clone()).await.unwrap();
    }
    fleet.store_artifact(job, upload).await;
    let took = begun.elapsed();
    fleet.close(closing).await;
    took
}
