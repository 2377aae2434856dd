//! Notifications: how soon a message arrives after its commit, what messages cost jobs, and how many messages a burst is.
//! The daemon, the runner and the receiver are separate; everything is durable.
//!
//!     cargo bench --package daemon --bench notify [-- RUNS]
//!
//! - Commit to receiver: from the time of the event to the arrival of its message at a receiver on this machine. The floor
//!   is the same request over a connection of its own.
//! - Jobs: dispatch to finished, one after the other, with a message about every job and without a channel, in turns.
//! - Burst: scans that fail as fast as the runner can, and the messages about them in the first minute.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "figures are this program's output, and a failed measurement ends it"
)]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use client::{Client, Secret};
use serde_json::Value;
use support::World;
use tokio::runtime::Runtime;
use wire::{DispatchRequest, JobState};

#[path = "../tests/support.rs"]
#[expect(
    dead_code,
    reason = "the stories need the rest, and a failed measurement ends the program as well"
)]
mod support;

const RUNS: usize = 100;

/// Scans of the burst. A project has at most 1,000 open conditions.
const BURST: usize = 900;

fn main() {
    let given = std::env::args().skip(1).find_map(|it| it.parse().ok());
    let runs = given.filter(|runs| *runs > 0).unwrap_or(RUNS);
    let (sink, messages) = receiver();
    let mut world = World::below(Path::new(env!("CARGO_TARGET_TMPDIR")));
    world.init_repository();
    world.output("everscand", &["secret-key", "make", "./key"]);
    world.daemon_key = Some("key".to_owned());
    world.daemon_config = Some(format!("outbound: {{ allow: ['{sink}'] }}\n"));
    let probe = "scans:\n  probe:\n    on: {dispatch: {}}\n    steps: [{run: date +%N > out}]\n    \
                 artifacts: [{name: out, paths: [out], notify_on: always}]\n";
    let mut burst = "scans:\n".to_owned();
    for number in 0..BURST {
        let _ = writeln!(
            burst,
            "  s{number}:\n    on: {{dispatch: {{}}}}\n    steps: [{{run: exit 1}}]"
        );
    }
    world.push(&[("probe.yaml", Some(probe)), ("burst.yaml", Some(&burst))]);
    world.start_daemon();
    world.sync();
    world.start_runner(8);
    let client = Client::new(world.url(), world.token().map(Secret::new)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let url = format!("http://{sink}/");
    let add = ["notify", "channel", "add", "sink", "--webhook", &url];
    let rule = ["notify", "rule", "add", "all", "--channel", "sink"];
    let rule: Vec<&str> = rule.into_iter().chain(["--group", "0s"]).collect();
    let delete = ["notify", "channel", "delete", "sink"];

    let mut keys = 0;
    let (mut with, mut without, mut arrivals) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..2 {
        for _ in 0..runs / 2 {
            without.push(job(&runtime, &client, &mut keys));
        }
        world.everscan(&add);
        world.everscan(&rule);
        for _ in 0..runs / 2 {
            with.push(job(&runtime, &client, &mut keys));
            let (at, message) = messages.recv().unwrap();
            arrivals.push(since_commit(at, &message));
        }
        world.everscan(&delete);
    }
    let floors = (0..runs).map(|_| post(sink)).collect();
    while messages.try_recv().is_ok() {}
    println!("milliseconds, p50 of {runs}");
    println!("commit to receiver    {:>7.2}", p50(arrivals));
    println!("floor: one request    {:>7.2}", p50(floors));
    println!("job without a message {:>7.2}", p50(without));
    println!("job with a message    {:>7.2}", p50(with));

    world.everscan(&["notify", "rule", "delete", "all"]);
    world.everscan(&add);
    let begun = Instant::now();
    runtime.block_on(async {
        for number in 0..BURST {
            let scan = format!("s{number}");
            let request = DispatchRequest::default();
            client
                .dispatch("burst", &scan, &request, &scan)
                .await
                .unwrap();
        }
    });
    let (mut count, mut events) = (0, 0);
    while events < BURST as u64 {
        let (_, message) = messages.recv().unwrap();
        count += 1;
        events += message["data"]["event"]["count"].as_u64().unwrap();
    }
    println!(
        "burst: {events} failures in {count} messages, the last after {:.0} s",
        begun.elapsed().as_secs_f64()
    );
}

/// A receiver of webhooks, and what it gets.
fn receiver() -> (SocketAddr, Receiver<(DateTime<Utc>, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, messages) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut length, mut line) = (0, String::new());
            while stream.read_line(&mut line).unwrap() > 2 {
                let (name, value) = line.split_once(':').unwrap_or_default();
                if name.eq_ignore_ascii_case("content-length") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let at = Utc::now();
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.get_mut().write_all(answer).unwrap();
            let message = serde_json::from_slice(&body).unwrap_or_default();
            sender.send((at, message)).unwrap();
        }
    });
    (address, messages)
}

fn job(runtime: &Runtime, client: &Client, keys: &mut usize) -> Duration {
    *keys += 1;
    let begun = Instant::now();
    runtime.block_on(async {
        let (request, key) = (DispatchRequest::default(), format!("probe-{keys}"));
        let job = client
            .dispatch("probe", "probe", &request, &key)
            .await
            .unwrap();
        let mut job = client.await_job(job.id()).await.unwrap();
        while !job.state.is_terminal() {
            job = client.await_job(job.id).await.unwrap();
        }
        assert_eq!(job.state, JobState::Succeeded);
    });
    begun.elapsed()
}

fn since_commit(at: DateTime<Utc>, message: &Value) -> Duration {
    let event = &message["data"]["event"]["events"][0]["at"];
    let happened: DateTime<Utc> = event.as_str().unwrap().parse().unwrap();
    (at - happened).to_std().unwrap_or_default()
}

/// The time of one request of our own.
fn post(address: SocketAddr) -> Duration {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
    stream.write_all(request).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    begun.elapsed()
}

fn p50(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1_000.0
}
