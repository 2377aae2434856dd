//! Simulates the daemon and its runners in virtual time and on one thread. A seed determines all events: lost, late and
//! repeated requests, crashes of both sides, jumps of the wall clock, full disks, pushes, and actions of people. After
//! every step an oracle checks the invariants. At the end, when the faults have stopped, all jobs must finish.
//!
//! `EVERSCAN_SEEDS` is the number of seeds. `EVERSCAN_SEED` replays one seed and prints its steps.

mod choices;
mod daemon;
mod oracle;
mod runners;
mod scenario;
mod steps;
mod time;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::timeout;

use self::steps::Simulation;

/// Seeds per run. EVERSCAN_SEEDS overrides this number.
const SEEDS: u64 = 100;

/// Steps with faults in each half of a seed.
const STEPS: usize = 100;

/// How many steps of a failed seed are printed.
const PRINTED: usize = 40;

/// The latest steps, for the report of a failure.
#[derive(Default)]
struct Trace {
    steps: u64,
    last: VecDeque<String>,
    prints: bool,
}

impl Trace {
    #[expect(clippy::print_stderr, reason = "a replay prints its steps")]
    fn note(&mut self, step: String) {
        self.steps += 1;
        if self.prints {
            eprintln!("{:5} {step}", self.steps);
        }
        self.last.push_back(step);
        if self.last.len() > PRINTED {
            self.last.pop_front();
        }
    }
}

/// Runs a seed. If it fails, the error has its last steps.
fn run(seed: u64, prints: bool) -> Result<[usize; 5], String> {
    let trace = Arc::new(Mutex::new(Trace {
        prints,
        ..Trace::default()
    }));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let simulation = async {
        let mut simulation = Simulation::start(seed, trace.clone()).await;
        for _ in 0..2 {
            for _ in 0..STEPS {
                simulation.step().await;
            }
            simulation.settle_all().await;
        }
        simulation.end().await
    };
    // Tokio's clock is paused. It jumps to this timeout only if all tasks wait.
    let bounded = async { timeout(Duration::from_secs(1), simulation).await };
    let simulated = catch_unwind(AssertUnwindSafe(|| {
        let simulated = runtime.block_on(bounded);
        simulated.expect("deadlock: all tasks wait")
    }));
    simulated.map_err(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_owned()));
        let trace = trace.lock().unwrap();
        let first = trace.steps + 1 - trace.last.len() as u64;
        let last = trace.last.iter().zip(first..);
        let last: Vec<String> = last.map(|(step, at)| format!("{at:5} {step}")).collect();
        format!(
            "seed {seed} failed at step {}:\n{}\n{}\nEVERSCAN_SEED={seed} repeats it",
            trace.steps,
            last.join("\n"),
            said.unwrap_or_default()
        )
    })
}

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap())
}

#[test]
fn despite_all_faults_nothing_is_lost_and_nothing_happens_twice() {
    if let Some(seed) = number("EVERSCAN_SEED") {
        run(seed, true).unwrap_or_else(|failure| panic!("{failure}"));
        return;
    }
    let seeds = number("EVERSCAN_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(0);
    let work = || {
        let mut counts = [0; 5];
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return Ok(counts);
            }
            // The first failure ends the run.
            let run = run(seed, false).inspect_err(|_| next.store(seeds, Ordering::Relaxed))?;
            for (count, of_run) in counts.iter_mut().zip(run) {
                *count += of_run;
            }
        }
    };
    let halves: Result<Vec<_>, String> = std::thread::scope(|scope| {
        let halves = [(), ()].map(|()| scope.spawn(work));
        halves
            .into_iter()
            .map(|half| half.join().unwrap())
            .collect()
    });
    let halves = halves.unwrap_or_else(|failure| panic!("{failure}"));
    let sum = |of: usize| halves.iter().map(|it| it[of]).sum::<usize>() as u64;
    assert!(sum(0) > seeds, "too few jobs succeed");
    assert!(sum(1) > 10 * seeds, "too few messages are sent");
    assert!(sum(2) > seeds / 10, "users make too few jobs");
    assert!(sum(3) > seeds / 10, "steps make too few jobs");
    assert!(sum(4) > seeds, "interactions make too few jobs");
}
