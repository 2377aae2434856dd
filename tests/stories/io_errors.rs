//! The real daemon gets a disk error from each of its system calls: the first of a kind, the second, and so on until a
//! run ends before the error. The daemon may stop, with the right exit code, or continue. It may not panic, and after
//! the next start everything that it acknowledged must exist.
//!
//!     EVERSCAN_IO_ERRORS=all cargo test -p daemon --test stories io_errors
//!
//! tests every call, and `EVERSCAN_IO_ERRORS=rename` every call of one kind; otherwise a few calls of each kind are
//! chosen at random. `strace` injects the errors. It counts the calls of each thread separately, so a run may get
//! several errors. Runs with errors from the start never reach the calls of later threads, so other runs get their
//! errors once they serve.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::chance::Chance;
use crate::machine::{run, say, skip};
use crate::promises::Finding;
use crate::site::Site;
use crate::support::{eventually, signal};

/// Calls whose failure leaves the content of the disk unknown. A failure ends the daemon.
const SYNCS: &[&str] = &["fdatasync", "fsync", "syncfs"];

/// System calls, by their names in `strace`, and their errors. The store writes files only with `pwrite64`.
const FAULTS: &[(&str, &[&str])] = &[
    ("pwrite64", &["EIO", "ENOSPC"]),
    ("fallocate", &["EIO", "ENOSPC"]),
    ("fdatasync", &["EIO", "ENOSPC"]),
    ("fsync", &["EIO", "ENOSPC"]),
    ("syncfs", &["EIO", "ENOSPC"]),
    ("/^rename", &["EIO", "ENOSPC"]),
    ("/^open", &["EIO", "ENOSPC"]),
    ("/^mkdir", &["EIO", "ENOSPC"]),
    ("/^unlink", &["EIO"]),
    ("pread64", &["EIO"]),
];

/// In addition to the first call, two calls are chosen at random: one that most runs have, and a later one.
const EARLY: u64 = 4;
const LATE: u64 = 40;

/// More calls of a kind than a thread makes in a run.
const CALLS: u64 = 2_000;

/// Kinds of faults that are tested in parallel.
const WORLDS: usize = 4;

/// How long a daemon may work before it is stopped: a full disk makes it pause.
const WORK: Duration = Duration::from_secs(10);

/// How often to check whether the daemon has ended.
const LOOK: Duration = Duration::from_millis(10);

/// The moment from which calls fail.
#[derive(Clone, Copy, Debug)]
enum Since {
    Start,
    Serving,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug)]
struct Fault {
    call: &'static str,
    error: &'static str,
    since: Since,
}

/// The exit codes in `docs/operating.md` for a daemon whose disk, which also has its configuration, has errors.
const EXIT_CODES: &[i32] = &[0, 1, 2, 12, 14, 15];

#[test]
fn a_disk_error_at_any_call_loses_nothing() {
    if let Err(reason) = try_tracing() {
        return skip("errors of the disk", &reason);
    }
    let seed = Chance::seed();
    let mut chance = Chance::new(seed);
    let chosen = std::env::var("EVERSCAN_IO_ERRORS").ok();
    let is_chosen = |call: &str| match chosen.as_deref() {
        None | Some("all") => true,
        Some(kind) => call.contains(kind),
    };
    let mut queue = Vec::new();
    for (call, errors) in FAULTS.iter().filter(|(call, _)| is_chosen(call)) {
        for error in *errors {
            let faults = [Since::Start, Since::Serving].map(|since| {
                let early = 2 + chance.below(EARLY);
                let late = early + 1 + chance.below(LATE);
                let calls: Vec<u64> = if chosen.is_some() {
                    (1..=CALLS).collect()
                } else {
                    vec![1, early, late]
                };
                (Fault { call, error, since }, calls)
            });
            queue.push(faults);
        }
    }
    let (queue, findings) = (Mutex::new(queue), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..WORLDS {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().pop();
                    let Some(faults) = next else { break };
                    let found = meet(faults);
                    findings.lock().unwrap().extend(found);
                }
            });
        }
    });
    let findings = findings.into_inner().unwrap();
    assert!(findings.is_empty(), "seed {seed}: {findings:?}");
}

/// Runs one daemon after the other in one world. Each gets one of the errors at one of its calls,
/// if it makes that many calls.
fn meet(faults: [(Fault, Vec<u64>); 2]) -> Vec<Finding> {
    let mut world = Site::prepare();
    world.start_daemon();
    let mut site = Site::of(world);
    let mut findings = Vec::new();
    for (fault, calls) in faults {
        let Fault { call, error, since } = fault;
        let found_before = findings.len();
        let mut lives = 0;
        for nth in calls {
            let (met, found) = live(&mut site, fault, nth);
            for finding in &found {
                say(&format!("{fault:?}, call {nth}: {finding}"));
            }
            findings.extend(found);
            if !met {
                break;
            }
            lives += 1;
        }
        say(&format!(
            "io errors | {call} | {error} | since {since:?} | {lives} lives | {} findings",
            findings.len() - found_before
        ));
    }
    findings.extend(site.end());
    findings
}

