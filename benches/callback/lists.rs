//! Reads of a state with 1,000,000 interactions, through the library like in the daemon.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use model::callback::{CallbackId, CallbackTag, Heard, NewInteraction, Planted, Request};
use model::decide::{ConfigureSource, CreateCallback, CreateCallbackToken, RecordInteractions};
use model::{Actor, Clock, Entropy, ProjectId, Timestamp};
use state::{Closing, InteractionFilter, InteractionPlace, Options, State};
use tokio::runtime::Runtime;
use workflow::notify::NotifyName;

use crate::figures::ms;

const PAGES: usize = 1_000;
const OF_A_PAGE: usize = 1_000;

/// After which the API ends a search.
const SEARCH: Duration = Duration::from_millis(80);

/// Interactions in a list.
const LIMIT: usize = 50;

struct Wall;

impl Clock for Wall {
    fn now(&self) -> Timestamp {
        Utc::now()
    }

    fn steady(&self) -> Timestamp {
        self.now()
    }
}

struct System;

impl Entropy for System {
    fn fill(&mut self, bytes: &mut [u8]) {
        getrandom::fill(bytes).unwrap();
    }
}

pub(crate) fn run() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let root = folder.path().join("state");
    let (state, closing) = open(&runtime, &root);
    let (server, tags) = runtime.block_on(server(&state));
    close(state, closing);
    let ((state, closing), none) = reads(|| open(&runtime, &root));
    let begun = Instant::now();
    runtime.block_on(record(&state, server, tags));
    println!(
        "  {} interactions recorded in {:.0} s",
        PAGES * OF_A_PAGE,
        begun.elapsed().as_secs_f64()
    );
    close(state, closing);
    let ((state, closing), full) = reads(|| open(&runtime, &root));
    println!("  a start: {full} reads, {none} with no interaction");
    let list = |filter: &InteractionFilter, before| {
        let deadline = tokio::time::Instant::now() + SEARCH;
        let from = InteractionPlace::Before(before);
        let begun = Instant::now();
        let work = state.interactions(server, filter, from, LIMIT, deadline);
        let (page, count) = reads(|| runtime.block_on(work).unwrap());
        (page, count, begun.elapsed())
    };
    let (page, count, took) = list(&InteractionFilter::default(), None);
    println!(
        "  the newest {}: {count} reads, {:.1} ms (target: 3 reads)",
        page.interactions.len(),
        ms(took)
    );
    let rare = InteractionFilter {
        tag: Some(tags[1]),
        ..InteractionFilter::default()
    };
    let (page, count, took) = list(&rare, None);
    println!(
        "  hits of a tag: {} found in {count} reads, {:.1} ms (target: 4 reads)",
        page.interactions.len(),
        ms(took)
    );
    let text = InteractionFilter {
        text: Some("nowhere".to_owned()),
        ..InteractionFilter::default()
    };
    let (mut before, mut slowest, mut requests) = (None, Duration::ZERO, 0);
    loop {
        let (page, _, took) = list(&text, before);
        (slowest, requests) = (slowest.max(took), requests + 1);
        before = page.next;
        if before.is_none() || requests == 50 {
            break;
        }
    }
    println!(
        "  a search of a text: {requests} requests, the slowest {:.0} ms (target: 100 ms)",
        ms(slowest)
    );
    close(state, closing);
}

fn open(runtime: &Runtime, root: &Path) -> (State, Closing) {
    let options = Options {
        root: root.to_owned(),
        allow_network: false,
        clock: Arc::new(Wall),
        entropy: Box::new(System),
        cycle_pause: TimeDelta::zero(),
    };
    runtime.block_on(State::open(options)).unwrap()
}

fn close(state: State, closing: Closing) {
    drop(state);
    closing.join().unwrap();
}

/// A server, with a tag of many hits and a tag of one.
async fn server(state: &State) -> (CallbackId, [CallbackTag; 2]) {
    let source = ConfigureSource {
        name: "main".parse().unwrap(),
        url: "/srv/main.git".to_owned(),
        reference: None,
        folder: "workflows".to_owned(),
        interval_seconds: 60,
    };
    let project = ProjectId::of_source(&source.name);
    state.submit(source).await.unwrap();
    let create = CreateCallback {
        project,
        name: NotifyName::new("oast").unwrap(),
        keep_days: None,
        actor: Actor::Daemon,
    };
    let server = state.submit(create).await.unwrap().id;
    let create = || CreateCallbackToken {
        server,
        note: String::new(),
        life: None,
        actor: Actor::Daemon,
    };
    let common = state.submit(create()).await.unwrap().tag;
    let rare = state.submit(create()).await.unwrap().tag;
    (server, [common, rare])
}

async fn record(state: &State, server: CallbackId, [common, rare]: [CallbackTag; 2]) {
    for page in 0..PAGES {
        let hit = |n: usize| NewInteraction {
            heard: Heard {
                at: Utc::now(),
                peer: "192.0.2.7:53".parse().unwrap(),
                tag: Some(if (page, n) == (PAGES / 2, 0) {
                    rare
                } else {
                    common
                }),
                request: Request::Dns {
                    transport: "udp".to_owned(),
                    name: format!("n{n}.cb.test"),
                    qtype: "A".to_owned(),
                    client_subnet: None,
                },
                answer: "NOERROR, 1 record".to_owned(),
                rule: None,
            },
            planted: Planted::default(),
            left_out: 0,
            repeats: 0,
            raw: vec![b'q'; 80],
        };
        let record = RecordInteractions {
            server,
            new: Arc::new((0..OF_A_PAGE).map(hit).collect()),
            left_out: 0,
            unknown_tags: 0,
        };
        state.record_interactions(record).await.unwrap();
        while let Some(index) = state.unindexed_page(server, Utc::now()).await.unwrap() {
            state.submit(index).await.unwrap();
        }
    }
    state.settled().await.unwrap();
}

/// The result, and how often this process has read from files meanwhile.
fn reads<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let count = || {
        let io = std::fs::read_to_string("/proc/self/io").unwrap();
        let line = io.lines().find_map(|line| line.strip_prefix("syscr: "));
        line.unwrap().parse::<u64>().unwrap()
    };
    let (first, second) = (count(), count());
    let result = work();
    (result, count() - second - (second - first))
}
