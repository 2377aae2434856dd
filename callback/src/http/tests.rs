use std::sync::Arc;
use std::time::{Duration, SystemTime};

use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::*;
use crate::hit::Hit;
use crate::limits::BODY_BYTES;
use crate::served::{Finding, Payload, Served};
use crate::table::{Server, Table};

const SERVER: &str = "abcdefghijklmnop";
const TAG: &str = "22222222223333333333";
const REVERSED: &str = "33333333332222222222-ponmlkjihgfedcba";

/// One connection, and what is reported of it.
struct World {
    stream: TcpStream,
    conversation: JoinHandle<()>,
    hits: mpsc::Receiver<Hit>,
    stop: watch::Sender<bool>,
    _table: watch::Sender<Arc<Table>>,
}

async fn world(trusted_proxies: &[&str]) -> World {
    world_of(trusted_proxies, Addresses::default()).await
}

async fn world_of(trusted_proxies: &[&str], proxied: Addresses) -> World {
    // A private group is not found, as if it was not there.
    let find = |group: String, payload: String| -> Finding {
        if payload == "never" {
            return Box::pin(std::future::pending());
        }
        let is_served = group == "xss" && payload == "a.svg";
        let found = is_served.then(|| Payload {
            name: "xss/a.svg@2".to_owned(),
            content_type: "image/svg+xml".to_owned(),
            body: Bytes::from_static(b"<svg/>"),
        });
        Box::pin(async move { found })
    };
    let server = Server {
        tags: Arc::new([(TAG.parse().unwrap(), None)].into()),
        served: Some(Served(Arc::new(find))),
        ..Server::default()
    };
    let table = Table {
        servers: [(SERVER.parse().unwrap(), server)].into(),
    };
    let (sender, receiver) = watch::channel(Arc::new(table));
    let (hit, hits) = mpsc::channel(16);
    let clock = Arc::new(|| SystemTime::UNIX_EPOCH);
    let site = Site {
        trusted_proxies: trusted_proxies
            .iter()
            .map(|it| it.parse().unwrap())
            .collect(),
        proxied,
        reporter: Arc::new(Reporter::new(receiver, hit, clock, Arc::default())),
    };
    let (stop, stopped) = watch::channel(false);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let (accepted, peer) = listener.accept().await.unwrap();
    World {
        stream,
        conversation: tokio::spawn(converse(
            accepted,
            peer,
            Arc::new(site),
            None,
            Stopped(stopped),
        )),
        hits,
        stop,
        _table: sender,
    }
}

/// What came back, and the hit.
async fn send(bytes: &[u8]) -> (String, Option<Hit>) {
    let mut world = world(&[]).await;
    world.stream.write_all(bytes).await.unwrap();
    world.end().await
}

