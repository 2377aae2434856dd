//! The store and the state: each figure with the raw cost of the same bytes on the same disk in the same run.
//!
//!     cargo bench --package daemon --bench store [-- SECTION…] [--jobs N]
//!
//! Sections, all of them when none is named:
//! - `commits`: one writer of small batches, compared with append and fdatasync of the same bytes; 64 writers that
//!   dispatch jobs of one scan, until the files exist, compared with creating and renaming the same number of files.
//! - `footprint`: files, folders and allocated bytes of a finished job that does nothing.
//! - `bulk`: lines of a log in batches of 64 KiB, compared with writing and syncing the same bytes; an artifact,
//!   compared with `cp` and fsync.
//! - `past`: `--jobs` finished jobs (1,000,000 for the figures of the documentation) of 1,000 scans; start after
//!   `kill -9` with a cold cache, memory, the first page of a scan's jobs, and from a success to the next job, each compared with an empty state. A cold cache needs root: the state is in a separate file system, which is unmounted before each start.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "figures are this program's output, and a failed measurement ends it"
)]

mod bulk;
mod commits;
mod fleet;
mod footprint;
mod image;
mod past;
#[path = "../../tests/support.rs"]
#[expect(dead_code, reason = "the stories need the rest")]
mod support;

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

/// Default number of finished jobs of `past`: enough to see which figures grow with them.
const JOBS: usize = 20_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, root, jobs] = &arguments[..]
        && command == past::GENERATE
    {
        return past::generate(Path::new(root), jobs.parse().unwrap());
    }
    let jobs = arguments
        .windows(2)
        .find(|pair| pair[0] == "--jobs")
        .map_or(JOBS, |pair| pair[1].parse().unwrap());
    let named = |section: &str| arguments.iter().any(|argument| argument == section);
    let is_wanted = |section: &str| {
        named(section)
            || !["commits", "footprint", "bulk", "past"]
                .into_iter()
                .any(named)
    };
    if is_wanted("commits") {
        commits::one_writer();
        commits::many_writers();
    }
    if is_wanted("footprint") {
        footprint::finished_job();
    }
    if is_wanted("bulk") {
        bulk::log();
        bulk::artifact();
    }
    if is_wanted("past") {
        past::run(jobs);
    }
}

/// A folder on the disk of the build, not in memory.
fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// Median and 95th percentile.
fn percentiles(samples: &mut [Duration]) -> (Duration, Duration) {
    samples.sort_unstable();
    let at = |percent: usize| samples[(samples.len() * percent / 100).min(samples.len() - 1)];
    (at(50), at(95))
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000_000.0
}
