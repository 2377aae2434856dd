//! 5,000 scans that are due in the same minute: the delay of their jobs after the minute. The program waits for the
//! next full minute. The floor writes and syncs the same number of bytes as the commits of these jobs.
//!
//!     cargo bench --package daemon --bench schedules

#![expect(
    clippy::disallowed_methods,
    reason = "the program lays out files and starts the programs that it measures"
)]

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use client::{Client, JobFilter, Secret};

use support::World;

#[path = "../tests/support.rs"]
#[expect(
    dead_code,
    clippy::unwrap_used,
    reason = "the stories need the rest, and a failed measurement ends the program as well"
)]
mod support;

const FILES: usize = 20;
const SCANS_OF_A_FILE: usize = 250;
const SCANS: usize = FILES * SCANS_OF_A_FILE;

/// Limit of the time from the minute to the last job.
const TARGET: TimeDelta = TimeDelta::seconds(1);

/// A commit holds 100 records, three per job: the job, its scan's head and its ledger.
const COMMITS: usize = SCANS * 3 / 100;
const COMMIT_BYTES: usize = 64 * 1024;

type Failure = Box<dyn std::error::Error>;

#[expect(clippy::print_stdout, reason = "the figures are this program's output")]
fn main() -> Result<(), Failure> {
    // On the disk of the build, not in memory.
    let mut world = World::below(Path::new(env!("CARGO_TARGET_TMPDIR")));
    world.init_repository();
    let names: Vec<String> = (0..FILES).map(|file| format!("w{file}.yaml")).collect();
    let text = workflow()?;
    let files: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), Some(text.as_str())))
        .collect();
    world.push(&files);
    world.start_daemon();
    world.sync();
    let activated = Utc::now();
    let floor = floor(&world.path("floor"))?;
    let client = Client::new(world.url(), world.token().map(Secret::new))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let slot = activated.duration_trunc(TimeDelta::minutes(1))? + TimeDelta::minutes(1);
    std::thread::sleep((slot - Utc::now()).to_std().unwrap_or_default());
    let made = runtime.block_on(made(&client))?;
    let mut late: Vec<TimeDelta> = made.iter().map(|at| *at - slot).collect();
    late.sort();
    let at = |share: usize| {
        late.get((late.len() - 1) * share / 100)
            .copied()
            .unwrap_or_default()
    };
    println!("{SCANS} scans in {FILES} files, all due in one minute, no runner");
    println!(
        "from the minute to the job   p50 {} ms   p99 {} ms   last {} ms   (at most {} ms)",
        at(50).num_milliseconds(),
        at(99).num_milliseconds(),
        at(100).num_milliseconds(),
        TARGET.num_milliseconds()
    );
    println!(
        "floor   {} ms   ({COMMITS} × append and fdatasync of {COMMIT_BYTES} bytes)",
        floor.as_millis()
    );
    Ok(())
}

fn workflow() -> Result<String, std::fmt::Error> {
    let mut text = "scans:\n".to_owned();
    for scan in 0..SCANS_OF_A_FILE {
        writeln!(
            text,
            "  s{scan}: {{ on: {{ cron: '* * * * *' }}, steps: [{{ run: 'true' }}] }}"
        )?;
    }
    Ok(text)
}

/// The creation times of all jobs, when all exist.
async fn made(client: &Client) -> Result<Vec<DateTime<Utc>>, Failure> {
    loop {
        let mut made = Vec::with_capacity(SCANS);
        let mut cursor = None;
        loop {
            let page = client
                .jobs(&JobFilter::default(), Some(200), cursor.as_deref())
                .await?;
            made.extend(page.items.iter().map(|job| job.created_at));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        if made.len() >= SCANS {
            return Ok(made);
        }
        // A pause, so that this client uses little processor time.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn floor(path: &Path) -> Result<Duration, Failure> {
    let mut journal = File::create(path)?;
    let records = vec![b'x'; COMMIT_BYTES];
    let begun = Instant::now();
    for _ in 0..COMMITS {
        journal.write_all(&records)?;
        journal.sync_data()?;
    }
    Ok(begun.elapsed())
}
