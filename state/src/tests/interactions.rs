//! The interactions of callback servers: recorded, listed, indexed, removed.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use model::callback::{
    CallbackId, CallbackTag, Heard, InteractionChange, Mint, NewInteraction, Planted, PlantedBy,
    Request, RequestType,
};
use model::decide::{
    ClearCallback, CreateCallback, CreateCallbackToken, DeleteCallback, MintTags,
    RecordInteractions, RemoveInteractions, SetCallbackRules,
};
use model::limits::INTERACTION_PAGE;
use model::{Actor, Change, Hops, JobId, ProjectId, Timestamp, World};
use store::Key;
use tokio::time::Instant;
use workflow::notify::NotifyName;

use super::fixture::{Fleet, Folder, Opened};
use super::lists::bounded::counted;
use crate::interactions::Search;
use crate::{InteractionFilter, InteractionPage, InteractionPlace, MintedLines};

const FULL: usize = INTERACTION_PAGE as usize;

fn hit(at: Timestamp, tag: Option<CallbackTag>, raw: &[u8]) -> NewInteraction {
    NewInteraction {
        heard: Heard {
            at,
            peer: "192.0.2.7:53".parse().unwrap(),
            tag,
            request: Request::Dns {
                transport: "udp".to_owned(),
                name: "a".to_owned(),
                qtype: "A".to_owned(),
                client_subnet: None,
            },
            answer: String::new(),
            rule: None,
        },
        planted: Planted::default(),
        left_out: 0,
        repeats: 0,
        raw: raw.to_vec(),
    }
}

fn request(at: Timestamp, body: &[u8]) -> NewInteraction {
    let head = b"POST /x HTTP/1.1\r\n\r\n";
    let mut hit = hit(at, None, &[head, body].concat());
    hit.heard.peer = "[::ffff:198.51.100.1]:4711".parse().unwrap();
    hit.heard.request = Request::Http {
        method: "POST".to_owned(),
        target: "/x".to_owned(),
        host: "a.example".to_owned(),
        head_bytes: head.len() as u64,
        truncated: false,
        malformed: false,
        tls: false,
        sni: None,
    };
    hit
}

fn later() -> Instant {
    Instant::now() + Duration::from_secs(600)
}

async fn server(opened: &Opened) -> CallbackId {
    let create = CreateCallback {
        project: ProjectId::of_source(&"recon".parse().unwrap()),
        name: NotifyName::new("shop").unwrap(),
        keep_days: Some(30),
        actor: Actor::Daemon,
    };
    opened.state.submit(create).await.unwrap().id
}

async fn tag(opened: &Opened, server: CallbackId) -> CallbackTag {
    let create = CreateCallbackToken {
        server,
        note: "login form".to_owned(),
        life: Some(TimeDelta::days(90)),
        actor: Actor::Daemon,
    };
    opened.state.submit(create).await.unwrap().tag
}

/// A waiting job whose scan asks for a name of the server.
pub(super) async fn heard_job(opened: &Opened, fleet: Fleet) -> (Fleet, JobId) {
    let text = "scans: {probe: {on: {dispatch: {}}, callback: shop, steps: [{run: x}]}}";
    let workflow = opened.activate("heard", text).await;
    let fleet = Fleet { workflow, ..fleet };
    (fleet, opened.new_job(fleet, "probe").await)
}

fn tags(server: CallbackId) -> MintTags {
    MintTags {
        server,
        lines: 2,
        note: String::new(),
        life: Some(TimeDelta::days(1)),
        job: None,
        group: None,
        actor: Actor::Daemon,
    }
}

/// Tags of two payloads for a target.
async fn mint(opened: &Opened, server: CallbackId) -> Arc<Mint> {
    let name = |name: &str| name.parse().unwrap();
    let lines = MintedLines {
        payloads: vec![(name("a.svg"), 1), (name("b"), 3)],
        targets: vec!["shop.example".to_owned()],
    };
    let upload = opened.state.begin_upload().await.unwrap();
    let upload = upload.write(lines.encode()).await.unwrap();
    let staged = upload.finish().await.unwrap();
    let tags = MintTags {
        group: Some("xss".to_owned()),
        ..tags(server)
    };
    let minted = opened.state.mint_lines(tags, staged).await.unwrap();
    minted.mint
}

