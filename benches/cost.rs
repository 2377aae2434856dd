//! The cost of a job. Daemon and runner are separate processes; the jobs have one step `true`, and eight run at a time.
//!
//!     cargo bench --package daemon --bench cost [-- JOBS] [--folder FOLDER]… [--program EVERSCAND]…
//! It runs in each folder (by default the temporary folder) and on an ext4 with a journal in a file there, if it may
//! mount one. In each it runs each program in turn, by default the program of this build. It prints rows for
//! `docs/evidence/track-record.md`:
//!
//! - CPU: of the daemon, of the runner with the processes of its program that start steps, and of the steps. A step costs
//!   from the moment when its process is made.
//! - calls, syncs and inodes made and removed: counted by the kernel for `perf stat`, without slowing the programs, in
//!   a separate run. The calls of `bash`, which every step runs, are subtracted from the runner's calls. Inodes are
//!   counted on ext4 only.
//! - jobs a second, alone and with 1,000 idle processes on the machine.
//! - p50 of the time from a dispatch to the end of the job, one job after the other.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "figures are this program's output, and a failed measurement ends it"
)]

#[path = "../tests/stories/machine.rs"]
#[expect(dead_code, reason = "the stories need more of it")]
mod machine;
#[path = "../tests/support.rs"]
#[expect(dead_code, reason = "the stories need more of it")]
mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use client::{Client, Secret};
use machine::run;
use support::World;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use uuid::Uuid;
use wire::{DispatchRequest, JobState};

const JOBS: usize = 2_000;
const WARM_UP: usize = 100;
const ALONE: usize = 200;
const CAPACITY: u32 = 8;
const IDLE: usize = 1_000;

/// The runner takes the oldest job first, so that all jobs have ended soon after the newest.
const LAST: usize = 2 * CAPACITY as usize;

/// Time after the last job that is also counted: then the daemon has written its files, which are a cost of the jobs
/// but not part of their time.
const SETTLED: Duration = Duration::from_secs(1);

/// Size of the sparse file with the ext4.
const IMAGE_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// The unit of times in `/proc`, on every processor that Rust's standard library runs on.
const TICK_MS: f64 = 10.0;

const WORKFLOW: &str = "scans: { nothing: { on: { dispatch: {} }, steps: [{ run: 'true' }] } }\n";

const CALLS: &str = "raw_syscalls:sys_enter";
const SYNCS: [&str; 3] = [
    "syscalls:sys_enter_fsync",
    "syscalls:sys_enter_fdatasync",
    "syscalls:sys_enter_syncfs",
];
const INODES: [&str; 2] = ["ext4:ext4_allocate_inode", "ext4:ext4_free_inode"];

fn main() {
    let (mut jobs, mut folders, mut programs) = (JOBS, Vec::new(), Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--folder" => folders.push(PathBuf::from(arguments.next().unwrap())),
            "--program" => programs.push(PathBuf::from(arguments.next().unwrap())),
            // `cargo bench` adds `--bench`.
            other => jobs = other.parse().unwrap_or(jobs),
        }
    }
    if folders.is_empty() {
        folders.push(std::env::temp_dir());
    }
    if programs.is_empty() {
        programs.push(env!("CARGO_BIN_EXE_everscand").into());
    }
    let image = Image::mount(&folders[0]);
    match &image {
        Ok(image) => folders.push(image.at()),
        Err(reason) => println!("SKIP an ext4 with a journal: {reason}"),
    }
    if let Err(reason) = Counting::start(&[std::process::id()], false).and_then(Counting::end) {
        println!("SKIP calls, syncs and inodes: {reason}");
    }
    println!(
        "{jobs} jobs; CPU of daemon / runner / step, the counts of daemon / runner\n\
         | program | file system | jobs/s | with {IDLE} idle | p50 | CPU | calls | syncs | inodes |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for folder in &folders {
        for program in &programs {
            let row = Bench::new(folder, program).row(jobs);
            let file_system = match &image {
                Ok(image) if *folder == image.at() => {
                    format!("ext4 with a journal, its file in {}", folders[0].display())
                }
                _ => format!("{} ({})", folder.display(), kind(folder)),
            };
            println!("| {} | {file_system} | {row} |", program.display());
        }
    }
}

/// A daemon and a runner that wait for jobs.
struct Bench {
    world: World,
    client: Client,
    runtime: Runtime,
    is_ext4: bool,
}

