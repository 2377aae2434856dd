//! The cost of a step's output, and of a search in it.
//!
//! The output: 100 MB in lines of 100 bytes, with ten secrets masked, from the job's claim to its end with a durable
//! log. The floor is the same script through a pipe into two files, like the two files of a real line: the runner's
//! spool and the log. The second file is synced. Daemon and runner are separate processes. The search: texts that are
//! in no line, in one line and in all lines of the log of one of these jobs, until the daemon's response with the count
//! and the first 50 matches. The floor is `grep -c` on the file.
//!
//!     cargo bench --package daemon --bench logs [-- RUNS]

#![expect(
    clippy::disallowed_methods,
    reason = "tests create files and start programs"
)]

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::{Client, LogFilter, Secret};
use support::World;

#[path = "../tests/support.rs"]
#[expect(
    dead_code,
    clippy::unwrap_used,
    reason = "the stories need the rest, and a failed measurement ends the program as well"
)]
mod support;

const RUNS: usize = 5;
const LINES: u64 = 1_000_000;
const LINE_BYTES: u64 = 100;
const SECRETS: usize = 10;

/// Prints the lines as fast as awk can.
const SCRIPT: &str = r#"awk 'BEGIN { s = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-abcdefghijklmnopqrstuvwxyz"; for (i = 0; i < 1000000; i++) printf "%09d %.89s\n", i, s }'"#;

/// The searches: a name, the flags of grep, the text, and the number of lines with the text.
const SEARCHES: [(&str, &str, &str, u64); 4] = [
    ("no line", "-cF", "Nowhere", 0),
    ("one, any case", "-ciF", "000500000", 1),
    ("all", "-cF", "XYZ-abc", LINES),
    ("all, any case", "-ciF", "xyz-abc", LINES),
];

type Failure = Box<dyn std::error::Error>;

#[expect(clippy::print_stdout, reason = "the figures are this program's output")]
fn main() -> Result<(), Failure> {
    let runs = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok().filter(|runs| *runs > 0))
        .unwrap_or(RUNS);
    // On the disk of the build, not in memory.
    let mut world = World::below(Path::new(env!("CARGO_TARGET_TMPDIR")));
    prepare(&mut world)?;
    let pids = [
        world.daemon_pid(),
        world.runner.as_ref().map_or(0, Child::id),
    ];
    println!("{LINES} lines of {LINE_BYTES} bytes, {SECRETS} secrets, {runs} runs");
    println!("                 job       floor     ratio   CPU of the daemon, of the runner");
    let (mut jobs, mut floors, mut last) = (Vec::new(), Vec::new(), None);
    for _ in 0..runs {
        let before = pids.map(cpu_time);
        let (id, job) = job(&world)?;
        last = Some(id);
        let after = pids.map(cpu_time);
        let floor = floor(&world.path("floor"))?;
        println!(
            "           {:>8.3} s {:>8.3} s {:>9.2}   {:.2} s, {:.2} s",
            job.as_secs_f64(),
            floor.as_secs_f64(),
            job.as_secs_f64() / floor.as_secs_f64(),
            after[0] - before[0],
            after[1] - before[1],
        );
        jobs.push(job);
        floors.push(floor);
    }
    let (job, floor) = (median(jobs), median(floors));
    println!(
        "median     {:>8.3} s {:>8.3} s {:>9.2}",
        job.as_secs_f64(),
        floor.as_secs_f64(),
        job.as_secs_f64() / floor.as_secs_f64()
    );
    let id = last.ok_or("no job was run")?;
    println!("search               daemon       floor     ratio");
    for (what, flags, text, lines) in SEARCHES {
        let (daemon, floor) = search(&world, &id, (flags, text), lines, runs)?;
        println!(
            "{what:<16} {:>8.3} s {:>8.3} s {:>9.2}",
            daemon.as_secs_f64(),
            floor.as_secs_f64(),
            daemon.as_secs_f64() / floor.as_secs_f64()
        );
    }
    for (name, pid) in ["daemon", "runner"].into_iter().zip(pids) {
        println!("{name}: at most {} resident", most_resident(pid)?);
    }
    Ok(())
}