impl World {
    async fn end(mut self) -> (String, Option<Hit>) {
        let mut answer = Vec::new();
        // A reset ends the connection, too.
        let _ = self.stream.read_to_end(&mut answer).await;
        self.conversation.await.unwrap();
        let hit = self.hits.recv().await;
        assert!(self.hits.recv().await.is_none(), "one hit");
        (String::from_utf8(answer).unwrap(), hit)
    }
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

fn http(hit: Option<Hit>) -> Http {
    match hit.unwrap().kind {
        Kind::Http(http) => http,
        Kind::Dns(dns) => panic!("{dns:?}"),
    }
}

fn host() -> String {
    format!("{SERVER}-{TAG}.cb.example.com")
}

#[tokio::test]
async fn a_request_is_answered_with_the_reversed_id_and_reported_as_sent() {
    let head = format!(
        "BREW /a?b=c HTTP/1.1\r\nX-Case: Kept\r\nhOsT: {}:80\r\ncontent-length: 3\r\n\r\n",
        host()
    );
    let (answer, hit) = send(format!("{head}abc").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("\r\nx-content-type-options: nosniff\r\n")
            && answer.contains("\r\nconnection: close\r\n")
    );
    assert_eq!(body(&answer), REVERSED);
    let hit = hit.unwrap();
    assert_eq!(hit.server.to_string(), SERVER);
    assert_eq!(hit.tag.unwrap().to_string(), TAG);
    assert_eq!(hit.answer, "200");
    assert!(hit.peer.ip().is_loopback());
    let expected = Http {
        method: "BREW".to_owned(),
        target: "/a?b=c".to_owned(),
        host: format!("{}:80", host()),
        is_tls: false,
        sni: None,
        head: head.into(),
        body: "abc".into(),
        truncated: false,
        malformed: false,
    };
    assert_eq!(hit.kind, Kind::Http(expected));
}

#[tokio::test]
async fn the_answer_has_the_form_that_the_path_names_and_nothing_of_the_request() {
    for (target, kind, expected) in [
        ("/", "text/plain", REVERSED.to_owned()),
        (
            "/x.json?q=evil",
            "application/json",
            format!("{{\"data\":\"{REVERSED}\"}}"),
        ),
        (
            "/evil.xml",
            "application/xml",
            format!("<data>{REVERSED}</data>"),
        ),
        (
            "/robots.txt",
            "text/plain",
            format!("User-agent: *\nDisallow: /\n# {REVERSED}\n"),
        ),
        ("/evil?x=.json", "text/plain", REVERSED.to_owned()),
        ("http://evil.example/", "text/plain", REVERSED.to_owned()),
    ] {
        let request = format!(
            "GET {target} HTTP/1.1\r\nhost: {}\r\nx: evil\r\n\r\n",
            host()
        );
        let (answer, hit) = send(request.as_bytes()).await;
        assert!(
            answer.contains(&format!("\r\ncontent-type: {kind}\r\n")),
            "{answer}"
        );
        assert_eq!(body(&answer), expected);
        assert!(!answer.contains("evil"));
        assert!(hit.is_some());
    }
    for (method, status) in [("HEAD", "200"), ("OPTIONS", "200"), ("CONNECT", "405")] {
        let (answer, hit) =
            send(format!("{method} {h}:80 HTTP/1.1\r\nhost: {h}\r\n\r\n", h = host()).as_bytes())
                .await;
        let expected = format!("HTTP/1.1 {status}");
        assert!(answer.starts_with(&expected), "{method} {answer}");
        assert_eq!(http(hit).method, method);
    }
}

#[tokio::test]
async fn ids_are_found_in_host_target_and_headers_in_any_case() {
    let id = format!("{}-{TAG}", SERVER.to_uppercase());
    for request in [
        format!("GET / HTTP/1.1\r\nhost: a.{id}.cb.example.com\r\n\r\n"),
        format!("GET / HTTP/1.0\r\nHost: {id}.other.example\r\n\r\n"),
        format!("GET /?u=x{id}y HTTP/1.1\r\nhost: 192.0.2.1\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: 192.0.2.1\r\nReferer: http://{id}/\r\n\r\n"),
        format!("GET http://{id}/ HTTP/1.1\r\nhost: 192.0.2.1\r\n\r\n"),
        format!("GET /{id} HTTP/1.0\n\n"),
    ] {
        let (answer, hit) = send(request.as_bytes()).await;
        assert_eq!(body(&answer), REVERSED, "{request}");
        assert_eq!(hit.unwrap().tag.unwrap().to_string(), TAG);
    }
    // The host names the server; its tag may be anywhere.
    let request = format!("GET /{id} HTTP/1.1\r\nhost: {SERVER}.cb.example.com\r\n\r\n");
    assert!(send(request.as_bytes()).await.1.unwrap().tag.is_some());
    let request = format!("GET / HTTP/1.1\r\nhost: {SERVER}.cb.example.com\r\n\r\n");
    let (answer, hit) = send(request.as_bytes()).await;
    assert_eq!(body(&answer), "ponmlkjihgfedcba");
    assert_eq!(hit.unwrap().tag, None);
}

#[tokio::test]
async fn unknown_ids_get_an_empty_404_and_are_not_reported() {
    for host in [
        "cb.example.com".to_owned(),
        "qrstuvwxyzabcdef.cb.example.com".to_owned(),
        format!("{SERVER}-44444444445555555555.cb.example.com"),
    ] {
        let (answer, hit) =
            send(format!("GET / HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        assert_eq!(body(&answer), "");
        assert!(hit.is_none(), "{hit:?}");
    }
}

#[tokio::test]
async fn what_is_no_request_is_reported_as_malformed() {
    let id = host();
    let long = format!(
        "GET / HTTP/1.1\r\nhost: {id}\r\nx: {}",
        "a".repeat(HEAD_BYTES)
    );
    for bytes in [
        format!("GET http://{id}/\r\n\r\n"),
        format!("\x16\x03\x01\x02\x00 {id}\r\n\r\n"),
        format!("PRI * HTTP/2.0\r\nhost: {id}\r\n\r\nSM\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: {id}\r\nbad name: 1\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: {id}\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"),
        long,
    ] {
        let (answer, hit) = send(bytes.as_bytes()).await;
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
            "{answer}"
        );
        assert!(!answer.contains(SERVER) && !answer.contains(REVERSED));
        let status = answer.get(9..12).unwrap_or("none").to_owned();
        assert_eq!(hit.as_ref().unwrap().answer, status);
        let http = http(hit);
        assert!(http.malformed, "{bytes}");
        assert_eq!(http.head, &bytes.as_bytes()[..bytes.len().min(HEAD_BYTES)]);
    }
    let (_, hit) = send(format!("GET /<b> HTTP/1.1\r\nhost: {id}\r\n\r\n").as_bytes()).await;
    let http = http(hit);
    let parts = [http.method, http.target, http.host];
    assert_eq!(
        (parts, http.malformed),
        (["GET".to_owned(), "/<b>".to_owned(), id], true)
    );
    assert!(send(b"nonsense\r\n\r\n").await.1.is_none());
}

#[tokio::test]
async fn long_bodies_are_kept_in_part() {
    let head = format!("PUT / HTTP/1.1\r\nhost: {}\r\n", host());
    for (length, is_cut) in [
        (BODY_BYTES, false),
        (BODY_BYTES + 1, true),
        (RECEIVED_BODY, true),
    ] {
        let head = format!("{head}content-length: {length}\r\n\r\n");
        let (answer, hit) = send(&[head.as_bytes(), &vec![b'a'; length]].concat()).await;
        assert_eq!(body(&answer), REVERSED);
        let http = http(hit);
        assert_eq!((http.body.len(), http.truncated), (BODY_BYTES, is_cut));
        assert_eq!(http.head, head.as_bytes());
    }
    // In chunks it is kept as sent, with their lengths.
    let chunks = "3\r\nabc\r\n0\r\n\r\n";
    let (_, hit) =
        send(format!("{head}transfer-encoding: chunked\r\n\r\n{chunks}").as_bytes()).await;
    let http = http(hit);
    assert_eq!((&*http.body, http.truncated), (chunks.as_bytes(), false));
}

#[tokio::test]
async fn an_endless_body_ends() {
    let mut world = world(&[]).await;
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {}\r\ntransfer-encoding: chunked\r\n\r\n",
        host()
    );
    world.stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = [b"1000\r\n", &[b'a'; 0x1000][..], b"\r\n"].concat();
    while world.stream.write_all(&chunk).await.is_ok() {}
    let http = http(world.hits.recv().await);
    assert_eq!((http.body.len(), http.truncated), (BODY_BYTES, true));
    world.conversation.await.unwrap();
}

#[tokio::test]
async fn a_body_that_breaks_off_is_reported() {
    let mut world = world(&[]).await;
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {}\r\ncontent-length: 9\r\n\r\nabc",
        host()
    );
    world.stream.write_all(head.as_bytes()).await.unwrap();
    world.stream.shutdown().await.unwrap();
    let http = http(world.end().await.1);
    assert_eq!((&*http.body, http.truncated), (&b"abc"[..], true));
}

