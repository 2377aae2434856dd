//! Claims with and without a token for the steps.

use std::time::{Duration, Instant};

use client::{Client, Secret};
use uuid::Uuid;
use wire::{Hello, Message, Poll};

use crate::figures::Times;
use crate::stage::{Stage, success};

const RUNS: usize = 500;
const WARM_UP: usize = 50;

pub(crate) fn run() {
    let stage = Stage::new();
    stage.block_on(async {
        println!("claims: {RUNS} of each kind, in turn");
        let kinds = [
            ("without", Vec::new()),
            ("with", vec!["job_token".to_owned()]),
        ];
        let mut takers = Vec::new();
        for (place, (name, capabilities)) in (0..).zip(kinds) {
            takers.push(Taker::new(&stage, place, name, capabilities).await);
        }
        for run in 0..WARM_UP + RUNS {
            for taker in &mut takers {
                let took = taker.claim(&stage).await;
                taker.times.extend((run >= WARM_UP).then_some(took));
            }
        }
        for taker in takers {
            println!("  {:>7} a token: {}", taker.name, Times::of(taker.times));
        }
    });
}

/// A runner that takes the jobs of one scan.
struct Taker {
    name: &'static str,
    scan: String,
    session: Client,
    times: Vec<Duration>,
}

impl Taker {
    async fn new(
        stage: &Stage,
        place: usize,
        name: &'static str,
        capabilities: Vec<String>,
    ) -> Self {
        let scan = format!("own_{place}");
        let token = Stage::runner(&stage.client, name.to_owned(), vec![scan.clone()]).await;
        let session = stage.client.with_token(token);
        let hello = Hello {
            version: "bench".to_owned(),
            instance: Uuid::nil(),
            capabilities,
        };
        session.hello(&hello).await.unwrap();
        Self {
            name,
            scan,
            session,
            times: Vec::new(),
        }
    }

    /// The time of the claim of a job.
    async fn claim(&self, stage: &Stage) -> Duration {
        stage.dispatch(&self.scan).await;
        let poll = Poll {
            instance: Uuid::nil(),
            number: None,
            capacity: 1,
            holding: Vec::new(),
        };
        let answer = self.session.poll(&poll).await.unwrap();
        let [Message::JobAssigned(job)] = &answer.messages[..] else {
            panic!("no job was assigned")
        };
        let worker = stage.client.with_token(Secret::new(job.token.clone()));
        let begun = Instant::now();
        let assignment = worker.resolve(job.id).await.unwrap();
        let took = begun.elapsed();
        assert_eq!(assignment.job_token.is_some(), self.name == "with");
        worker.complete(job.id, &success()).await.unwrap();
        took
    }
}