impl Bench {
    fn new(folder: &Path, program: &Path) -> Self {
        let mut world = World::below(folder);
        for name in ["everscand", "everscan", "everscan-runner"] {
            let link = world.path("bin").join(name);
            std::fs::remove_file(&link).unwrap();
            std::os::unix::fs::symlink(program.canonicalize().unwrap(), link).unwrap();
        }
        world.init_repository();
        world.push(&[("cost.yaml", Some(WORKFLOW))]);
        world.start_daemon();
        world.sync();
        world.start_runner(CAPACITY);
        let client = Client::new(world.url(), world.token().map(Secret::new)).unwrap();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        Self {
            world,
            client,
            runtime: runtime.enable_all().build().unwrap(),
            is_ext4: kind(folder) == "ext4",
        }
    }

    fn row(&mut self, jobs: usize) -> String {
        self.run(WARM_UP, || ());
        let alone = (0..ALONE).map(|_| self.run(1, || ()).0);
        let mut alone: Vec<Duration> = alone.collect();
        alone.sort_unstable();
        let times = || {
            std::thread::sleep(SETTLED);
            [self.daemon(), self.runner()].map(|pids| Times::of(&pids))
        };
        let before = times();
        let (quiet, after) = self.run(jobs, times);
        let each =
            |after: u64, before: u64| after.saturating_sub(before) as f64 * TICK_MS / jobs as f64;
        let daemon = each(after[0].own, before[0].own);
        let runner = each(after[1].own, before[1].own);
        let step = each(after[1].ended, before[1].ended);
        let counts = self.count(jobs);
        let idle = Idle::start();
        self.run(WARM_UP, || ());
        let (busy, ()) = self.run(jobs, || ());
        drop(idle);
        self.world.stop_runner();
        let rate = |time: Duration| jobs as f64 / time.as_secs_f64();
        format!(
            "{:.0} | {:.0} | {:.1} ms | {daemon:.2} / {runner:.2} / {step:.2} ms | {}",
            rate(quiet),
            rate(busy),
            alone[ALONE / 2].as_secs_f64() * 1_000.0,
            counts.unwrap_or_else(|_| "– | – | –".to_owned())
        )
    }

    /// Runs this many jobs. Returns their total time, and the result of `ended` at their end.
    fn run<T>(&self, jobs: usize, ended: impl FnOnce() -> T) -> (Duration, T) {
        self.runtime.block_on(async {
            let begun = Instant::now();
            let mut ids = Vec::with_capacity(jobs);
            for _ in 0..jobs {
                let (request, key) = (DispatchRequest::default(), Uuid::new_v4().to_string());
                let job = self.client.dispatch("cost", "nothing", &request, &key);
                ids.push(job.await.unwrap().id());
            }
            for id in &ids[jobs.saturating_sub(LAST)..] {
                while !self
                    .client
                    .await_job(*id)
                    .await
                    .unwrap()
                    .state
                    .is_terminal()
                {}
            }
            let taken = (begun.elapsed(), ended());
            for id in ids {
                let job = self.client.job(id).await.unwrap();
                assert_eq!(job.state, JobState::Succeeded, "{job:?}");
            }
            taken
        })
    }

    fn daemon(&self) -> Vec<u32> {
        vec![self.world.daemon_pid()]
    }

    /// The runner, and its children that are the same program.
    fn runner(&self) -> Vec<u32> {
        let runner = self.world.runner.as_ref().unwrap().id();
        let program = |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_child = |pid: &u32| {
            stat(*pid).is_some_and(|fields| fields[PARENT] == runner.to_string())
                && program(*pid) == program(runner)
        };
        std::iter::once(runner)
            .chain(all.filter(is_child))
            .collect()
    }

    /// The calls, syncs and inodes of a job, as columns.
    fn count(&self, jobs: usize) -> Result<String, String> {
        let script = self.world.path("script");
        std::fs::write(&script, "true\n").unwrap();
        let mut bash = perf(false);
        bash.args(["--", "bash", "--noprofile", "--norc", "-eo", "pipefail"]);
        let bash = counts(
            bash.arg(script)
                .output()
                .map_err(|error| error.to_string())?,
        )?;
        let daemon = Counting::start(&self.daemon(), self.is_ext4)?;
        let runner = Counting::start(&self.runner(), self.is_ext4)?;
        let (_, (daemon, runner)) = self.run(jobs, || {
            std::thread::sleep(SETTLED);
            (daemon.end(), runner.end())
        });
        let (daemon, runner) = (daemon?, runner?);
        let each = |counts: &Counts, event: &str| counts[event] as f64 / jobs as f64;
        let syncs =
            |counts: &Counts| -> f64 { SYNCS.map(|event| each(counts, event)).iter().sum() };
        let inodes = match self.is_ext4 {
            true => [&daemon, &runner].map(|counts| {
                format!(
                    "+{:.1} −{:.1}",
                    each(counts, INODES[0]),
                    each(counts, INODES[1])
                )
            }),
            false => ["–", "–"].map(str::to_owned),
        };
        Ok(format!(
            "{:.0} / {:.0} | {:.1} / {:.1} | {}",
            each(&daemon, CALLS),
            each(&runner, CALLS) - bash[CALLS] as f64,
            syncs(&daemon),
            syncs(&runner),
            inodes.join(" / ")
        ))
    }
}

