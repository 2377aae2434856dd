//! Dispatch to finished, for a job of one step that runs `true`: the daemon, the runner and the client are separate
//! processes on one machine, and every run is followed by its floor: spawning the same shell with the same script,
//! and three syncs of the size of the commits that a job needs (dispatch, claim, completion).
//!
//!     cargo bench --package daemon --bench latency [-- RUNS]

#![expect(
    clippy::disallowed_methods,
    reason = "tests lay out files and start the programs they are about"
)]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::{Client, Secret};
use wire::{DispatchRequest, JobState};

const EVERSCAND: &str = env!("CARGO_BIN_EXE_everscand");
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
    let home = tempfile::Builder::new()
        .prefix("latency-")
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let world = World::start(home.path())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let floor = Floor::prepare(home.path())?;
    let (mut jobs, mut floors) = (Vec::with_capacity(runs), Vec::with_capacity(runs));
    for run in 0..WARM_UP + runs {
        let job = runtime.block_on(world.job(run))?;
        let below = floor.measure()?;
        if run >= WARM_UP {
            jobs.push(job);
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
        resident(&world.daemon)?,
        resident(&world.runner)?
    );
    Ok(())
}

/// A daemon, a runner, a repository with one workflow.
struct World {
    client: Client,
    runner: Child,
    daemon: Child,
}

impl World {
    fn start(home: &Path) -> Result<Self, Failure> {
        let bin = home.join("bin");
        std::fs::create_dir(&bin)?;
        for name in ["everscand", "everscan", "everscan-runner"] {
            std::os::unix::fs::symlink(EVERSCAND, bin.join(name))?;
        }
        let repository = home.join("repository");
        std::fs::create_dir_all(repository.join("workflows"))?;
        std::fs::write(repository.join("workflows/nothing.yaml"), WORKFLOW)?;
        for arguments in [
            &["init", "--quiet"][..],
            &["add", "."],
            &["commit", "--quiet", "--message", "nothing"],
        ] {
            succeed(
                program(home, "git")
                    .current_dir(&repository)
                    .args(arguments),
            )?;
        }
        let source = format!("main={}", repository.display());
        let mut daemon = program(home, "everscand")
            .args(["run", "--listen", "127.0.0.1:0", "--state-dir"])
            .arg(home.join("state"))
            .args(["--source", &source])
            .env("SERVICE_LOG", "warn")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        BufReader::new(daemon.stdout.take().ok_or("no output")?).read_line(&mut url)?;
        let url = url.trim().to_owned();
        let token = std::fs::read_to_string(home.join("state/initial-admin-token"))?
            .trim()
            .to_owned();
        let user = |arguments: &[&str]| {
            succeed(
                program(home, "everscan")
                    .args(arguments)
                    .env("SERVICE_URL", &url)
                    .env("SERVICE_TOKEN", &token),
            )
        };
        user(&["source", "sync", "main", "--wait"])?;
        let registration = user(&["runner", "register-token"])?;
        succeed(
            program(home, "everscan-runner")
                .args(["configure", "--name", "bench", "--url", &url, "--workdir"])
                .arg(home.join("work"))
                .env("SERVICE_REGISTRATION_TOKEN", registration.trim()),
        )?;
        let runner = program(home, "everscan-runner")
            .args(["run", "--name", "bench"])
            .spawn()?;
        let client = Client::new(&url, Some(Secret::new(token)))?;
        Ok(Self {
            client,
            runner,
            daemon,
        })
    }

    /// From before the dispatch is sent until its end was told.
    async fn job(&self, run: usize) -> Result<Duration, Failure> {
        let begun = Instant::now();
        let job = self
            .client
            .dispatch(
                "nothing",
                "nothing",
                &DispatchRequest::default(),
                &format!("run-{run}"),
            )
            .await?;
        let mut job = self.client.await_job(job.id).await?;
        while !job.state.is_terminal() {
            job = self.client.await_job(job.id).await?;
        }
        let took = begun.elapsed();
        if job.state == JobState::Succeeded {
            Ok(took)
        } else {
            Err(format!("a job ended as {:?}", job.reason).into())
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for child in [&mut self.runner, &mut self.daemon] {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// What a job cannot be faster than.
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
        // About what the records of one commit of a job take.
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

/// Resident memory as the kernel tells it.
fn resident(child: &Child) -> Result<String, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .ok_or("no VmRSS")?;
    Ok(line.trim_start_matches("VmRSS:").trim().to_owned())
}

fn program(home: &Path, name: &str) -> Command {
    let own = home.join("bin").join(name);
    let mut command = if own.exists() {
        Command::new(own)
    } else {
        Command::new(name)
    };
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .envs(["GIT_AUTHOR", "GIT_COMMITTER"].iter().flat_map(|who| {
            [
                (format!("{who}_NAME"), "bench"),
                (format!("{who}_EMAIL"), "bench@localhost"),
            ]
        }))
        .stdin(Stdio::null());
    command
}

fn succeed(command: &mut Command) -> Result<String, Failure> {
    let output = command.output()?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?)
    } else {
        Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
    }
}
