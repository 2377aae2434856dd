//! Dispatch to finished, for a job of one step that runs `true`: the daemon, the runner and the client are separate
//! processes on one machine, and every run is followed by its floor: spawning the same shell with the same script,
//! and three syncs of the size of the commits that a job needs (dispatch, claim, completion).
//!
//!     cargo bench --package daemon --bench latency [-- RUNS]

#![expect(
    clippy::disallowed_methods,
    reason = "tests create files and start programs"
)]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
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

const RUNS: usize = 200;
const WARM_UP: usize = 20;
const WORKFLOW: &str =
    "scans:\n  nothing:\n    on:\n      dispatch: {}\n    steps:\n      - run: 'true'\n";

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
    world.push(&[("nothing.yaml", Some(WORKFLOW))]);
    world.start_daemon();
    world.sync();
    world.start_runner(1);
    let client = Client::new(world.url(), world.token().map(Secret::new))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let floor = Floor::prepare(&world.path(""))?;
    let (mut jobs, mut floors) = (Vec::with_capacity(runs), Vec::with_capacity(runs));
    for run in 0..WARM_UP + runs {
        let took = runtime.block_on(job(&client, run))?;
        let below = floor.measure()?;
        if run >= WARM_UP {
            jobs.push(took);
            floors.push(below);
        }
    }
    println!("dispatch → finished, {runs} runs of `true` in bash, one runner, durable");
    let (job, floor) = (Percentiles::of(jobs), Percentiles::of(floors));
    println!("              p50        p95        p99");
    println!("job     {job}");
    println!("floor   {floor}   (spawn bash + 3 × append and fdatasync)");
    println!(
        "ratio   {:>7.2}    {:>7.2}    {:>7.2}",
        ratio(job.p50, floor.p50),
        ratio(job.p95, floor.p95),
        ratio(job.p99, floor.p99)
    );
    println!(
        "resident: daemon {}, runner {}",
        resident(world.daemon_pid())?,
        resident(world.runner.as_ref().map_or(0, Child::id))?
    );
    Ok(())
}

/// The time from before the dispatch until the client knows the end of the job.
async fn job(client: &Client, run: usize) -> Result<Duration, Failure> {
    let begun = Instant::now();
    let request = DispatchRequest::default();
    let job = client
        .dispatch("nothing", "nothing", &request, &format!("run-{run}"))
        .await?;
    let mut job = client.await_job(job.id()).await?;
    while !job.state.is_terminal() {
        job = client.await_job(job.id).await?;
    }
    let took = begun.elapsed();
    if job.state == JobState::Succeeded {
        Ok(took)
    } else {
        Err(format!("a job ended as {:?}", job.reason).into())
    }
}

/// The floor of a job.
struct Floor {
    script: std::path::PathBuf,
    journal: File,
}

impl Floor {
    fn prepare(home: &Path) -> Result<Self, Failure> {
        let script = home.join("script");
        std::fs::write(&script, "true\n")?;
        let journal = File::options()
            .create(true)
            .append(true)
            .open(home.join("floor"))?;
        Ok(Self { script, journal })
    }

    fn measure(&self) -> Result<Duration, Failure> {
        // About the size of the records in one commit of a job.
        let record = [b'x'; 2048];
        let begun = Instant::now();
        let status = Command::new("bash")
            .args(["--noprofile", "--norc", "-eo", "pipefail"])
            .arg(&self.script)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()?
            .status;
        for _ in 0..3 {
            (&self.journal).write_all(&record)?;
            self.journal.sync_data()?;
        }
        if status.success() {
            Ok(begun.elapsed())
        } else {
            Err("bash failed".into())
        }
    }
}

struct Percentiles {
    p50: Duration,
    p95: Duration,
    p99: Duration,
}

impl Percentiles {
    fn of(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        let at = |percent: usize| {
            samples
                .get((samples.len() * percent / 100).min(samples.len() - 1))
                .copied()
                .unwrap_or_default()
        };
        Self {
            p50: at(50),
            p95: at(95),
            p99: at(99),
        }
    }
}

impl std::fmt::Display for Percentiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |duration: Duration| duration.as_secs_f64() * 1_000.0;
        write!(
            f,
            "{:>7.2} ms {:>7.2} ms {:>7.2} ms",
            ms(self.p50),
            ms(self.p95),
            ms(self.p99)
        )
    }
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

/// Resident memory, as reported by the kernel.
fn resident(pid: u32) -> Result<String, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .ok_or("no VmRSS")?;
    Ok(line.trim_start_matches("VmRSS:").trim().to_owned())
}