/// One run whose `nth` calls fail, after a run that left changes to redo. Returns whether a call
/// failed, and the findings.
fn live(site: &mut Site, fault: Fault, nth: u64) -> (bool, Vec<Finding>) {
    site.world.kill_daemon();
    let trace = site.world.path("trace");
    let said_before = site.world.daemon_log().len();
    let strace = strace(&trace, fault, nth);
    let mut tracer = None;
    if let Since::Start = fault.since {
        // The tracer is not the daemon's parent, so signals reach the daemon, and the exit status is its own.
        site.world.daemon_through = [&strace[..], &["-D".to_owned()]].concat();
    }
    site.world.spawn_daemon();
    if site.world.await_daemon() {
        if let Since::Serving = fault.since {
            tracer = Some(attach(site, &strace));
        }
        let mut load = site.load_once();
        let began = Instant::now();
        while site.world.is_daemon_alive() && !load.is_over() && began.elapsed() < WORK {
            std::thread::sleep(LOOK);
        }
        if site.world.is_daemon_alive() {
            signal(site.world.daemon_pid(), "TERM");
        }
    }
    let status = site.world.daemon_ended();
    if let Some(mut tracer) = tracer {
        tracer.wait().unwrap();
    }
    site.world.daemon_through.clear();
    let traced = std::fs::read_to_string(&trace).unwrap_or_default();
    let met = traced.contains("(INJECTED)");
    let log = site.world.daemon_log();
    let said = log.get(said_before..).unwrap_or_default();
    let mut findings = Vec::new();
    if !is_expected(fault, met, status, said) {
        findings.push(Finding::Wrong(format!("{status}: {said}")));
    }
    site.hold_runner();
    findings.extend(site.restart());
    site.release_runner();
    (met, findings)
}

/// Whether a daemon with this output may end with this status.
fn is_expected(fault: Fault, met: bool, status: ExitStatus, said: &str) -> bool {
    // The loader, which runs before the program, has its own exit code.
    let is_unloaded = said.contains("error while loading shared libraries");
    let is_documented = status.code().is_some_and(|code| EXIT_CODES.contains(&code));
    let goes_on = status.success() && met && SYNCS.contains(&fault.call);
    (is_documented || is_unloaded) && !goes_on && !said.contains("panicked at")
}

/// The arguments of `strace` that make calls fail.
fn strace(trace: &Path, fault: Fault, nth: u64) -> Vec<String> {
    let Fault { call, error, .. } = fault;
    let mut words = ["strace", "-f", "-qq", "-o"].map(str::to_owned).to_vec();
    words.push(trace.display().to_string());
    words.extend(["-e".to_owned(), format!("trace={call}")]);
    words.push("-e".to_owned());
    words.push(format!("inject={call}:error={error}:when={nth}"));
    words
}

/// An error says why this machine cannot trace programs.
fn try_tracing() -> Result<(), String> {
    run(Command::new("strace").args(["-f", "-o", "/dev/null", "true"]))?;
    // It waits for input that never comes.
    let mut waiting = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let mut tracer = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-p"])
        .arg(waiting.id().to_string())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut has_left = false;
    eventually("tracing", || {
        has_left = tracer.try_wait().unwrap().is_some();
        has_left || is_traced(waiting.id())
    });
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    let tracer = tracer.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&tracer.stderr);
    if has_left {
        Err(said.trim().to_owned())
    } else {
        Ok(())
    }
}

/// Whether all threads of a process are traced.
fn is_traced(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.flatten().all(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status"));
        !status.unwrap_or_default().contains("TracerPid:\t0\n")
    })
}

/// Makes calls fail in all threads of a serving daemon.
fn attach(site: &mut Site, strace: &[String]) -> Child {
    let pid = site.world.daemon_pid();
    let mut command = site.world.command(&strace[0]);
    command.args(&strace[1..]).arg("-p").arg(pid.to_string());
    let mut tracer = command.spawn().unwrap();
    eventually("tracing", || {
        let ended = tracer.try_wait().unwrap();
        // An error may end the daemon before all of it is traced.
        if !site.world.is_daemon_alive() {
            return true;
        }
        assert_eq!(ended, None, "the tracer ended while the daemon runs");
        is_traced(pid)
    });
    tracer
}
