use std::sync::atomic::{AtomicUsize, Ordering};

use model::callback::Request;
use model::decide::{CreateCallback, CreateCallbackToken, MintTags};
use model::{Actor, CallbackTag, ProjectId};
use state::{InteractionFilter, InteractionPlace};
use tempfile::TempDir;
use workflow::notify::NotifyName;

use super::*;
use crate::testing::{TestDaemon, configure, in_time, source_name};

async fn daemon(folder: &TempDir) -> TestDaemon {
    let daemon = TestDaemon::open(folder, 0, Vec::new()).await;
    daemon.handle.state().submit(configure()).await.unwrap();
    daemon
}

async fn server(daemon: &TestDaemon) -> CallbackId {
    let create = CreateCallback {
        project: ProjectId::of_source(&source_name()),
        name: NotifyName::new("shop").unwrap(),
        keep_days: Some(30),
        actor: Actor::Daemon,
    };
    daemon.handle.state().submit(create).await.unwrap().id
}

/// A query with a name of its own.
fn hit(daemon: &TestDaemon, server: CallbackId, tag: Option<CallbackTag>) -> CallbackHit {
    static NAMES: AtomicUsize = AtomicUsize::new(0);
    let name = NAMES.fetch_add(1, Ordering::Relaxed).to_string();
    CallbackHit {
        server,
        heard: Heard {
            at: daemon.handle.now(),
            peer: "192.0.2.7:53".parse().unwrap(),
            tag,
            request: Request::Dns {
                transport: "udp".to_owned(),
                name,
                qtype: "A".to_owned(),
                client_subnet: None,
            },
            answer: String::new(),
            rule: None,
        },
        raw: b"query".to_vec(),
    }
}

fn kept(daemon: &TestDaemon, server: CallbackId) -> (u64, u64) {
    daemon.handle.state().read(|world| {
        let interactions = world.callback(server).unwrap().interactions;
        (interactions.count, interactions.left_out)
    })
}

#[tokio::test]
async fn a_hit_is_recorded_at_once_and_a_stop_loses_none() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = daemon(&folder).await;
    let server = server(&daemon).await;
    let (sender, hits) = mpsc::channel(1_000);
    let recording = tokio::spawn(record_callbacks(
        daemon.handle.clone(),
        hits,
        Some,
        Vec::new,
    ));
    sender.send(hit(&daemon, server, None)).await.unwrap();
    let is_recorded = |world: &model::World| world.callback(server).unwrap().interactions.count;
    daemon
        .until("the first hit", |world| is_recorded(world) == 1)
        .await;
    for _ in 0..50 {
        sender.send(hit(&daemon, server, None)).await.unwrap();
    }
    drop(sender);
    in_time("the last hits", recording).await.unwrap();
    assert_eq!(kept(&daemon, server), (51, 0));
    daemon.close().await;
}

#[tokio::test]
async fn a_flood_of_one_tag_is_sampled_and_a_single_hit_of_another_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = daemon(&folder).await;
    let server = server(&daemon).await;
    let create = CreateCallbackToken {
        server,
        note: String::new(),
        life: None,
        actor: Actor::Daemon,
    };
    let token = daemon.handle.state().submit(create).await.unwrap();
    let (sender, hits) = mpsc::channel(10_000);
    for _ in 0..3_000 {
        sender.try_send(hit(&daemon, server, None)).unwrap();
    }
    sender
        .try_send(hit(&daemon, server, Some(token.tag)))
        .unwrap();
    drop(sender);
    record_callbacks(daemon.handle.clone(), hits, Some, Vec::new).await;
    let (count, left_out) = kept(&daemon, server);
    assert_eq!(count + left_out, 3_001);
    assert!((100..500).contains(&count), "{count}");
    let filter = InteractionFilter {
        tag: Some(token.tag),
        ..InteractionFilter::default()
    };
    let later = Instant::now() + std::time::Duration::from_secs(600);
    let place = InteractionPlace::Before(None);
    let state = daemon.handle.state();
    let found = state.interactions(server, &filter, place, 10, later).await;
    assert_eq!(found.unwrap().interactions.len(), 1);
    daemon.close().await;
}

#[tokio::test]
async fn a_hit_of_a_minted_tag_has_what_was_planted_until_the_tag_expires() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = daemon(&folder).await;
    let server = server(&daemon).await;
    let state = daemon.handle.state();
    let tags = MintTags {
        server,
        lines: 3,
        note: "robots.txt".to_owned(),
        life: Some(TimeDelta::days(1)),
        job: None,
        group: None,
        actor: Actor::Daemon,
    };
    let mint = state.submit(tags).await.unwrap();
    let (sender, hits) = mpsc::channel(3);
    let mut late = hit(&daemon, server, mint.tag(2));
    late.heard.at = mint.mint.expires_at.unwrap();
    for hit in [
        hit(&daemon, server, mint.tag(2)),
        late,
        hit(&daemon, server, None),
    ] {
        sender.try_send(hit).unwrap();
    }
    drop(sender);
    record_callbacks(daemon.handle.clone(), hits, Some, Vec::new).await;
    let later = Instant::now() + std::time::Duration::from_secs(600);
    let (all, place) = (InteractionFilter::default(), InteractionPlace::After(0));
    let found = state.interactions(server, &all, place, 10, later).await;
    let found = found.unwrap().interactions.into_iter();
    let found: Vec<_> = found.map(|it| (it.heard.tag, it.planted.note)).collect();
    let note = Some("robots.txt".to_owned());
    assert_eq!(found, [(mint.tag(2), note), (None, None)]);
    daemon.close().await;
}

