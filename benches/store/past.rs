//! The cost of a long history.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use client::{Client, JobFilter, Secret};

use crate::fleet::{Fleet, scan};
use crate::image::Image;
use crate::support::World;

/// The argument that makes this program the generator.
pub(crate) const GENERATE: &str = "generate-past";

const SCANS: usize = 1_000;
const WRITERS: usize = 64;
const SUCCESSES: usize = 200;
const PAGES: usize = 20;

/// Inodes of the file system: a record and its folder for each job, and the files of an empty state.
const BYTES_OF_A_JOB: u64 = 14_000;
const BYTES_OF_THE_REST: u64 = 2_000_000_000;
const FILES_OF_A_JOB: u64 = 3;
const FILES_OF_THE_REST: u64 = 100_000;

/// 1,000 scans, and a scan that follows another.
fn workflow() -> String {
    let mut text = "scans:\n".to_owned();
    for n in 0..SCANS {
        text += &format!("  s{n}:\n    on: {{ dispatch: {{}} }}\n    steps: [{{ run: 'true' }}]\n");
    }
    text += "  first:\n    on: { dispatch: {} }\n    steps: [{ run: 'true' }]\n";
    text +=
        "  second:\n    on: { expr: scans.first.is_available() }\n    steps: [{ run: 'true' }]\n";
    text
}

/// Figures of an empty state and of a state with this many finished jobs.
pub(crate) fn run(jobs: usize) {
    let image = Image::mount(
        BYTES_OF_THE_REST + jobs as u64 * BYTES_OF_A_JOB,
        FILES_OF_THE_REST + jobs as u64 * FILES_OF_A_JOB,
    );
    let plain = crate::folder();
    let (root, image) = match &image {
        Ok(image) => (image.root(), Some(image)),
        Err(problem) => {
            println!("SKIP cold cache: {problem}");
            (plain.path().to_owned(), None)
        }
    };
    let mut world = World::below(&root);
    world.init_repository();
    world.push(&[("bench.yaml", Some(&workflow()))]);
    world.start_daemon();
    world.sync();
    let token = world.token().unwrap();
    world.stop_daemon();
    let empty = figures(&mut world, image, &token, "empty");

    let begun = Instant::now();
    let state = world.path("state");
    let mut generator = Command::new(std::env::current_exe().unwrap())
        .args([GENERATE, state.to_str().unwrap(), &jobs.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let output = generator.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
    assert_eq!(line, "done\n");
    generator.kill().unwrap();
    generator.wait().unwrap();
    println!(
        "{jobs} jobs of {SCANS} scans were made in {:.0} s, then kill -9",
        begun.elapsed().as_secs_f64()
    );
    let full = figures(&mut world, image, &token, "full");
    println!(
        "  more memory than empty           {:>6.1} MB",
        (full.memory as f64 - empty.memory as f64) / 1_000.0
    );
    println!(
        "  success → next job, ratio        {:>6.2}",
        full.success.as_secs_f64() / empty.success.as_secs_f64()
    );

    std::fs::remove_dir_all(world.path("state/index")).unwrap();
    cool(image);
    let begun = Instant::now();
    world.start_daemon();
    println!(
        "start without index/               {:>6.0} ms",
        crate::ms(begun.elapsed())
    );
    world.stop_daemon();
}

struct Figures {
    /// In kilobytes.
    memory: u64,
    success: Duration,
}

fn figures(world: &mut World, image: Option<&Image>, token: &str, what: &str) -> Figures {
    cool(image);
    let begun = Instant::now();
    world.start_daemon();
    let start = begun.elapsed();
    let memory = memory_of(world.daemon_pid());
    let runtime = crate::runtime();
    let client = Client::new(world.url(), Some(Secret::new(token.to_owned()))).unwrap();
    let mut cold = runtime.block_on(first_pages(&client));
    let mut warm = runtime.block_on(first_pages(&client));
    world.stop_daemon();
    let mut successes = runtime.block_on(successes(&world.path("state")));
    let (success, success95) = crate::percentiles(&mut successes);
    let (page, page95) = crate::percentiles(&mut warm);
    let (unread, unread95) = crate::percentiles(&mut cold);
    println!(
        "{what:<8} start to ready            {:>6.0} ms  RSS {:.1} MB",
        crate::ms(start),
        memory as f64 / 1_000.0
    );
    println!(
        "  first page of a scan's jobs      p50 {:.2} ms  p95 {:.2} ms  (never read before: p50 {:.2} ms  p95 {:.2} ms)",
        crate::ms(page),
        crate::ms(page95),
        crate::ms(unread),
        crate::ms(unread95)
    );
    println!(
        "  success → next job durable       p50 {:>6.0} µs  p95 {:>6.0} µs",
        crate::micros(success),
        crate::micros(success95)
    );
    Figures { memory, success }
}

fn cool(image: Option<&Image>) {
    if let Some(image) = image {
        image.forget().unwrap();
    }
}

/// The newest jobs of some of the scans.
async fn first_pages(client: &Client) -> Vec<Duration> {
    let mut took = Vec::new();
    for n in 0..PAGES {
        let filter = JobFilter {
            workflow: Some("bench".to_owned()),
            scan: Some(format!("s{}", n * SCANS / PAGES)),
            ..JobFilter::default()
        };
        let begun = Instant::now();
        client.jobs(&filter, Some(50), None).await.unwrap();
        took.push(begun.elapsed());
    }
    took
}

async fn successes(root: &Path) -> Vec<Duration> {
    let (fleet, closing) = Fleet::open(root, "").await;
    let first = scan("first");
    let mut took = Vec::new();
    for _ in 0..SUCCESSES {
        took.push(fleet.completion_with_follower(&first).await);
    }
    fleet.close(closing).await;
    took
}

/// Resident memory in kilobytes.
fn memory_of(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Creates finished jobs of all scans in turn, prints `done` and waits to be killed.
pub(crate) fn generate(root: &Path, jobs: usize) {
    let runtime = crate::runtime();
    runtime.block_on(async {
        let (fleet, _closing) = Fleet::open(root, "").await;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let fleet = fleet.clone();
                tokio::spawn(async move {
                    for n in (writer..jobs).step_by(WRITERS) {
                        fleet.finish_one(&scan(&format!("s{}", n % SCANS))).await;
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        println!("done");
        std::future::pending::<()>().await
    });
}