async fn record(opened: &Opened, server: CallbackId, new: Vec<NewInteraction>) {
    let record = RecordInteractions {
        server,
        new: Arc::new(new),
        left_out: 0,
        unknown_tags: 0,
    };
    opened.state.record_interactions(record).await.unwrap();
}

async fn index(opened: &Opened, server: CallbackId, now: Timestamp) {
    let state = &opened.state;
    while let Some(index) = state.unindexed_page(server, now).await.unwrap() {
        state.submit(index).await.unwrap();
    }
}

/// A server with rules, a name, a closed page and an open page.
pub(super) async fn make_every_file_of_interactions(opened: &Opened) {
    let now = opened.state.now();
    let server = server(opened).await;
    let text =
        r#"{"rules": [{"name": "r", "type": "dns", "record": "A", "values": ["127.0.0.1"]}]}"#;
    let rules = serde_json::from_str(text).unwrap();
    let set = SetCallbackRules { server, rules };
    opened.state.submit(set).await.unwrap();
    let tag = tag(opened, server).await;
    opened.state.submit(tags(server)).await.unwrap();
    mint(opened, server).await;
    record(opened, server, vec![hit(now, Some(tag), b"q")]).await;
    index(opened, server, now + TimeDelta::days(1)).await;
    record(opened, server, vec![request(now, b"body")]).await;
}

async fn list(
    opened: &Opened,
    server: CallbackId,
    filter: &InteractionFilter,
    from: InteractionPlace,
    limit: usize,
) -> InteractionPage {
    let state = &opened.state;
    let page = state.interactions(server, filter, from, limit, later());
    page.await.unwrap()
}

fn numbers(page: &InteractionPage) -> Vec<u64> {
    page.interactions.iter().map(|it| it.number).collect()
}

#[tokio::test]
async fn what_a_list_has_shown_is_there_after_a_crash() {
    let (mut folder, opened, _) = Folder::prepared().await;
    let server = server(&opened).await;
    let now = opened.state.now();
    record(&opened, server, vec![hit(now, None, b"first")]).await;
    record(&opened, server, vec![request(now, b"\0secret\xff")]).await;
    let all = InteractionFilter::default();
    let shown = list(&opened, server, &all, InteractionPlace::Before(None), 10).await;
    assert_eq!(numbers(&shown), [2, 1]);
    let mut crashed = folder.crashed();
    let again = crashed.open().await;
    let found = list(&again, server, &all, InteractionPlace::Before(None), 10).await;
    assert_eq!(found, shown);
    let (interaction, raw) = again.state.interaction(server, 2).await.unwrap().unwrap();
    assert_eq!(&raw[..], b"POST /x HTTP/1.1\r\n\r\n\0secret\xff");
    assert_eq!(interaction, shown.interactions[0]);
    let first = again.state.interaction(server, 1).await.unwrap();
    assert_eq!(&first.unwrap().1[..], b"first");
    for missing in [0, 3, 1_000, u64::MAX] {
        let found = again.state.interaction(server, missing).await.unwrap();
        assert_eq!(found, None, "{missing}");
    }
    again.close();
    opened.close();
    folder.open().await.close();
}

