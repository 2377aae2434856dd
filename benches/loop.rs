//! The loop: the time from a success to the claim of the job that it starts, from a push to the active revision, and
//! from a slot with many schedules to their jobs. Daemon, runner and client are separate processes on one machine; each
//! figure is shown with its floor in the same run.
//!
//!     cargo bench --package daemon --bench loop [-- RUNS]
//!
//! - success → claim: from `finished_at` of a job to `started_at` of the job that its success made, both as recorded by
//!   the daemon, and so before their commits; one commit is in between. Floor: one append and fdatasync.
//! - push → active: from the start of `git push` until a waiting client, which polls the API, sees the revision. Floor:
//!   the same push to a repository that no daemon follows.
//! - schedules: from the slot to the `created_at` of the last of 1,000 jobs. Floor: the appends and fdatasyncs of the
//!   needed commits, with about thirty jobs per commit.

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
use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat, Timelike, Utc};
use client::{Client, JobFilter, Secret};
use support::World;
use uuid::Uuid;
use wire::{DispatchRequest, Job, Trigger};

const RUNS: usize = 100;
const WARM_UP: usize = 10;
const SCHEDULES: usize = 1_000;

/// Approximate number of scheduled jobs per commit: each takes three of its hundred records.
const A_COMMIT: usize = 30;

const CHAIN: &str = "scans:
  first:
    on: { dispatch: {} }
    steps:
      - run: 'true'
  second:
    on: { expr: scans.first.is_available() }
    steps:
      - run: 'true'
";

fn main() {
    let mut arguments = std::env::args().skip(1);
    let runs = arguments.find_map(|argument| argument.parse().ok().filter(|runs| *runs > 0));
    let runs = runs.unwrap_or(RUNS);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let world = World::with_workflow("chain.yaml", CHAIN);
    let secret = Secret::new(world.token().unwrap());
    let client = Client::new(world.url(), Some(secret)).unwrap();
    println!("                     p50         p95");
    runtime.block_on(successes(&world, &client, runs));
    runtime.block_on(pushes(&world, &client, runs));
    runtime.block_on(schedules(&world, &client));
}

/// From the success of a job to the claim of the job that it started.
async fn successes(world: &World, client: &Client, runs: usize) {
    let journal = File::create(world.path("floor")).unwrap();
    let (mut taken, mut floors) = (Vec::new(), Vec::new());
    for run in 0..WARM_UP + runs {
        let request = DispatchRequest::default();
        let key = format!("run-{run}");
        let first = client
            .dispatch("chain", "first", &request, &key)
            .await
            .unwrap();
        let first = finished(client, first.id()).await;
        let second = finished(client, newest(client, "second").await.id).await;
        if run >= WARM_UP {
            let between = second.started_at.unwrap() - first.finished_at.unwrap();
            taken.push(between.to_std().unwrap());
            floors.push(append(&journal));
        }
    }
    print("success → claim", taken);
    print("  append, fdatasync", floors);
}

/// From a push to the active revision.
async fn pushes(world: &World, client: &Client, runs: usize) {
    let runs = runs.min(RUNS / 2);
    let file = world.path("copy/workflows/pushed.yaml");
    clone(world, "repository", "copy");
    let bare = world.path("nobody.git").display().to_string();
    assert!(
        world
            .output("git", &["init", "--quiet", "--bare", &bare])
            .status
            .success()
    );
    let (mut taken, mut floors) = (Vec::new(), Vec::new());
    for run in 0..runs {
        std::fs::write(&file, CHAIN.replace("true", &format!("echo {run}"))).unwrap();
        git(world, "copy", &["add", "."]);
        git(world, "copy", &["commit", "--quiet", "--message", "Change"]);
        let begun = Instant::now();
        git(
            world,
            "copy",
            &["push", "--quiet", &bare, "HEAD:refs/heads/main"],
        );
        floors.push(begun.elapsed());
        let wanted = u64::try_from(run + 1).unwrap();
        let begun = Instant::now();
        git(
            world,
            "copy",
            &["push", "--quiet", "origin", "HEAD:refs/heads/main"],
        );
        while revision(client).await != Some(wanted) {}
        taken.push(begun.elapsed());
    }
    print("push → active", taken);
    print("  git push alone", floors);
}

