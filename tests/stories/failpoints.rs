//! Kills the real daemon, as by `kill -9`, at every failpoint: during its first start on an empty folder, and while it
//! works. Each time the next daemon must start and have everything that was acknowledged.
//!
//!     EVERSCAN_FAILPOINT_TIMES=20 cargo test -p daemon --test stories failpoints
//! kills it at each of the first twenty passes of each point instead of at one random pass.

use std::os::unix::process::ExitStatusExt;
use std::sync::Mutex;

use store::failpoint::POINTS;
use wire::JobState;

use crate::chance::Chance;
use crate::machine::say;
use crate::promises::Finding;
use crate::site::Site;
use crate::support::{World, eventually, lines, signal};

/// Number of parallel worlds: a starting daemon mostly waits for the disk.
const WORLDS: usize = 4;

/// One of the first passes of a point is chosen at random.
const PASSES: u64 = 3;

/// If a daemon does not reach its point, it is stopped after this many set numbers: enough to fill
/// more than the first segment of its journal.
const NUMBERS: u64 = 90;

/// An undisturbed daemon is stopped after this many successful jobs: they pass the points of logs and artifacts.
const JOBS: usize = 3;

#[test]
fn a_daemon_killed_at_any_failpoint_loses_nothing() {
    let seed = Chance::seed();
    let mut chance = Chance::new(seed);
    let times = std::env::var("EVERSCAN_FAILPOINT_TIMES").map(|times| times.parse().unwrap());
    let queue: Vec<(&str, u64)> = POINTS
        .iter()
        .flat_map(|point| match times {
            Ok(times) => (1..=times).map(|nth| (*point, nth)).collect(),
            Err(_) => vec![(*point, 1 + chance.below(PASSES))],
        })
        .collect();
    let ends = queue.len();
    let (queue, failures) = (Mutex::new(queue), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..WORLDS {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().pop();
                    let Some((point, nth)) = next else { break };
                    let found = end_at(point, nth);
                    let mut failures = failures.lock().unwrap();
                    failures.extend(found.into_iter().map(|found| (point, nth, found)));
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    for (point, nth, finding) in &failures {
        say(&format!("ended at {point}:{nth}: {finding}"));
    }
    assert!(failures.is_empty(), "of {ends} ends, seed {seed}");
}

/// Kills a daemon at its first pass of the point on an empty folder, and at its `nth` pass under load.
fn end_at(point: &str, nth: u64) -> Vec<Finding> {
    let mut world = Site::prepare();
    arm(&mut world, point, 1);
    let mut died = live(&mut world, |world| {
        // The daemon may end during any of these.
        let dispatch = ["scan", "dispatch", "count", "count", "--input", "tag=young"];
        world.output("everscan", &["source", "sync", "main", "--wait"]);
        if world.is_daemon_alive() {
            world.output("everscan", &dispatch);
        }
        if world.is_daemon_alive() {
            world.try_to_register_runner("young", 1);
        }
    });
    world.daemon_variables.clear();
    world.start_daemon();

    let mut site = Site::of(world);
    let load = site.load();
    let ran = site.world.path("ran");
    eventually("some work", || lines(&ran).len() > 2);
    drop(load);
    let mut findings = Vec::new();
    // Rare points may not be passed `nth` times, or only by a start and a stop without a backup.
    for (nth, is_disturbed) in [(nth, true), (1, false)] {
        // The next start must redo some changes.
        site.world.kill_daemon();
        arm(&mut site.world, point, nth);
        let begin = site.loader();
        let mut load = is_disturbed.then(&begin);
        let promises = site.promises.clone();
        let number = || promises.lock().unwrap().number();
        let enough = number() + NUMBERS;
        let states = || promises.lock().unwrap().states();
        let known = states();
        let came_and_succeeded = || {
            let mut now = states();
            now.retain(|job, state| *state == JobState::Succeeded && !known.contains_key(job));
            now.len()
        };
        let died_at_work = live(&mut site.world, |world| {
            load.get_or_insert_with(&begin);
            let mut last = number();
            while last < enough && world.is_daemon_alive() {
                eventually("the next number", || {
                    number() > last || !world.is_daemon_alive()
                });
                last = number();
            }
            if !is_disturbed {
                eventually("some new successes", || {
                    came_and_succeeded() >= JOBS || !world.is_daemon_alive()
                });
                load = None;
            }
        });
        drop(load);
        site.world.daemon_variables.clear();
        site.hold_runner();
        findings.extend(site.restart());
        site.release_runner();
        died |= died_at_work;
        if died_at_work {
            break;
        }
    }
    findings.extend(site.end());
    if !died {
        findings.push(Finding::Lost("the point: no daemon reached it".to_owned()));
    }
    findings
}

fn arm(world: &mut World, point: &str, nth: u64) {
    let armed = format!("{point}:{nth}");
    world.daemon_variables = vec![("EVERSCAND_FAILPOINT".to_owned(), armed)];
}

/// Starts a daemon, lets it work and stops it. Returns true if it was killed at its point. Any other end is an error.
fn live(world: &mut World, work: impl FnOnce(&mut World)) -> bool {
    world.spawn_daemon();
    if world.await_daemon() {
        work(world);
        if world.is_daemon_alive() {
            signal(world.daemon_pid(), "TERM");
        }
    }
    let status = world.daemon_ended();
    let killed = status.signal() == Some(9);
    assert!(
        killed || status.success(),
        "{status}: {}",
        world.daemon_log()
    );
    killed
}