#[tokio::test]
async fn lists_go_both_ways_and_lose_and_repeat_nothing() {
    let (_folder, opened, _) = Folder::prepared().await;
    let server = server(&opened).await;
    let now = opened.state.now();
    let new = (0..2 * FULL).map(|_| hit(now, None, b"q"));
    record(&opened, server, new.collect()).await;
    let all = InteractionFilter::default();
    let (mut down, mut before) = (Vec::new(), None);
    loop {
        let place = InteractionPlace::Before(before);
        let page = list(&opened, server, &all, place, 700).await;
        down.extend(numbers(&page));
        match page.next {
            Some(next) => before = Some(next),
            None => break,
        }
    }
    assert_eq!(down, (1..=2_000).rev().collect::<Vec<_>>());
    let (mut up, mut after) = (Vec::new(), 0);
    loop {
        let place = InteractionPlace::After(after);
        let page = list(&opened, server, &all, place, 700).await;
        up.extend(numbers(&page));
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    down.reverse();
    assert_eq!(up, down);
    let newest = list(&opened, server, &all, InteractionPlace::After(2_000), 9).await;
    assert_eq!(newest, InteractionPage::default());
    // A page that takes too long ends early, and its cursor goes on.
    let past = Instant::now();
    let (state, wanted) = (
        &opened.state,
        InteractionFilter {
            kind: Some(RequestType::Http),
            ..InteractionFilter::default()
        },
    );
    let place = InteractionPlace::Before(None);
    let page = state.interactions(server, &wanted, place, 9, past).await;
    assert_eq!(page.unwrap().next, Some(2_000));
    let place = InteractionPlace::After(0);
    let page = state.interactions(server, &wanted, place, 9, past).await;
    assert_eq!(page.unwrap().next, Some(999));
    opened.close();
}

#[tokio::test]
async fn filters_select_by_tag_type_address_text_and_job() {
    let (_folder, opened, fleet) = Folder::prepared().await;
    let server = server(&opened).await;
    let now = opened.state.now();
    let rare = tag(&opened, server).await;
    let loud = tag(&opened, server).await;
    let mut of_job = request(now, b"Cookie: X=1");
    of_job.planted.job = Some(PlantedBy {
        id: JobId::FIRST,
        scan: fleet.scan("build"),
        hops: Hops::default(),
    });
    let mut new = vec![hit(now, Some(rare), b"rare"), of_job];
    new.extend((0..3 * FULL).map(|_| hit(now, Some(loud), b"loud")));
    record(&opened, server, new).await;
    let found = async |filter: InteractionFilter| {
        let place = InteractionPlace::Before(None);
        numbers(&list(&opened, server, &filter, place, 5).await)
    };
    for indexed in [false, true] {
        if indexed {
            index(&opened, server, now).await;
        }
        let of = InteractionFilter::default;
        let tag = Some(rare);
        assert_eq!(found(InteractionFilter { tag, ..of() }).await, [1]);
        let kind = Some(RequestType::Http);
        assert_eq!(found(InteractionFilter { kind, ..of() }).await, [2]);
        let address = Some("198.51.100.1".parse().unwrap());
        assert_eq!(found(InteractionFilter { address, ..of() }).await, [2]);
        let text = Some("cookie: x".to_owned());
        assert_eq!(found(InteractionFilter { text, ..of() }).await, [2]);
        let job = Some(JobId::FIRST);
        assert_eq!(found(InteractionFilter { job, ..of() }).await, [2]);
        let text = Some("nothing".to_owned());
        assert_eq!(found(InteractionFilter { text, ..of() }).await, [0; 0]);
    }
    opened.close();
}

/// The files of interactions that a list must read, with all of its pages full.
#[tokio::test]
async fn one_tag_needs_at_most_four_reads_and_a_page_three() {
    let (folder, opened, _) = Folder::prepared().await;
    let server = server(&opened).await;
    let now = opened.state.now();
    let rare = tag(&opened, server).await;
    record(&opened, server, vec![hit(now, Some(rare), b"rare")]).await;
    for _ in 0..20 {
        let new = (0..FULL).map(|_| hit(now, None, b"q"));
        record(&opened, server, new.collect()).await;
    }
    index(&opened, server, now).await;
    let callback = opened.state.read(|world| world.callback(server).cloned());
    let end = callback.unwrap().interactions;
    opened.state.settled().await.unwrap();
    let files = folder.files().into_iter();
    let files = files.filter(|path| path.starts_with("callbacks/"));
    let files = files.map(|path| {
        let bytes = std::fs::read(folder.root().join(&path)).unwrap();
        (Key::new(path).unwrap(), bytes.into())
    });
    let (reader, reads) = counted(files).await;
    let reads = async |filter: InteractionFilter, expected: usize| {
        let search = Search::new(&reader, server, end, &filter, 100);
        let place = InteractionPlace::Before(None);
        let page = search.run(place, later()).await.unwrap();
        assert_eq!(page.interactions.len(), expected);
        reads.take().0
    };
    let tag = Some(rare);
    let of_tag = InteractionFilter {
        tag,
        ..InteractionFilter::default()
    };
    assert!(reads(of_tag, 1).await <= 4);
    assert!(reads(InteractionFilter::default(), 100).await <= 3);
    opened.close();
}

#[tokio::test]
async fn old_pages_and_deleted_servers_leave_no_file() {
    let (mut folder, opened, _) = Folder::prepared().await;
    let server = server(&opened).await;
    let state = &opened.state;
    let now = state.now();
    let old = tag(&opened, server).await;
    let new = (0..2 * FULL).map(|_| hit(now, Some(old), b"q"));
    record(&opened, server, new.collect()).await;
    index(&opened, server, now).await;
    let mut pages = state.oldest_pages(server).await.unwrap();
    assert_eq!(pages.len(), 2);
    assert_eq!((pages[0].count, pages[1].count), (999, 1_000));
    let end = |server| state.read(|world| world.callback(server).unwrap().interactions);
    let (bytes, counted) = (pages[0].bytes + pages[1].bytes, end(server).bytes);
    assert!(bytes < counted);
    pages.truncate(1);
    let remove = RemoveInteractions { server, pages };
    state.submit(remove).await.unwrap();
    assert_eq!(end(server).count, 1_001);
    let all = InteractionFilter::default();
    let place = InteractionPlace::After(0);
    let page = list(&opened, server, &all, place, 1).await;
    assert_eq!(numbers(&page), [1_000]);
    let minted = state.submit(tags(server)).await.unwrap().mint;
    let kept = state.mint(server, minted.number).await.unwrap();
    assert_eq!(kept.as_ref(), Some(&*minted));
    let number = mint(&opened, server).await.number;
    let line = |line| state.minted_line(server, number, line);
    let target = Some("shop.example".to_owned());
    let second = line(1).await.unwrap();
    assert_eq!(second, Some(("b".parse().unwrap(), 3, target)));
    assert!(line(2).await.is_err(), "there is no such line");
    state.submit(DeleteCallback { server }).await.unwrap();
    let gone = list(&opened, server, &all, place, 1).await;
    assert_eq!(gone, InteractionPage::default());
    while state.submit(ClearCallback { server }).await.unwrap() {}
    state.settled().await.unwrap();
    assert_eq!(line(1).await.unwrap(), None);
    let left = folder.files().into_iter();
    let left: Vec<_> = left.filter(|path| path.starts_with("callbacks/")).collect();
    assert_eq!(left, [""; 0]);
    opened.close();
    folder.open().await.close();
}

#[tokio::test]
async fn a_claim_that_is_repeated_after_a_crash_gets_the_same_name() {
    let (folder, opened, fleet) = Folder::prepared().await;
    let server = server(&opened).await;
    let (fleet, job) = heard_job(&opened, fleet).await;
    let first = opened.claim(fleet, job).await;
    let mut crashed = folder.crashed();
    opened.close();
    let again = crashed.open().await;
    let repeated = again.claim(fleet, job).await;
    let callback = first.state.run().unwrap().callback.unwrap();
    assert_eq!(repeated.state.run().unwrap().callback, Some(callback));
    let answered = |world: &World| world.callback(server).unwrap().minted_tag(callback.tag);
    let (number, _) = again.state.read(answered).unwrap();
    let mint = again.state.mint(server, number).await.unwrap().unwrap();
    assert_eq!(mint.job.unwrap().id, job);
    again.close();
}

#[tokio::test]
async fn the_feed_has_a_summary_and_nothing_raw() {
    let (_folder, opened, _) = Folder::prepared().await;
    let server = server(&opened).await;
    let mut feed = opened.state.subscribe(opened.state.seq()).unwrap();
    let now = opened.state.now();
    let tag = tag(&opened, server).await;
    record(
        &opened,
        server,
        vec![hit(now, Some(tag), b"q"), request(now, b"")],
    )
    .await;
    let mut heard = None;
    while heard.is_none() {
        let published = feed.next().await.unwrap();
        heard = published.changes.iter().find_map(|change| match change {
            Change::Interactions(of, change) if *of == server => Some(change.clone()),
            _ => None,
        });
    }
    let InteractionChange::Recorded(summary) = &*heard.unwrap() else {
        panic!("nothing was recorded")
    };
    assert_eq!((summary.first, summary.last, summary.count), (1, 2, 2));
    assert_eq!(summary.types, RequestType::ALL.into());
    assert_eq!(summary.tags, [tag].into());
    opened.close();
}
