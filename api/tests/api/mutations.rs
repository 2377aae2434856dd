//! Valid requests with changed bytes, members, headers and parameters. The daemon must answer every request, never with a defect,
//! and stay healthy.
//!
//! `EVERSCAN_SEED` repeats the choices of a run; `EVERSCAN_MUTATIONS` increases their number.

mod fixture;
mod sample;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;
use std::time::Duration;

use api::{Access, Route};
use http::Method;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use self::fixture::Fixture;
use self::sample::{Choices, Sample};
use crate::answers::fits;
use crate::client::{Call, in_time};
use crate::service::Seeded;

/// Mutations per test. EVERSCAN_MUTATIONS overrides it.
const MUTATIONS: usize = 400;

/// A poll without an answer is ended after this time by another poll.
const HELD: Duration = Duration::from_millis(50);

/// Whether the route has no body, but parameters or conditions.
fn is_read(route: &Route) -> bool {
    let has_conditions = route.path.contains("{artifact}") || route.path.contains("{*path}");
    route.method == Method::GET
        && matches!(route.access, Access::User(..))
        && (!route.query.is_empty() || has_conditions)
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn is_of(route: &Route, sample: &Sample) -> bool {
    route.method == sample.method && fits(route.path, &sample.path)
}

/// The response. None if the server closed the connection.
struct Reply {
    status: u16,
    head: String,
    body: Vec<u8>,
}

/// Sends the bytes and reads the whole answer, except for the events of a stream, which has no end.
async fn exchange(address: SocketAddr, bytes: &[u8], is_whole: bool) -> Option<Reply> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may close before it has read all bytes.
    drop(stream.write_all(bytes).await);
    if !is_whole {
        drop(stream.shutdown().await);
    }
    let mut read = Vec::new();
    let end_of_head = loop {
        let end = read.windows(4).position(|four| four == b"\r\n\r\n");
        if end
            .is_some_and(|end| String::from_utf8_lossy(&read[..end]).contains("text/event-stream"))
        {
            break end;
        }
        match stream.read_buf(&mut read).await {
            Ok(0) | Err(_) => break end,
            Ok(_) => {}
        }
    };
    let end = end_of_head?;
    let head = String::from_utf8_lossy(&read[..end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Reply {
        status,
        head,
        body: read[end + 4..].to_vec(),
    })
}

/// The statuses of each code, from `docs/errors.md`.
fn documented_codes() -> BTreeMap<String, String> {
    let page = include_str!("../../../docs/errors.md");
    let rows = page.lines().filter_map(|line| {
        let (code, meaning) = line.strip_prefix("| `")?.split_once("` | ")?;
        let (statuses, _) = meaning.split_once(':')?;
        Some((code.to_owned(), statuses.to_owned()))
    });
    rows.collect()
}

/// The fault of an answer, if it has any.
fn fault(reply: &Reply, codes: &BTreeMap<String, String>) -> Option<String> {
    if reply.status >= 500 {
        return Some("is an error of the server".to_owned());
    }
    if reply.status < 400 {
        return None;
    }
    if !reply
        .head
        .contains("content-type: application/problem+json")
    {
        return Some("is an error without a problem".to_owned());
    }
    let Ok(problem) = serde_json::from_slice::<Value>(&reply.body) else {
        return Some("is a problem that is no JSON".to_owned());
    };
    let code = problem["code"].as_str().unwrap_or_default();
    let is_documented = codes
        .get(code)
        .is_some_and(|statuses| statuses.contains(&reply.status.to_string()));
    let is_described = problem["detail"].is_string() && problem["request_id"].is_string();
    match (is_documented, is_described) {
        (true, true) => None,
        (false, _) => Some(format!(
            "has a code or status that is not documented: {code}"
        )),
        (true, false) => Some("does not say what is wrong".to_owned()),
    }
}

#[tokio::test]
async fn a_mutated_request_is_answered_and_leaves_a_healthy_daemon() {
    let seed = std::env::var("EVERSCAN_SEED").map_or_else(
        |_| RandomState::new().build_hasher().finish(),
        |seed| seed.parse().unwrap(),
    );
    let mutations = std::env::var("EVERSCAN_MUTATIONS");
    let mutations = mutations.map_or(MUTATIONS, |count| count.parse().unwrap());
    let codes = documented_codes();
    assert!(codes.len() > 30, "{codes:?}");
    let mut choices = Choices(Seeded(seed));
    let mut fixture = Fixture::new().await;
    let address = fixture.service.address;
    let mut accepted = 0;
    for number in 0..mutations {
        let samples = fixture.samples();
        let original = samples[number % samples.len()].clone();
        let mut sample = original.clone();
        for _ in 0..=choices.below(2) {
            sample.mutate(&mut choices);
        }
        let what = || {
            let bytes = sample.bytes();
            let shown = String::from_utf8_lossy(&bytes);
            format!("mutation {number} of EVERSCAN_SEED={seed}: {shown:.2000}")
        };
        let is_http = sample.is_http();
        let bytes = sample.bytes();
        let reply = exchange(address, &bytes, is_http);
        tokio::pin!(reply);
        let is_poll = original.path == "/v0/messages";
        let reply = loop {
            tokio::select! {
                reply = in_time(&mut reply) => break reply,
                () = tokio::time::sleep(HELD), if is_poll => {
                    drop(fixture.poll().send(address).await);
                }
            }
        };
        match &reply {
            // The HTTP library refuses the request, or the request is cut off.
            None => assert!(!is_http, "no answer to {}", what()),
            Some(reply) if !is_http && reply.status < 500 => {}
            Some(reply) => {
                let fault = fault(reply, &codes);
                let shown = String::from_utf8_lossy(&reply.body);
                assert!(
                    fault.is_none(),
                    "{} {shown:.500} {}; {}",
                    reply.head,
                    fault.unwrap_or_default(),
                    what()
                );
                accepted += usize::from(reply.status < 400);
            }
        }
        let health = Call::get("/healthz").send(address).await;
        assert_eq!(health.status, 200, "after {}", what());
        fixture.restore(&original).await;
    }
    // If no mutation were accepted, the test would only check refusals.
    assert!(
        accepted * 20 > mutations,
        "EVERSCAN_SEED={seed}: {accepted}"
    );
}

/// The requests are valid before they are mutated. Otherwise mutations would only reach the first check.
#[tokio::test]
async fn unmutated_requests_are_accepted() {
    let mut fixture = Fixture::new().await;
    let count = fixture.samples().len();
    for number in 0..count {
        let sample = fixture.samples()[number].clone();
        let bytes = sample.bytes();
        let reply = exchange(fixture.service.address, &bytes, true);
        let reply = in_time(reply).await.unwrap();
        let shown = String::from_utf8_lossy(&reply.body);
        let is_accepted = reply.status < 400;
        assert!(
            is_accepted,
            "{} {}: {} {shown}",
            sample.method, sample.path, reply.status
        );
        fixture.restore(&sample).await;
    }
}
