//! Measures how a project with 300 costly expressions slows down another project: the time from a dispatch to its
//! durable response on an idle daemon, during the evaluations, and, as the floor, while a thread of another process
//! spins.
//!
//!     cargo bench --package daemon --bench beside [-- RUNS]
//! The p99 during the evaluations must be at most twice the p99 on an idle daemon, or close to the floor if the floor
//! is higher (decision 0012).

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "figures are this program's output, and a failed measurement ends it"
)]

#[path = "../tests/support.rs"]
#[expect(dead_code, reason = "the stories need the rest")]
mod support;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use client::{Client, Secret};
use support::{World, eventually};
use wire::DispatchRequest;

const RUNS: usize = 1_000;
const WARM_UP: usize = 50;
const COSTLY: usize = 300;

/// Dispatches before and after a success of the scan that all expressions read. They take less time than the evaluations.
const ROUND: usize = 100;

const QUIET: &str = "scans:\n  one:\n    on: { dispatch: {} }\n    runs_on: [nobody]\n    steps: [{ run: 'true' }]\n";

/// Each expression goes through 10,000 pairs and is evaluated at each success. Only the expression of the last scan is
/// true.
fn costly() -> String {
    let mut text =
        "scans:\n  source:\n    on: { dispatch: {} }\n    steps: [{ run: 'true' }]\n".to_owned();
    let zeros = format!("[{}]", ["0"; 100].join(","));
    let pairs = format!("size(scans.source) > 0 && {zeros}.all(a, {zeros}.all(b, a == b))");
    let never = (1..COSTLY).map(|number| (format!("f{number}"), "1 == 2"));
    for (name, last) in never.chain([("last".to_owned(), "1 == 1")]) {
        let on = format!("{{ expr: '{pairs} && {last}' }}");
        writeln!(text, "  {name}: {{ on: {on}, steps: [{{ run: 'true' }}] }}").unwrap();
    }
    text
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let runs = arguments.find_map(|argument| argument.parse().ok().filter(|runs| *runs > 0));
    let runs = runs.unwrap_or(RUNS);
    // On the disk of the build, not in memory.
    let mut world = World::below(Path::new(env!("CARGO_TARGET_TMPDIR")));
    world.init_repository();
    let repository = world.path("repository");
    world.daemon_config = Some(format!(
        "sources:\n  - {{ name: other, url: '{}', path: other }}\n",
        repository.display()
    ));
    std::fs::create_dir(repository.join("other")).unwrap();
    std::fs::write(repository.join("other/quiet.yaml"), QUIET).unwrap();
    world.push(&[("costly.yaml", Some(&costly()))]);
    world.start_daemon();
    world.sync();
    world.everscan(&["source", "sync", "other", "--wait"]);
    world.start_runner(1);
    let client = Client::new(world.url(), world.token().map(Secret::new)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut keys = 0..;
    let mut dispatches = |count: usize| -> Vec<Duration> {
        let dispatch = async |key: usize| {
            let (request, key) = (DispatchRequest::default(), format!("run-{key}"));
            let begun = Instant::now();
            client
                .dispatch("quiet", "one", &request, &key)
                .await
                .unwrap();
            begun.elapsed()
        };
        let keys = keys.by_ref().take(count);
        keys.map(|key| runtime.block_on(dispatch(key))).collect()
    };
    dispatches(WARM_UP);
    let [mut quiet, mut spun, mut beside] = [const { Vec::new() }; 3];
    for round in 1.. {
        quiet.extend(dispatches(ROUND));
        spun.extend(while_spinning(|| dispatches(ROUND)));
        world.succeed("costly", "source", &[]);
        beside.extend(dispatches(ROUND));
        eventually("all expressions are evaluated", || {
            world.jobs_of("costly", "last").len() == round
        });
        if beside.len() >= runs {
            break;
        }
    }
    println!("dispatch → answer    p50         p99");
    let rows = [("quiet", quiet), ("spinning", spun), ("beside", beside)];
    let [quiet, _, beside] = rows.map(|(name, mut taken)| {
        taken.sort_unstable();
        let at = |percent: usize| taken[taken.len() * percent / 100].as_secs_f64() * 1_000.0;
        println!("{name:<16} {:>8.2} ms {:>8.2} ms", at(50), at(99));
        at(99)
    });
    println!("ratio of p99     {:>8.2}", beside / quiet);
}

/// Runs `work` while a thread of this process only counts.
fn while_spinning<T>(work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        done
    })
}