#[tokio::test]
async fn a_payload_is_answered_as_it_is_and_another_one_is_as_if_it_was_not_there() {
    let get = async |target: &str| {
        let request = format!("GET {target} HTTP/1.1\r\nhost: {}\r\n\r\n", host());
        send(request.as_bytes()).await
    };
    let (answer, hit) = get("/-/xss/a.svg?x").await;
    assert_eq!(body(&answer), "<svg/>");
    assert!(
        answer.contains("\r\ncontent-type: image/svg+xml\r\n"),
        "{answer}"
    );
    assert_eq!(hit.unwrap().answer, "200 xss/a.svg@2");
    let date = |answer: String| {
        let lines = answer.lines().filter(|line| !line.starts_with("date:"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let (nothing, _) = get("/").await;
    for other in ["/-/xss/b", "/-/private/a.svg", "/-/xss", "/xss/a.svg"] {
        let (answer, hit) = get(other).await;
        assert_eq!(date(answer), date(nothing.clone()), "{other}");
        assert_eq!(hit.unwrap().answer, "200");
    }
    // Without a known server there is no payload.
    let stranger = b"GET /-/xss/a.svg HTTP/1.1\r\nhost: cb.example.com\r\n\r\n";
    assert!(send(stranger).await.0.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn a_stop_reports_what_has_come() {
    let head = format!("POST / HTTP/1.1\r\nhost: {}\r\n", host());
    let half = format!("{head}content-length: 9\r\n\r\nabc");
    for (bytes, is_malformed) in [(half, false), (head, true)] {
        let mut world = world(&[]).await;
        world.stream.write_all(bytes.as_bytes()).await.unwrap();
        world.stop.send_replace(true);
        let http = http(world.end().await.1);
        assert_eq!(
            (http.malformed, http.truncated),
            (is_malformed, !is_malformed)
        );
        assert_eq!(&*http.body, if is_malformed { &b""[..] } else { b"abc" });
    }
}

#[tokio::test]
async fn senders_that_a_proxy_names_have_their_own_limit() {
    let header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\xc6\x33\x64\x01\x10\0\0\x50";
    let proxied = Addresses::default();
    let mut held = Vec::new();
    for _ in 0..PER_ADDRESS {
        let place = proxied.enter("192.0.2.7".parse().unwrap(), PER_ADDRESS, &[]);
        held.push(place.unwrap());
    }
    let mut world = world_of(&["127.0.0.0/8"], proxied).await;
    let request = format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", host());
    let proxied = [&header[..], request.as_bytes()].concat();
    world.stream.write_all(&proxied).await.unwrap();
    let (answer, hit) = world.end().await;
    assert!(answer.is_empty() && hit.is_none(), "{hit:?}");
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_is_not_found_in_time_leaves_the_hit() {
    let request = format!("GET /-/xss/never HTTP/1.1\r\nhost: {}\r\n\r\n", host());
    let (answer, hit) = send(request.as_bytes()).await;
    assert_eq!(body(&answer), REVERSED);
    assert_eq!(hit.unwrap().answer, "200");
}

#[tokio::test(start_paused = true)]
async fn slow_heads_and_bodies_end_in_time() {
    let head = format!("GET / HTTP/1.1\r\nhost: {}\r\n", host());
    let slow_body = format!("{head}content-length: 9\r\n\r\nabc");
    for (bytes, is_malformed) in [(&head, true), (&slow_body, false)] {
        let start = tokio::time::Instant::now();
        let mut world = world(&[]).await;
        world.stream.write_all(bytes.as_bytes()).await.unwrap();
        let (_, hit) = world.end().await;
        let http = http(hit);
        assert_eq!(
            (http.malformed, http.truncated),
            (is_malformed, !is_malformed)
        );
        assert!(start.elapsed() <= REQUEST);
    }
    let start = tokio::time::Instant::now();
    assert!(world(&[]).await.end().await.1.is_none());
    assert!(start.elapsed() <= HEAD + Duration::from_secs(1));
}

#[tokio::test]
async fn only_trusted_proxies_name_the_sender() {
    let request = format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", host());
    let header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\xc6\x33\x64\x01\x10\0\0\x50";
    let proxied = [&header[..], request.as_bytes()].concat();
    let mut trusting = world(&["127.0.0.0/8"]).await;
    trusting.stream.write_all(&proxied).await.unwrap();
    let (answer, hit) = trusting.end().await;
    assert_eq!(body(&answer), REVERSED);
    let hit = hit.unwrap();
    assert_eq!(hit.peer.to_string(), "192.0.2.7:4096");
    assert_eq!(http(Some(hit)).head, request.as_bytes());
    // Without the header it may be anybody.
    let mut trusting = world(&["127.0.0.0/8"]).await;
    trusting.stream.write_all(request.as_bytes()).await.unwrap();
    let (answer, hit) = trusting.end().await;
    assert!(answer.is_empty() && hit.is_none());
    let hit = send(&proxied).await.1.unwrap();
    assert!(hit.peer.ip().is_loopback());
    assert!(http(Some(hit)).malformed);
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b':'), any::<u8>()], 0..200)) {
        crate::fuzzing::http(&bytes);
    }
}
