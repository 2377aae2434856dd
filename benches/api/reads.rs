//! Reading jobs.

use std::time::{Duration, Instant};

use wire::JobState;

use crate::bare::Bare;
use crate::connection::Target;
use crate::figures::Times;
use crate::stage::Stage;

/// Parallel clients, and the duration.
const CLIENTS: usize = 8;
const SPAN: Duration = Duration::from_secs(2);
const ROUNDS: usize = 3;

/// Finished jobs of a short and a long history.
const SHORT: usize = 200;
const LONG: usize = 5_000;

/// Below the limit of waiting jobs of one scan.
const BACKLOG: usize = 6_000;

const PAGES: usize = 300;

pub(crate) fn run() {
    let stage = Stage::new();
    stage.block_on(async {
        println!("reads: {CLIENTS} clients, best of {ROUNDS} spans of {SPAN:?}");
        let finished = stage.finish(SHORT).await;
        let unfinished = stage.dispatch("idle").await;
        for (what, job) in [("unfinished", unfinished), ("finished", finished)] {
            let path = format!("/v0/jobs/{job}");
            let request = stage.target.request("GET", &path, "", "");
            let answer = stage.target.connect().await.ask(&request).await;
            let shown: wire::Job = answer.json();
            assert_eq!(shown.state == JobState::Scheduled, what == "unfinished");
            let body = stage.world.path("body");
            std::fs::write(&body, &answer.body).unwrap();
            let bare = Bare::start(&body);
            let plain = Target {
                address: bare.address.clone(),
                ..stage.target.clone()
            };
            let (mut ours, mut floor) = (0.0_f64, 0.0_f64);
            for _ in 0..ROUNDS {
                floor = floor.max(rate(&plain, &request).await);
                ours = ours.max(rate(&stage.target, &request).await);
            }
            println!(
                "  {what:<10} job: {ours:>7.0}/s, bare {floor:>7.0}/s, ratio {:.2}",
                ours / floor
            );
        }
        println!("  page of 50 after {SHORT} jobs:  {}", pages(&stage).await);
        stage.finish(LONG - SHORT).await;
        println!("  page of 50 after {LONG} jobs: {}", pages(&stage).await);
        let orders = [
            ("oldest first", 0, 1),
            ("newest first", BACKLOG - 1, BACKLOG - 1),
            ("in mixed order", 0, 2_741),
        ];
        for (order, start, stride) in orders {
            backlog(&stage, start, stride).await;
            let what = format!("after a backlog of {BACKLOG} jobs that ended {order}");
            println!("  page of 50 {what}: {}", pages(&stage).await);
            println!("  why {what}: {}", whys(&stage).await);
        }
    });
}

/// Creates jobs, and ends them when all exist: first the job at `start`, then the job `stride` further, and so on,
/// cyclically.
async fn backlog(stage: &Stage, start: usize, stride: usize) {
    let mut connection = stage.target.connect().await;
    let request = Stage::dispatch_request(&stage.target, "own_0");
    let mut jobs = Vec::with_capacity(BACKLOG);
    for _ in 0..BACKLOG {
        let answer = connection.ask(&request).await;
        jobs.push(answer.json::<wire::DispatchResponse>().job.id());
    }
    for number in 0..BACKLOG {
        let job = jobs[(start + number * stride) % BACKLOG];
        let path = format!("/v0/jobs/{job}/cancel");
        let request = stage.target.request("POST", &path, "", "{}");
        assert_eq!(connection.ask(&request).await.status, 200);
    }
}

/// Responses per second to clients that send the next request at once.
pub(crate) async fn rate(target: &Target, request: &[u8]) -> f64 {
    let begun = Instant::now();
    let clients = (0..CLIENTS).map(|_| {
        let (target, request) = (target.clone(), request.to_owned());
        tokio::spawn(async move {
            let mut connection = target.connect().await;
            let mut count = 0_u32;
            while begun.elapsed() < SPAN {
                assert_eq!(connection.ask(&request).await.status, 200);
                count += 1;
            }
            count
        })
    });
    let clients: Vec<_> = clients.collect();
    let mut count = 0;
    for client in clients {
        count += client.await.unwrap();
    }
    f64::from(count) / begun.elapsed().as_secs_f64()
}

/// Times of the first page of jobs, for one client.
async fn pages(stage: &Stage) -> Times {
    let is_full = |page: serde_json::Value| {
        assert_eq!(page["items"].as_array().unwrap().len(), 50);
    };
    asked(stage, "/v0/jobs?limit=50", is_full).await
}

/// Times of the route `why` for the scan of the backlog, for one client.
async fn whys(stage: &Stage) -> Times {
    asked(stage, "/v0/workflows/bench/scans/own_0/why", drop).await
}

async fn asked(stage: &Stage, path: &str, check: impl Fn(serde_json::Value)) -> Times {
    let request = stage.target.request("GET", path, "", "");
    let mut connection = stage.target.connect().await;
    let mut samples = Vec::with_capacity(PAGES);
    for _ in 0..PAGES {
        let begun = Instant::now();
        let answer = connection.ask(&request).await;
        samples.push(begun.elapsed());
        check(answer.json());
    }
    Times::of(samples)
}
