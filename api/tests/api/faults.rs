//! Callers that send too much, too slowly or incompletely. The tests move the clock of the timers instead of waiting for a limit.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use api::{Access, ROUTES};
use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::answers::fits;
use crate::artifacts::unfinished;
use crate::client::{Call, Raw, in_time};
use crate::service::{Claimed, Service};

/// The head of an upload with this length, or of a chunked upload.
fn upload(method: &str, path: &str, token: &str, length: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         x-content-digest: sha256:{}\r\n{length}\r\n\r\n",
        "a".repeat(64)
    )
}

/// Waits until this many uploads have a temporary file.
pub(crate) async fn until_unfinished(service: &Service, count: usize) {
    in_time(async {
        while unfinished(service).await != count {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Both kinds of uploads, as method, path and token.
fn uploads(service: &Service, worker: &Claimed) -> [(String, String); 2] {
    [
        (worker.path("artifacts/out"), worker.token.clone()),
        (
            "/v0/blobs/late?project=main".to_owned(),
            service.admin.clone(),
        ),
    ]
}

async fn nothing_is_stored(service: &Service, worker: &Claimed) {
    let list = service.get(&worker.path("artifacts")).await.expect(200);
    assert_eq!(list, json!({"items": []}));
    let blobs = service.get("/v0/blobs?project=main").await.expect(200);
    assert_eq!(blobs["items"], json!([]));
}

#[tokio::test]
async fn an_upload_of_one_byte_per_second_is_ended_and_leaves_no_file() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    for (path, token) in uploads(&service, &worker) {
        let head = upload("PUT", &path, &token, "content-length: 1000");
        let mut raw = Raw::send(service.address, head).await;
        until_unfinished(&service, 1).await;
        tokio::time::pause();
        let begun = Instant::now();
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        let head = loop {
            tokio::select! {
                biased;
                head = raw.head() => break head,
                _ = seconds.tick() => {}
            }
            raw.write("x").await;
        };
        let waited = begun.elapsed();
        tokio::time::resume();
        assert!(head.starts_with("HTTP/1.1 408"), "{head}");
        assert!(waited < Duration::from_secs(60), "{waited:?}");
        drop(raw);
        until_unfinished(&service, 0).await;
    }
    nothing_is_stored(&service, &worker).await;
}

#[tokio::test]
async fn an_upload_whose_length_is_wrong_is_not_stored() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    for (path, token) in uploads(&service, &worker) {
        for (length, body) in [
            // Fewer bytes than announced, and a chunked body without an end.
            ("content-length: 1000", "the beginning"),
            ("transfer-encoding: chunked", "d\r\nthe beginning\r\n"),
            // Invalid or contradicting lengths.
            ("transfer-encoding: chunked", "ffffffffffffffffff\r\n"),
            ("transfer-encoding: chunked", "-1\r\nx\r\n0\r\n\r\n"),
            ("content-length: 5\r\ncontent-length: 6", "whole!"),
            ("content-length: +5", "whole"),
            ("content-length: 18446744073709551616", "whole"),
        ] {
            let head = upload("PUT", &path, &token, length);
            let raw = Raw::send(service.address, format!("{head}{body}")).await;
            let answer = raw.leave().await;
            let is_refused = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
            assert!(is_refused, "{length}: {answer}");
            until_unfinished(&service, 0).await;
        }
    }
    nothing_is_stored(&service, &worker).await;
}

#[tokio::test]
async fn an_upload_with_another_digest_leaves_no_temporary_file() {
    let service = Service::start().await;
    let digest = format!("sha256:{}", "0".repeat(64));
    let put = Call::new(Method::PUT, "/v0/blobs/late?project=main").bytes("a blob");
    let answer = service.admin(put.header("x-content-digest", &digest)).await;
    answer.problem(400, "digest_mismatch");
    until_unfinished(&service, 0).await;
    let blobs = service.get("/v0/blobs?project=main").await.expect(200);
    assert_eq!(blobs["items"], json!([]));
}

/// Bytes that the sockets at both ends may buffer.
const BUFFERED: u64 = 32 * 1024 * 1024;

/// A caller without a token sends ten gigabytes to every route with a body. The daemon refuses at once and does not read the
/// bytes.
#[tokio::test]
async fn ten_gigabytes_without_a_token_are_refused_unread() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let piece = vec![b'x'; 64 * 1024];
    for route in ROUTES.iter().filter(|route| route.body > 0) {
        let path = route
            .path
            .replace("{job}", &worker.id)
            .replace("{*path}", "a");
        assert!(fits(route.path, &path) || route.path.contains("{*path}"));
        let head = format!(
            "{} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer evs_wrong\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            route.method,
            10_u64 << 30,
        );
        let mut stream = TcpStream::connect(service.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        in_time(stream.read_exact(&mut answer)).await.unwrap();
        let expected = match route.access {
            // These routes accept anybody, but only small bodies.
            Access::Public(_) => "HTTP/1.1 413",
            Access::Link(_) => "HTTP/1.1 404",
            Access::Local(..)
            | Access::User(..)
            | Access::Session(_)
            | Access::Runner(_)
            | Access::Worker(_) => "HTTP/1.1 401",
            Access::Action(route, _) if route.is_data() => "HTTP/1.1 401",
            Access::Page(..) | Access::Action(..) => "HTTP/1.1 303",
        };
        let answer = str::from_utf8(&answer).unwrap();
        assert_eq!(answer, expected, "{} {}", route.method, route.path);
        let mut written = 0;
        while let Ok(count) = in_time(stream.write(&piece)).await {
            written += count as u64;
            assert!(written < BUFFERED, "{} takes it", route.path);
        }
    }
    assert_eq!(unfinished(&service).await, 0);
    service.get("/healthz").await.expect(200);
}

/// Connections of each kind: far fewer than the daemon accepts, because the test has both ends of each.
const CONNECTIONS: usize = 300;

#[tokio::test]
async fn slow_heads_and_idle_connections_are_closed_and_do_not_delay_others() {
    let service = Service::start().await;
    let address = service.address;
    let open = async |bytes: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        stream
    };
    let (mut slow, mut silent) = (Vec::new(), Vec::new());
    for _ in 0..CONNECTIONS {
        slow.push(open("GET /healthz HTTP/1.1\r\nhost: x\r\n").await);
        silent.push(open("").await);
        let mut idle = open("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
        let mut begin = [0; 12];
        in_time(idle.read_exact(&mut begin)).await.unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200");
        silent.push(idle);
    }
    service.get("/v0/jobs").await.expect(200);
    for stream in &slow {
        let nothing = stream.try_read(&mut [0]);
        assert_eq!(nothing.unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    tokio::time::pause();
    let begun = Instant::now();
    // Sending a byte of another header now and then does not extend the limit.
    while begun.elapsed() < Duration::from_secs(70) {
        for stream in &mut slow {
            // The connection may already be closed.
            drop(stream.write_all(b"x").await);
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    tokio::time::resume();
    for stream in slow.into_iter().chain(silent) {
        closed(stream).await;
    }
    healthy(address).await;
}

/// Reads to the end of a connection, which may be a reset.
async fn closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    drop(in_time(stream.read_to_end(&mut rest)).await);
    assert!(rest.len() < 10_000);
}

async fn healthy(address: SocketAddr) {
    Call::get("/healthz").send(address).await.expect(200);
}

/// Requests to a proxy have no path.
#[tokio::test]
async fn a_request_without_a_path_is_answered() {
    let service = Service::start().await;
    for line in ["CONNECT a:80", "CONNECT a", "GET a:80", "OPTIONS *"] {
        let request = format!("{line} HTTP/1.1\r\nhost: a\r\n\r\n");
        let head = Raw::send(service.address, request).await.head().await;
        assert!(head.starts_with("HTTP/1.1 404"), "{line}: {head}");
    }
}

/// An unreadable condition must not count as absent.
#[tokio::test]
async fn headers_that_cannot_be_read_are_refused() {
    let service = Service::start().await;
    let put = Call::new(Method::PUT, "/v0/blobs/a").bytes("kept");
    service.admin(put).await.expect(201);
    for header in ["if-match", "if-none-match", "x-content-digest"] {
        let mut request = format!(
            "PUT /v0/blobs/a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-length: 1\r\n{header}: \"",
            service.admin
        )
        .into_bytes();
        request.extend(b"\xff\"\r\n\r\nx");
        let head = Raw::send(service.address, request).await.head().await;
        assert!(head.starts_with("HTTP/1.1 400"), "{header}: {head}");
    }
    let twice = "GET /healthz HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n";
    let head = Raw::send(service.address, twice).await.head().await;
    assert!(head.starts_with("HTTP/1.1 400"), "{head}");
    let read = service.admin(Call::get("/v0/blobs/a")).await;
    assert_eq!(read.text(), "kept");
}

#[tokio::test]
async fn an_upload_is_not_stored_if_its_link_is_revoked_meanwhile() {
    let service = Service::start().await;
    let body = json!({"path": "in", "use_for": "put", "expires_in": "1h"});
    let made = service.post("/v0/blob-links", &body).await.expect(201);
    let request = format!(
        "PUT {} HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nAB",
        made["url_path"].as_str().unwrap()
    );
    let mut raw = Raw::send(service.address, request).await;
    until_unfinished(&service, 1).await;
    let path = format!("/v0/blob-links/{}", made["id"].as_str().unwrap());
    let revoke = Call::new(Method::DELETE, path);
    service.admin(revoke).await.expect(204);
    raw.write("CD").await;
    let head = raw.head().await;
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    until_unfinished(&service, 0).await;
    let blobs = service.get("/v0/blobs").await.expect(200);
    assert_eq!(blobs["items"], json!([]));
}