/// From a slot to the last of its jobs.
async fn schedules(world: &World, client: &Client) {
    let now: DateTime<Utc> = std::time::SystemTime::now().into();
    // The minute after the next, so that all files are active before.
    let slot = now + Duration::from_secs(60 + 60 - u64::from(now.second()));
    let slot = slot.with_nanosecond(0).unwrap();
    let mut text = "scans:\n".to_owned();
    for scan in 0..SCHEDULES {
        let cron = format!("{} {} * * *", slot.minute(), slot.hour());
        let on = format!("{{ cron: '{cron}' }}");
        writeln!(
            text,
            "  s{scan}:\n    on: {on}\n    runs_on: [nobody]\n    steps: [{{ run: 'true' }}]"
        )
        .unwrap();
    }
    std::fs::write(world.path("copy/workflows/many.yaml"), text).unwrap();
    git(world, "copy", &["add", "."]);
    git(world, "copy", &["commit", "--quiet", "--message", "Many"]);
    git(
        world,
        "copy",
        &["push", "--quiet", "origin", "HEAD:refs/heads/main"],
    );
    world.sync();
    let last = loop {
        let jobs = due(client).await;
        if jobs.len() >= SCHEDULES {
            break jobs.iter().map(|job| job.created_at).max().unwrap();
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    let journal = File::create(world.path("floor")).unwrap();
    let floor: Duration = (0..SCHEDULES / A_COMMIT).map(|_| append(&journal)).sum();
    let slot_text = slot.to_rfc3339_opts(SecondsFormat::Secs, true);
    let took = (last - slot).to_std().unwrap();
    println!(
        "{SCHEDULES} schedules due at {slot_text}: all scheduled after {:.0} ms",
        ms(took)
    );
    println!(
        "  {} × append, fdatasync: {:.0} ms",
        SCHEDULES / A_COMMIT,
        ms(floor)
    );
}

/// All jobs of the workflow `many`. They are all from schedules.
async fn due(client: &Client) -> Vec<Job> {
    let filter = JobFilter {
        workflow: Some("many".to_owned()),
        ..JobFilter::default()
    };
    let mut jobs = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = client.jobs(&filter, Some(200), cursor.as_deref()).await;
        // The source may not be polled yet.
        let Ok(page) = page else { return jobs };
        jobs.extend(
            page.items
                .into_iter()
                .filter(|job| job.trigger == Trigger::Cron),
        );
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return jobs,
        }
    }
}

async fn newest(client: &Client, scan: &str) -> Job {
    let filter = JobFilter {
        scan: Some(scan.to_owned()),
        ..JobFilter::default()
    };
    let page = client.jobs(&filter, Some(1), None).await.unwrap();
    page.items.into_iter().next().unwrap()
}

async fn finished(client: &Client, job: Uuid) -> Job {
    loop {
        let job = client.await_job(job).await.unwrap();
        if job.state.is_terminal() {
            return job;
        }
    }
}

/// The number of the pushed workflow's revision.
async fn revision(client: &Client) -> Option<u64> {
    Some(client.workflow("pushed").await.ok()?.revision.number)
}

fn clone(world: &World, from: &str, to: &str) {
    // The pushed branch is checked out in the world's repository, which is otherwise unused.
    world.git(&["config", "receive.denyCurrentBranch", "ignore"]);
    let cloned = world.output("git", &["clone", "--quiet", from, to]);
    assert!(cloned.status.success());
}

fn git(world: &World, folder: &str, arguments: &[&str]) {
    let output = world.output("git", &[&["-C", folder], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// The floor of a commit.
fn append(mut journal: &File) -> Duration {
    let begun = Instant::now();
    journal.write_all(&[b'x'; 2048]).unwrap();
    journal.sync_data().unwrap();
    begun.elapsed()
}

fn print(what: &str, mut samples: Vec<Duration>) {
    samples.sort_unstable();
    let at = |percent: usize| ms(samples[(samples.len() * percent / 100).min(samples.len() - 1)]);
    println!("{what:<20} {:>7.2} ms {:>7.2} ms", at(50), at(95));
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