#[tokio::test]
async fn what_comes_again_at_once_is_folded() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = daemon(&folder).await;
    let server = server(&daemon).await;
    let (sender, hits) = mpsc::channel(100);
    let query = hit(&daemon, server, None);
    let other = hit(&daemon, server, None);
    let mut request = hit(&daemon, server, None);
    request.heard.request = Request::Http {
        method: "POST".to_owned(),
        target: "/".to_owned(),
        host: "a".to_owned(),
        head_bytes: 0,
        truncated: false,
        malformed: false,
        tls: false,
        sni: None,
    };
    let again = |of: &CallbackHit, port, raw: &[u8]| {
        let mut heard = of.heard.clone();
        heard.peer.set_port(port);
        let (server, raw) = (of.server, raw.to_vec());
        sender.try_send(CallbackHit { server, heard, raw }).unwrap();
    };
    again(&other, 1, b"0");
    for port in 1..40_u16 {
        again(&query, port, &port.to_be_bytes());
    }
    again(&request, 1, b"a=1");
    again(&request, 2, b"a=1");
    again(&request, 3, b"a=2");
    drop(sender);
    record_callbacks(daemon.handle.clone(), hits, Some, Vec::new).await;
    let later = Instant::now() + std::time::Duration::from_secs(600);
    let place = InteractionPlace::After(0);
    let state = daemon.handle.state();
    let filter = InteractionFilter::default();
    let found = state.interactions(server, &filter, place, 10, later).await;
    let found = found.unwrap().interactions.into_iter();
    let repeats: Vec<_> = found.map(|it| it.repeats).collect();
    assert_eq!(repeats, [0, 38, 1, 0]);
    daemon.close().await;
}

#[tokio::test]
async fn what_is_not_recorded_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = daemon(&folder).await;
    let server = server(&daemon).await;
    let missed = || {
        vec![Missed {
            server,
            unknown_tags: 2,
            dropped: 3,
        }]
    };
    let (sender, hits) = mpsc::channel::<CallbackHit>(1);
    drop(sender);
    let handle = daemon.handle.clone();
    record_callbacks(handle, hits, Some, missed).await;
    let state = daemon.handle.state();
    let end = state.read(|world| world.callback(server).unwrap().interactions);
    assert_eq!((end.count, end.left_out, end.unknown_tags), (0, 3, 2));
    daemon.close().await;
}

#[tokio::test]
async fn old_interactions_and_expired_names_are_removed_and_recent_ones_stay() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = daemon(&folder).await;
    let server = server(&daemon).await;
    let create = CreateCallbackToken {
        server,
        note: String::new(),
        life: Some(TimeDelta::days(40)),
        actor: Actor::Daemon,
    };
    daemon.handle.state().submit(create).await.unwrap();
    let mint = async |life| {
        let tags = MintTags {
            server,
            lines: 1,
            note: String::new(),
            life,
            job: None,
            group: None,
            actor: Actor::Daemon,
        };
        daemon.handle.state().submit(tags).await.unwrap();
    };
    for days in [Some(20), None, Some(35), Some(30)] {
        mint(days.map(TimeDelta::days)).await;
    }
    let mints = async || {
        let mut kept = Vec::new();
        for number in 0..4 {
            let mint = daemon.handle.state().mint(server, number).await.unwrap();
            kept.extend(mint.map(|mint| mint.number));
        }
        kept
    };
    let record = async |at: Timestamp| {
        let (sender, hits) = mpsc::channel(1);
        let mut hit = hit(&daemon, server, None);
        hit.heard.at = at;
        sender.try_send(hit).unwrap();
        drop(sender);
        record_callbacks(daemon.handle.clone(), hits, Some, Vec::new).await;
    };
    let start = daemon.handle.now();
    let day = |days| start + TimeDelta::days(days);
    record(start).await;
    remove_old(&daemon.handle, day(29)).await.unwrap();
    assert_eq!(kept(&daemon, server).0, 1);
    assert_eq!(mints().await, [1, 2, 3]);
    daemon.clock.set_forward(TimeDelta::days(25));
    record(day(25)).await;
    remove_old(&daemon.handle, day(31)).await.unwrap();
    // The records are removed in their order.
    assert_eq!(mints().await, [1, 2, 3]);
    assert_eq!(
        kept(&daemon, server).0,
        1,
        "the page of the first day is gone"
    );
    let tokens = || {
        let state = daemon.handle.state();
        state.read(|world| world.callback_tokens(server).count())
    };
    assert_eq!(tokens(), 1);
    remove_old(&daemon.handle, day(41)).await.unwrap();
    assert_eq!(tokens(), 0);
    assert_eq!(mints().await, [1]);
    daemon.close().await;
}
