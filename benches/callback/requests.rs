//! Requests of the API during a flood of queries.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::dns;
use crate::figures::{Times, ms};
use crate::stage::{Flood, Stage};

const RATE: u32 = 10_000;
const TURN: Duration = Duration::from_secs(15);
const TURNS: usize = 2;

pub(crate) fn run() {
    let stage = Stage::new(1);
    let name = stage.names[0].1.clone();
    let length = dns::answer_length(stage.address, &dns::query(&name));
    let programs = [("echo", dns::echo(length)), ("daemon", stage.address)];
    let mut figures = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for ((_, address), figures) in programs.iter().zip(&mut figures) {
            figures.extend(during(&stage, *address, &name));
        }
    }
    let [echo, ours] = figures.map(|figures| {
        let times = Times::of(figures);
        (ms(times.at(50)), ms(times.at(99)))
    });
    println!(
        "  a request during {RATE} queries/s: p50 {:.2} ms, p99 {:.2} ms; to the echo: p50 {:.2} ms, p99 {:.2} ms; ratio {:.2} (target: at most 1.2)",
        ours.0,
        ours.1,
        echo.0,
        echo.1,
        ours.1 / echo.1
    );
}

fn during(stage: &Stage, address: SocketAddr, name: &str) -> Vec<Duration> {
    let flood = Flood::start(address, vec![name.to_owned()], RATE, usize::MAX);
    let (begun, mut samples) = (Instant::now(), Vec::new());
    while begun.elapsed() < TURN {
        let asked = Instant::now();
        stage.runtime.block_on(stage.client.sources()).unwrap();
        samples.push(asked.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(flood);
    samples
}
