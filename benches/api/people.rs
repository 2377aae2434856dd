//! What people cost: a request with a token of this build and of an earlier one, and the same projects with and without
//! 10,000 users.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use client::{Client, Secret};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use wire::{CreateUser, Role};

use crate::connection::Target;
use crate::figures::{Times, memory, ms};
use crate::support::World;

const PROJECTS: usize = 1_000;
const USERS: usize = 10_000;

/// Users that are made at the same time.
const CLIENTS: usize = 64;

const STARTS: usize = 5;
const ROUNDS: usize = 6;
const REQUESTS: usize = 5_000;

const WORKFLOW: &str = "scans: { idle: { on: { dispatch: {} }, steps: [{ run: 'true' }] } }\n";

pub(crate) fn run() {
    let runtime = Runtime::new().unwrap();
    println!("people");
    let earlier = std::env::args().skip_while(|argument| argument != "--program");
    match earlier.skip(1).map(PathBuf::from).next() {
        Some(earlier) => requests(&runtime, &earlier),
        None => println!("  SKIP an earlier build: none is named with --program"),
    }
    users(&runtime);
}

/// A world with a daemon and the repository of one workflow.
fn world(program: Option<&Path>, config: Option<String>) -> World {
    let mut world = World::below(Path::new(env!("CARGO_TARGET_TMPDIR")));
    if let Some(program) = program {
        let link = world.path("bin/everscand");
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(program.canonicalize().unwrap(), link).unwrap();
    }
    world.init_repository();
    world.push(&[("bench.yaml", Some(WORKFLOW))]);
    world.daemon_config = config;
    world.start_daemon();
    world.sync();
    world
}

fn target(world: &World) -> Target {
    Target {
        address: world.address(),
        token: world.token().unwrap(),
    }
}

/// A request of one job with a token, in turns at both builds.
fn requests(runtime: &Runtime, earlier: &Path) {
    let worlds = [
        ("earlier build", world(Some(earlier), None)),
        ("this build", world(None, None)),
    ];
    let targets = worlds.each_ref().map(|(what, world)| {
        let target = target(world);
        let request = runtime.block_on(idle_job(&target));
        (*what, target, request)
    });
    for _ in 0..ROUNDS {
        for (what, target, request) in &targets {
            let took = runtime.block_on(read(target, request));
            println!("  {what:<14}: a request with a token, p50 {took:?}");
        }
    }
}

/// The request of a job that waits.
async fn idle_job(target: &Target) -> Vec<u8> {
    let request = target.request(
        "POST",
        "/v0/workflows/main%2Fbench/scans/idle/dispatch",
        "",
        "{}",
    );
    let answer = target.connect().await.ask(&request).await;
    let job = answer.json::<wire::DispatchResponse>().job.id();
    target.request("GET", &format!("/v0/jobs/{job}"), "", "")
}

/// The median time of a request, one after the other.
async fn read(target: &Target, request: &[u8]) -> Duration {
    let mut connection = target.connect().await;
    let mut samples = Vec::with_capacity(REQUESTS);
    for _ in 0..REQUESTS {
        let begun = Instant::now();
        assert_eq!(connection.ask(request).await.status, 200);
        samples.push(begun.elapsed());
    }
    Times::of(samples).at(50)
}

fn users(runtime: &Runtime) {
    let mut world = world(None, Some(String::new()));
    let repository = world.path("repository").display().to_string();
    let mut sources = "sources:\n".to_owned();
    for project in 1..PROJECTS {
        writeln!(
            sources,
            "  - {{ name: p{project}, url: {repository}, interval: 24h }}"
        )
        .unwrap();
    }
    world.stop_daemon();
    world.daemon_config = Some(sources);
    world.start_daemon();
    runtime.block_on(ready(&world));
    println!("  {PROJECTS} projects");
    report(runtime, &mut world, "no users");
    let begun = Instant::now();
    runtime.block_on(invite(&world));
    println!("    {USERS} users made in {:?}", begun.elapsed());
    report(runtime, &mut world, "with users");
}

fn client(world: &World) -> Client {
    Client::new(world.url(), world.token().map(Secret::new)).unwrap()
}

/// Waits until each project has its workflow.
async fn ready(world: &World) {
    let client = client(world);
    loop {
        let sources = client.sources().await.unwrap();
        if sources.len() == PROJECTS && sources.iter().all(|source| source.tip.is_some()) {
            return;
        }
        // A pause, so that this client uses little processor time.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Makes the users, each with a role in two projects.
async fn invite(world: &World) {
    let client = client(world);
    let mut making = JoinSet::new();
    for maker in 0..CLIENTS {
        let client = client.clone();
        making.spawn(async move {
            for n in (maker..USERS).step_by(CLIENTS) {
                let project = |n: usize| format!("p{}", 1 + n % (PROJECTS - 1));
                let roles = [
                    (project(n), Role::Operator),
                    (project(n * 7 + 3), Role::Viewer),
                ];
                let user = CreateUser {
                    name: format!("u{n}"),
                    service: true,
                    roles: roles.into(),
                    ..CreateUser::default()
                };
                client.create_user(&user).await.unwrap();
            }
        });
    }
    making.join_all().await;
}

/// Times of starts, memory after the last, and the time of a request.
fn report(runtime: &Runtime, world: &mut World, what: &str) {
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        world.stop_daemon();
        let begun = Instant::now();
        world.start_daemon();
        starts.push(begun.elapsed());
        runtime.block_on(ready(world));
    }
    let kilobytes = memory(world.daemon_pid(), "VmRSS:");
    let target = target(world);
    let request = runtime.block_on(idle_job(&target));
    let took = runtime.block_on(read(&target, &request));
    println!(
        "    {what:<10}: start p50 {:.0} ms; memory {:.1} MB; a request with a token, p50 {took:?}",
        ms(Times::of(starts).at(50)),
        kilobytes / 1024.0
    );
}
