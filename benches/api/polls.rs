//! Runners that wait for work.

use std::time::{Duration, Instant};

use client::Secret;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use wire::Message;

use crate::bare::Bare;
use crate::connection::{Connection, Target};
use crate::figures::{Times, append, memory};
use crate::stage::{OWN, Stage};

const POLLS: usize = 10_000;

/// Parallel registrations.
const AT_ONCE: usize = 64;

pub(crate) fn run() {
    let mut stage = Stage::new();
    let runners = stage.block_on(register(&stage));
    // Memory left over from the registrations would hide the memory of the polls.
    stage.restart();
    stage.block_on(async {
        println!("polls: {POLLS} idle ones");
        let body = stage.world.path("body");
        std::fs::write(&body, "").unwrap();
        let bare = Bare::start(&body);
        let floor = bare_kilobytes(&bare, &stage.target).await;
        let before = memory(stage.world.daemon_pid(), "VmRSS:");
        let (sender, mut arrivals) = mpsc::unbounded_channel();
        let mut polls = JoinSet::new();
        for (number, session) in runners.into_iter().enumerate() {
            let target = Target {
                token: session.expose().to_owned(),
                ..stage.target.clone()
            };
            let sender = sender.clone();
            polls.spawn(async move {
                let message = wait(target).await;
                sender.send((number, message, Instant::now())).unwrap();
            });
        }
        // Some polls may have just timed out and start again.
        let waiting = |metrics: &str| {
            let mut lines = metrics.lines();
            let count = lines.find_map(|line| line.strip_prefix("everscan_waiting_polls "));
            count.is_some_and(|count| count.parse::<usize>().unwrap() >= POLLS * 99 / 100)
        };
        stage.await_metric(waiting).await;
        let kilobytes = (memory(stage.world.daemon_pid(), "VmRSS:") - before) / POLLS as f64;
        println!(
            "  memory: {kilobytes:.1} kB each, bare {floor:.1} kB, ratio {:.2}",
            kilobytes / floor
        );
        let (mut whole, mut after, mut syncs) = (Vec::new(), Vec::new(), Vec::new());
        let journal = std::fs::File::create(stage.world.path("floor")).unwrap();
        let mut connection = stage.target.connect().await;
        for number in 0..OWN {
            let request = Stage::dispatch_request(&stage.target, &format!("own_{number}"));
            let begun = Instant::now();
            let job = connection
                .ask(&request)
                .await
                .json::<wire::DispatchResponse>()
                .job
                .id();
            let answered = Instant::now();
            let (runner, message, arrived) = arrivals.recv().await.unwrap();
            let Message::JobAssigned(assigned) = message else {
                panic!("no job was assigned")
            };
            assert_eq!((runner, assigned.id), (number * (POLLS / OWN), job));
            whole.push(arrived - begun);
            after.push(arrived.saturating_duration_since(answered));
            syncs.push(append(&journal));
        }
        println!(
            "  dispatch sent → assignment here:     {}",
            Times::of(whole)
        );
        println!(
            "  dispatch answered → assignment here: {}",
            Times::of(after)
        );
        println!(
            "  append, fdatasync:                   {}",
            Times::of(syncs)
        );
    });
}

/// Registers all runners. One in a hundred has a label that only one scan requires.
async fn register(stage: &Stage) -> Vec<Secret> {
    let mut sessions: Vec<Option<Secret>> = vec![None; POLLS];
    let mut registrations = JoinSet::new();
    for number in 0..POLLS {
        if registrations.len() == AT_ONCE {
            let (number, session): (usize, Secret) =
                registrations.join_next().await.unwrap().unwrap();
            sessions[number] = Some(session);
        }
        let client = stage.client.clone();
        registrations.spawn(async move {
            let label = match number % (POLLS / OWN) {
                0 => format!("own_{}", number / (POLLS / OWN)),
                _ => "other".to_owned(),
            };
            let name = format!("runner-{number}");
            (number, Stage::runner(&client, name, vec![label]).await)
        });
    }
    while let Some(registered) = registrations.join_next().await {
        let (number, session) = registered.unwrap();
        sessions[number] = Some(session);
    }
    sessions.into_iter().map(Option::unwrap).collect()
}

fn poll_request(target: &Target, path: &str) -> Vec<u8> {
    target.request("POST", path, "", r#"{"capacity":1,"holding":[]}"#)
}

/// Polls until there is a message.
async fn wait(target: Target) -> Message {
    let request = poll_request(&target, "/v0/messages");
    let mut connection = target.connect().await;
    loop {
        let messages: Vec<Message> = connection.ask(&request).await.json();
        if let Some(message) = messages.into_iter().next() {
            return message;
        }
    }
}

/// Memory of the bare server per held request, with the same number of requests.
async fn bare_kilobytes(bare: &Bare, target: &Target) -> f64 {
    let target = Target {
        address: bare.address.clone(),
        ..target.clone()
    };
    let before = memory(bare.pid(), "VmRSS:");
    let mut held: Vec<Connection> = Vec::with_capacity(POLLS);
    for _ in 0..POLLS {
        let mut connection = target.connect().await;
        connection.send(&poll_request(&target, "/held")).await;
        held.push(connection);
    }
    let count = target.request("GET", "/held", "", "");
    let mut connection = target.connect().await;
    while connection.ask(&count).await.body != POLLS.to_string().as_bytes() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    (memory(bare.pid(), "VmRSS:") - before) / POLLS as f64
}
