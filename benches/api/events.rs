//! Listeners to events.

use std::time::Instant;

use tokio::task::JoinSet;
use uuid::Uuid;

use crate::connection::{Connection, Target};
use crate::figures::{Times, append};
use crate::pace::{JOBS, SPAN, pace};
use crate::stage::Stage;

/// Listeners to everything, and to one job each.
const TO_ALL: usize = 20;
const TO_ONE: usize = 980;

const CHANGES: usize = 200;

const ROUNDS: usize = 3;

pub(crate) fn run() {
    let stage = Stage::new();
    stage.block_on(async {
        println!("events");
        arrival(&stage).await;
        burden(&stage).await;
    });
}

/// From a dispatch to the listener that receives the event of its job.
async fn arrival(stage: &Stage) {
    let mut listener = listen(&stage.target, "/v0/events").await;
    let mut connection = stage.target.connect().await;
    let request = Stage::dispatch_request(&stage.target, "idle");
    let journal = std::fs::File::create(stage.world.path("floor")).unwrap();
    let (mut whole, mut after, mut syncs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..CHANGES {
        let begun = Instant::now();
        let heard = async {
            listener.event().await;
            Instant::now()
        };
        let answered = async {
            assert_eq!(connection.ask(&request).await.status, 202);
            Instant::now()
        };
        let (heard, answered) = tokio::join!(heard, answered);
        whole.push(heard - begun);
        after.push(heard.saturating_duration_since(answered));
        syncs.push(append(&journal));
    }
    println!("  dispatch sent → event here:     {}", Times::of(whole));
    println!("  dispatch answered → event here: {}", Times::of(after));
    println!("  append, fdatasync:              {}", Times::of(syncs));
}

/// The cost of listeners for commits.
async fn burden(stage: &Stage) {
    let ending = stage.end_jobs().await;
    let mut jobs: Vec<Uuid> = Vec::with_capacity(TO_ONE);
    for _ in 0..TO_ONE {
        jobs.push(stage.dispatch("idle").await);
    }
    println!(
        "  {JOBS} jobs/s for {SPAN:?}: {TO_ALL} listeners to everything and {TO_ONE} to one job each"
    );
    let (mut alone, mut heard) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.push(commits(stage).await);
        let mut listeners = JoinSet::new();
        for _ in 0..TO_ALL {
            listeners.spawn(listen(&stage.target, "/v0/events").await.drain());
        }
        for job in &jobs {
            let path = format!("/v0/events?job={job}");
            listeners.spawn(listen(&stage.target, &path).await.drain());
        }
        heard.push(commits(stage).await);
        // No listener was dropped.
        assert!(
            listeners.try_join_next().is_none(),
            "a listener was dropped"
        );
    }
    ending.abort();
    for (what, rounds) in [("nobody listens", &alone), ("1,000 listen", &heard)] {
        let (commits, requests): (Vec<f64>, Vec<&Times>) = rounds
            .iter()
            .map(|(commit, times)| (*commit, times))
            .unzip();
        println!(
            "    {what:<14}: commits {commits:.3?} ms on average; dispatches {}",
            requests[0]
        );
    }
    let best =
        |rounds: &[(f64, Times)]| rounds.iter().map(|round| round.0).fold(f64::MAX, f64::min);
    println!("    ratio of the best {:.2}", best(&heard) / best(&alone));
}

async fn listen(target: &Target, path: &str) -> Connection {
    let mut connection = target.connect().await;
    connection.send(&target.request("GET", path, "", "")).await;
    assert_eq!(connection.head().await.status, 200);
    connection
}

/// The average time of a commit in milliseconds under the load, and the times of its dispatches.
async fn commits(stage: &Stage) -> (f64, Times) {
    let paced = pace(stage).await;
    let took = paced.dispatches.iter().map(|dispatch| dispatch.took);
    (paced.commit, Times::of(took.collect()))
}