/// A daemon and a runner with a scan that prints and reads the secrets.
fn prepare(world: &mut World) -> Result<(), Failure> {
    let key = world.path("secret-key").display().to_string();
    let made = world.output("everscand", &["secret-key", "make", &key]);
    if !made.status.success() {
        return Err("no secret key was made".into());
    }
    world.daemon_key = Some("secret-key".to_owned());
    let variables: String = (0..SECRETS)
        .map(|n| format!("      KEY{n}: ${{{{ secrets.KEY{n} }}}}\n"))
        .collect();
    let workflow = format!(
        "scans:\n  print:\n    on:\n      dispatch: {{}}\n    env:\n{variables}    steps:\n      - run: |\n          {SCRIPT}\n"
    );
    world.init_repository();
    world.push(&[("print.yaml", Some(&workflow))]);
    world.start_daemon();
    for n in 0..SECRETS {
        let secret = world.path("secret");
        std::fs::write(&secret, format!("s3cr3t-{n}-of-a-usual-length-{n:04}"))?;
        let file = secret.display().to_string();
        world.everscan(&["secret", "set", &format!("KEY{n}"), "--file", &file]);
    }
    world.sync();
    world.start_runner(1);
    Ok(())
}

/// The time from the claim to the end, as recorded by the daemon. The log must be complete.
fn job(world: &World) -> Result<(String, Duration), Failure> {
    let id = world.dispatch("print", "print", &[]);
    let job = world.finished(&id);
    if job["state"] != "succeeded" {
        return Err(format!("a job ended as {job}").into());
    }
    if job["log"]["records"] != LINES {
        return Err(format!("a log is incomplete: {}", job["log"]).into());
    }
    let at = |name: &str| -> Result<chrono::DateTime<chrono::Utc>, Failure> {
        let text = job[name].as_str().ok_or("a time is missing")?;
        Ok(text.parse()?)
    };
    let took = (at("finished_at")? - at("started_at")?).to_std()?;
    Ok((id, took))
}

/// The script through a pipe into one file and from there into a second file, which is synced.
fn floor(folder: &Path) -> Result<Duration, Failure> {
    std::fs::create_dir_all(folder)?;
    let (spool_path, log_path) = (folder.join("spool"), folder.join("log"));
    let begun = Instant::now();
    let mut script = Command::new("bash")
        .args(["-c", SCRIPT])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = script.stdout.take().ok_or("no pipe")?;
    let (mut spool, mut log) = (File::create(&spool_path)?, File::create(&log_path)?);
    let mut spooled = File::open(&spool_path)?;
    let mut piece = vec![0; 64 * 1024];
    let mut bytes = 0;
    loop {
        let length = output.read(&mut piece)?;
        if length == 0 {
            break;
        }
        spool.write_all(&piece[..length])?;
        spooled.read_exact(&mut piece[..length])?;
        log.write_all(&piece[..length])?;
        bytes += length as u64;
    }
    script.wait()?;
    log.sync_data()?;
    let took = begun.elapsed();
    std::fs::remove_dir_all(folder)?;
    if bytes == LINES * LINE_BYTES {
        Ok(took)
    } else {
        Err(format!("the script printed {bytes} bytes").into())
    }
}

/// The median times of the daemon's response and of grep. Both counts must be right.
fn search(
    world: &World,
    id: &str,
    (flags, text): (&str, &str),
    lines: u64,
    runs: usize,
) -> Result<(Duration, Duration), Failure> {
    let client = Client::new(world.url(), world.token().map(Secret::new))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let jobs = world.path("state/jobs").display().to_string();
    let file = format!("*/{id}/log.jsonl");
    let found = world.output("find", &[&jobs, "-path", &file]);
    let file = String::from_utf8(found.stdout)?.trim().to_owned();
    let (mut answers, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let begun = Instant::now();
        let filter = LogFilter::default();
        let found =
            runtime.block_on(client.search_log(id.parse()?, text, &filter, Some(50), None))?;
        answers.push(begun.elapsed());
        if (found.total, found.records) != (lines, LINES) {
            return Err(format!("{text} was found {} times", found.total).into());
        }
        let begun = Instant::now();
        let counted = world.output("grep", &[flags, text, &file]);
        floors.push(begun.elapsed());
        if String::from_utf8(counted.stdout)?.trim() != lines.to_string() {
            return Err(format!("grep does not find {text} in {lines} lines").into());
        }
    }
    Ok((median(answers), median(floors)))
}

fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

/// Processor time of a process in seconds.
fn cpu_time(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The fields after the name, which may contain any characters.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum();
    // Linux reports hundredths of a second on every machine.
    ticks as f64 / 100.0
}

/// The peak memory of a process, as reported by the kernel.
fn most_resident(pid: u32) -> Result<String, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .ok_or("no VmHWM")?;
    Ok(line.trim_start_matches("VmHWM:").trim().to_owned())
}
