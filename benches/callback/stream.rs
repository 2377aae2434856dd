//! From a query to the answer of a request that waits for it.

use std::time::{Duration, Instant};

use client::InteractionFilter;

use crate::dns;
use crate::figures::{Times, ms};
use crate::stage::{Flood, Stage};

const RUNS: usize = 50;
const RATE: u32 = 2_000;

/// Names of the load.
const OTHERS: usize = 50;

pub(crate) fn run() {
    let stage = Stage::new(OTHERS + 1);
    let (commits, seconds) = stage.commits();
    let idle = hits(&stage);
    let (after, spent) = stage.commits();
    let commit = (spent - seconds) * 1_000.0 / (after - commits);
    println!(
        "  idle: p50 {:.1} ms; a commit {commit:.1} ms (target: a commit and 20 ms)",
        ms(idle.at(50))
    );
    let others = stage.names[1..].iter().map(|(_, name)| name.clone());
    let flood = Flood::start(stage.address, others.collect(), RATE, usize::MAX);
    let loaded = hits(&stage);
    drop(flood);
    println!(
        "  during {RATE} hits/s: p50 {:.1} ms (target: at most 250 ms)",
        ms(loaded.at(50))
    );
}

fn hits(stage: &Stage) -> Times {
    let (tag, name) = &stage.names[0];
    let filter = InteractionFilter {
        tag: Some(tag.clone()),
        ..InteractionFilter::default()
    };
    let any = InteractionFilter::default();
    let socket = dns::client(stage.address);
    let mut samples = Vec::new();
    for run in 0..RUNS {
        let newest = stage
            .client
            .interactions(&stage.server, &any, Some(1), None);
        let newest = stage.runtime.block_on(newest).unwrap().items[0].number;
        let (client, server, filter) = (stage.client.clone(), stage.server.clone(), filter.clone());
        let waiting = stage.runtime.spawn(async move {
            let found = client.next_interactions(&server, &filter, newest).await;
            assert!(!found.unwrap().items.is_empty());
        });
        // Until it waits, and the recorder is idle.
        std::thread::sleep(Duration::from_millis(400));
        let asked = Instant::now();
        let query = dns::query(&format!("s{run}-{}.{name}", asked.elapsed().as_nanos()));
        socket.send(&query).unwrap();
        stage.runtime.block_on(waiting).unwrap();
        samples.push(asked.elapsed());
        let _ = socket.recv(&mut [0; 2048]);
    }
    Times::of(samples)
}
