//! The cost of a commit.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use store::file::{FileEngine, Options};
use store::{Batch, Engine, Key, Put};

use crate::fleet::{Fleet, NOTHING, scan};

const COMMITS: usize = 2_000;
const WARM_UP: usize = 100;

/// A record of the size of a finished job.
const RECORD: usize = 1_500;

const WRITERS: usize = 64;
/// A scan may have at most 10,000 waiting jobs.
const DISPATCHES: usize = 9_984;

/// Batches of one file, one after the other, each compared with the raw cost of its bytes.
pub(crate) fn one_writer() {
    let folder = crate::folder();
    let mut raw = File::create(folder.path().join("raw")).unwrap();
    let mut engine = FileEngine::new(folder.path().join("state"), Options::default());
    let runtime = crate::runtime();
    let (epoch, _) = runtime.block_on(engine.open(&mut |_| {})).unwrap();
    let content = Bytes::from(vec![b'x'; RECORD]);
    let (mut commits, mut floors) = (Vec::new(), Vec::new());
    for n in 0..WARM_UP + COMMITS {
        let key = Key::new(format!("jobs/{}/{n}", n % 256)).unwrap();
        let mut batch = Batch::new(epoch);
        let put = Put {
            bytes: content.clone(),
            live: false,
        };
        batch.puts.insert(key, put);
        let begun = Instant::now();
        runtime.block_on(engine.commit(batch)).unwrap();
        let commit = begun.elapsed();
        let begun = Instant::now();
        raw.write_all(&content).unwrap();
        raw.sync_data().unwrap();
        let floor = begun.elapsed();
        if n >= WARM_UP {
            commits.push(commit);
            floors.push(floor);
        }
    }
    runtime.block_on(engine.close()).unwrap();
    let ((p50, p95), (floor50, floor95)) = (
        crate::percentiles(&mut commits),
        crate::percentiles(&mut floors),
    );
    println!(
        "one writer, a batch of {RECORD} bytes   p50 {:>6.0} µs  p95 {:>6.0} µs",
        crate::micros(p50),
        crate::micros(p95)
    );
    println!(
        "  append, fdatasync                p50 {:>6.0} µs  p95 {:>6.0} µs  ratio p50 {:.2}",
        crate::micros(floor50),
        crate::micros(floor95),
        p50.as_secs_f64() / floor50.as_secs_f64()
    );
}

/// Concurrent dispatches of one scan from many writers, until everything is in files.
pub(crate) fn many_writers() {
    let folder = crate::folder();
    let runtime = crate::runtime();
    let took = runtime.block_on(dispatch_all(&folder.path().join("state")));
    let floor = create_and_rename(&folder.path().join("raw"));
    let rate = |took: Duration| DISPATCHES as f64 / took.as_secs_f64();
    println!(
        "{WRITERS} writers, one scan                {:>6.0} commits/s, durable and applied",
        rate(took)
    );
    println!(
        "  create, write, rename            {:>6.0} files/s  share {:.2}",
        rate(floor),
        rate(took) / rate(floor)
    );
}

async fn dispatch_all(root: &Path) -> Duration {
    let (fleet, closing) = Fleet::open(root, NOTHING).await;
    let begun = Instant::now();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let fleet = fleet.clone();
            tokio::spawn(async move {
                let nothing = scan("nothing");
                for _ in (writer..DISPATCHES).step_by(WRITERS) {
                    fleet.dispatch(&nothing).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    fleet.state.settled().await.unwrap();
    let took = begun.elapsed();
    fleet.close(closing).await;
    took
}

/// The same number of files in 256 folders, without a sync.
fn create_and_rename(root: &Path) -> Duration {
    let content = vec![b'x'; RECORD];
    for folder in 0..256 {
        std::fs::create_dir_all(root.join(folder.to_string())).unwrap();
    }
    let begun = Instant::now();
    for n in 0..DISPATCHES {
        let path = root.join((n % 256).to_string()).join(n.to_string());
        let temporary = path.with_extension("new");
        let mut file = File::create_new(&temporary).unwrap();
        file.write_all(&content).unwrap();
        drop(file);
        std::fs::rename(&temporary, &path).unwrap();
    }
    begun.elapsed()
}
