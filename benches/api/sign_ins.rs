//! Signing in with a password: what a hash takes, what a request with a token takes, and whether guesses delay commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use identity::{Password, Passwords};
use tokio::task::JoinSet;

use crate::figures::Times;
use crate::pace::{JOBS, SPAN, pace};
use crate::stage::Stage;

const HASHES: u8 = 10;

const REQUESTS: usize = 5_000;

/// Callers that guess, each from its own address.
const GUESSERS: usize = 100;

const ROUNDS: usize = 3;

pub(crate) fn run() {
    let stage = Stage::behind_a_proxy();
    stage.block_on(async {
        println!("sign-ins");
        println!("  hash of a password: {}", hashes().await);
        let job = stage.dispatch("idle").await;
        let path = format!("/v0/jobs/{job}");
        let request = stage.target.request("GET", &path, "", "");
        println!(
            "  request with a token: p50 {:?}",
            read(&stage, &request).await
        );
        burden(&stage).await;
    });
}

async fn hashes() -> Times {
    let passwords = Passwords::new([7; 48]);
    let mut samples = Vec::new();
    for salt in 0..HASHES {
        let password = Password::parse("correct horse battery".to_owned()).unwrap();
        let begun = Instant::now();
        passwords.hash("bench", password, [salt; 16]).await.unwrap();
        samples.push(begun.elapsed());
    }
    Times::of(samples)
}

/// The median time of a request, one after the other.
async fn read(stage: &Stage, request: &[u8]) -> Duration {
    let mut connection = stage.target.connect().await;
    let mut samples = Vec::with_capacity(REQUESTS);
    for _ in 0..REQUESTS {
        let begun = Instant::now();
        assert_eq!(connection.ask(request).await.status, 200);
        samples.push(begun.elapsed());
    }
    Times::of(samples).at(50)
}

/// Commits and dispatches without guesses, and while wrong passwords arrive from many addresses.
async fn burden(stage: &Stage) {
    let ending = stage.end_jobs().await;
    println!("  {JOBS} jobs/s for {SPAN:?}, without and with {GUESSERS} callers that guess");
    for _ in 0..ROUNDS {
        report(stage, "nobody guesses").await;
        let checked = Arc::new(AtomicUsize::new(0));
        let guesses = guess(stage, &checked);
        report(stage, "guesses").await;
        drop(guesses);
        println!(
            "      {} passwords were checked",
            checked.load(Ordering::Relaxed)
        );
    }
    ending.abort();
}

async fn report(stage: &Stage, what: &str) {
    let paced = pace(stage).await;
    let took = paced.dispatches.iter().map(|dispatch| dispatch.took);
    let (commit, times) = (paced.commit, Times::of(took.collect()));
    println!("    {what:<14}: commits {commit:.3} ms on average; dispatches {times}");
}

/// Sends one wrong password per second from each address, with a new name each.
fn guess(stage: &Stage, checked: &Arc<AtomicUsize>) -> JoinSet<()> {
    let mut guessers = JoinSet::new();
    for n in 0..GUESSERS {
        let (target, checked) = (stage.target.clone(), checked.clone());
        guessers.spawn(async move {
            let mut connection = target.connect().await;
            let mut pace = tokio::time::interval(Duration::from_secs(1));
            for round in 0.. {
                pace.tick().await;
                let body = format!(r#"{{"user":"u{n}-{round}","password":"wrong horse battery"}}"#);
                let headers =
                    format!("x-forwarded-proto: https\r\nx-forwarded-for: 198.51.100.{n}\r\n");
                let request = target.request("POST", "/v0/sessions", &headers, &body);
                match connection.ask(&request).await.status {
                    401 => checked.fetch_add(1, Ordering::Relaxed),
                    429 => 0,
                    other => panic!("{other}"),
                };
            }
        });
    }
    guessers
}