/// The fields of `/proc/PID/stat` after the name of the program.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

const PARENT: usize = 1;
const OWN_TIMES: Range<usize> = 11..13;
const TIMES_OF_ENDED: Range<usize> = 13..15;

/// CPU times of some processes, in ticks. If a process ends, its time counts as the time of a step.
struct Times {
    own: u64,
    /// CPU time of their ended children.
    ended: u64,
}

impl Times {
    fn of(pids: &[u32]) -> Self {
        let all: Vec<_> = pids.iter().filter_map(|pid| stat(*pid)).collect();
        let sum = |times: Range<usize>| {
            let fields = all.iter().flat_map(|fields| &fields[times.clone()]);
            fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
        };
        Self {
            own: sum(OWN_TIMES),
            ended: sum(TIMES_OF_ENDED),
        }
    }
}

/// Counts of each event.
type Counts = BTreeMap<String, u64>;

/// `perf stat` of some processes, with their threads and children.
struct Counting(Child);

impl Counting {
    fn start(pids: &[u32], is_ext4: bool) -> Result<Self, String> {
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        let mut perf = perf(is_ext4);
        // It counts until the command ends.
        perf.args(["--pid", &pids.join(","), "--", "sh", "-c", "echo; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut perf = perf.spawn().map_err(|error| format!("perf: {error}"))?;
        let mut counts = String::new();
        let output = perf.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut counts).unwrap();
        let counting = Self(perf);
        match counts.is_empty() {
            true => counting.end().and(Err("perf counts nothing".to_owned())),
            false => Ok(counting),
        }
    }

    fn end(self) -> Result<Counts, String> {
        counts(self.0.wait_with_output().unwrap())
    }
}

fn perf(is_ext4: bool) -> Command {
    let syncs = SYNCS.iter();
    let inodes = INODES.iter().filter(|_| is_ext4);
    let events: Vec<&str> = [CALLS].iter().chain(syncs).chain(inodes).copied().collect();
    let mut perf = Command::new("perf");
    perf.args(["stat", "--field-separator", ",", "--event"])
        .arg(events.join(","));
    perf
}

/// The counts of `perf stat`. An error has its message.
fn counts(output: Output) -> Result<Counts, String> {
    let said = String::from_utf8_lossy(&output.stderr);
    let count = |line: &str| {
        let mut fields = line.split(',');
        let count = fields.next()?.parse().ok()?;
        Some((fields.nth(1)?.to_owned(), count))
    };
    let counts: Counts = said.lines().filter_map(count).collect();
    match counts.contains_key(CALLS) {
        true => Ok(counts),
        false => Err(format!("perf: {}", said.trim())),
    }
}

/// Processes that wait.
struct Idle(Vec<Child>);

impl Idle {
    fn start() -> Self {
        let start = |_| Command::new("sleep").arg("600").spawn().unwrap();
        Self((0..IDLE).map(start).collect())
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        for process in &mut self.0 {
            drop(process.kill());
            drop(process.wait());
        }
    }
}

/// The type of the file system of a folder.
fn kind(folder: &Path) -> String {
    let mut df = Command::new("df");
    let output = df.arg("--output=fstype").arg(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    said.lines().last().unwrap_or_default().to_owned()
}

/// An ext4 in a file, mounted until it is dropped.
struct Image(TempDir);

impl Image {
    /// An error has the reason why this machine cannot mount it.
    fn mount(folder: &Path) -> Result<Self, String> {
        let home = tempfile::tempdir_in(folder).map_err(|error| error.to_string())?;
        let (file, image) = (home.path().join("file"), Self(home));
        File::create(&file).unwrap().set_len(IMAGE_BYTES).unwrap();
        std::fs::create_dir(image.at()).unwrap();
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&file))?;
        let mut mount = Command::new("mount");
        run(mount.args(["-o", "loop"]).arg(file).arg(image.at()))?;
        Ok(image)
    }

    fn at(&self) -> PathBuf {
        self.0.path().join("ext4")
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        drop(run(Command::new("umount").arg("--lazy").arg(self.at())));
    }
}
