//! The time from the claim of a job to its first step, with files of the repository: 1,000 files from the runner's
//! cache compared with `cp -r` of the same files, and a new commit with 10 MB of files, which the daemon sends. The
//! time without files is the base of both.
//!
//!     cargo bench --package daemon --bench checkout [-- RUNS]

#![expect(
    clippy::disallowed_methods,
    reason = "the program lays out files and starts the programs that it measures"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use client::{Client, Secret};
use wire::{DispatchRequest, JobState};

use support::World;

#[path = "../tests/support.rs"]
#[expect(
    dead_code,
    clippy::unwrap_used,
    reason = "the stories need the rest, and a failed measurement ends the program as well"
)]
mod support;

const RUNS: usize = 50;
const FILES: usize = 1_000;
const FILE_BYTES: usize = 4 * 1024;
const LARGE_FILES: usize = 10;
const LARGE_BYTES: usize = 1024 * 1024;

/// Target for 1,000 files from the cache.
const CACHED_TARGET: Duration = Duration::from_millis(50);

/// Target for a new commit of 10 MB.
const NEW_TARGET: Duration = Duration::from_millis(300);

const WORKFLOW: &str = "\
scans:
  none:
    on: { dispatch: {} }
    steps: [{ run: 'true' }]
  many:
    on: { dispatch: {} }
    checkout: [many]
    steps: [{ run: 'true' }]
  large:
    on: { dispatch: {} }
    checkout: [large]
    steps: [{ run: 'true' }]
";

type Failure = Box<dyn std::error::Error>;

#[expect(clippy::print_stdout, reason = "the figures are this program's output")]
fn main() -> Result<(), Failure> {
    let runs = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok().filter(|runs| *runs > 0))
        .unwrap_or(RUNS);
    // On the disk of the build, not in memory.
    let mut world = World::below(Path::new(env!("CARGO_TARGET_TMPDIR")));
    world.init_repository();
    let mut noise = Noise(1);
    for number in 0..FILES {
        let path = format!("many/{:02}/{number:04}", number % 20);
        write(&world, &path, &noise.bytes(FILE_BYTES))?;
    }
    for number in 0..LARGE_FILES {
        write(
            &world,
            &format!("large/{number}"),
            &noise.bytes(LARGE_BYTES),
        )?;
    }
    world.push(&[("bench.yaml", Some(WORKFLOW))]);
    world.start_daemon();
    world.sync();
    world.start_runner(1);
    let client = Client::new(world.url(), world.token().map(Secret::new))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut dispatched = 0;
    let mut preparation = |scan: &str| {
        dispatched += 1;
        runtime.block_on(preparation(&client, scan, dispatched))
    };

    preparation("many")?;
    let (mut none, mut cached, mut copies) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..runs {
        none.push(preparation("none")?);
        cached.push(preparation("many")?);
        copies.push(copy(&world, run)?);
    }
    let mut new = Vec::new();
    for _ in 0..runs.min(20) {
        for number in 0..LARGE_FILES {
            write(
                &world,
                &format!("large/{number}"),
                &noise.bytes(LARGE_BYTES),
            )?;
        }
        world.push(&[]);
        world.sync();
        new.push(preparation("large")?);
    }
    println!("from the claim to the first step, {runs} runs   p50        p95");
    println!("no files                          {}", shown(none));
    println!(
        "1,000 files from the cache        {}   (target {CACHED_TARGET:?})",
        shown(cached)
    );
    println!("cp -r of the same files           {}", shown(copies));
    println!(
        "10 MB of a new commit             {}   (target {NEW_TARGET:?})",
        shown(new)
    );
    Ok(())
}

fn write(world: &World, path: &str, bytes: &[u8]) -> Result<(), Failure> {
    let path = world.path("repository").join(path);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    Ok(std::fs::write(path, bytes)?)
}

/// The time from the claim of a job to its first step, by the clock of this machine.
async fn preparation(client: &Client, scan: &str, number: usize) -> Result<Duration, Failure> {
    let request = DispatchRequest::default();
    let job = client
        .dispatch("bench", scan, &request, &format!("run-{number}"))
        .await?;
    let mut job = client.await_job(job.id()).await?;
    while !job.state.is_terminal() {
        job = client.await_job(job.id).await?;
    }
    let first = job.steps.first().and_then(|step| step.started_at);
    match (job.state, job.started_at, first) {
        (JobState::Succeeded, Some(claimed), Some(first)) => Ok((first - claimed).to_std()?),
        _ => Err(format!("a job ended as {:?}", job.reason).into()),
    }
}

/// Copies the files as a script would.
fn copy(world: &World, run: usize) -> Result<Duration, Failure> {
    let to = world.path(&format!("copy-{run}"));
    let begun = Instant::now();
    let status = world
        .command("cp")
        .arg("-r")
        .arg(world.path("repository/many"))
        .arg(&to)
        .status()?;
    let took = begun.elapsed();
    std::fs::remove_dir_all(to)?;
    if status.success() {
        Ok(took)
    } else {
        Err("cp failed".into())
    }
}

fn shown(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |percent: usize| {
        let time = times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
        time.copied().unwrap_or_default().as_secs_f64() * 1000.0
    };
    format!("{:>7.1} ms {:>7.1} ms", at(50), at(95))
}

/// Incompressible bytes.
struct Noise(u64);

impl Noise {
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            // Xorshift.
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            bytes.extend(self.0.to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }
}
