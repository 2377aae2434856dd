//! Parses requests without a daemon, for the targets in `fuzz`. Each function panics if a parser panics or two readings differ.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use listen::{Cidr, Connection};
use model::blob::joined;
use model::{BlobPath, JobId, PlainToken, Scopes, TokenKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use state::EncodedRecord;
use uuid::Uuid;
use wire::{
    CancelJob, CompleteJob, CopyBlob, CreateBlobLink, CreateRegistration, CreateSession,
    CreateSignInLink, CreateToken, DispatchRequest, Hello, LimitRunner, MoveBlob, Poll,
    PruneRequest, RegenerateToken, RegisterRunner, RerunJob, Resume, SetValue, Suspend, Timeline,
    Validate,
};

use super::scans::FilePage;
use super::{blobs, content, logs, worker};
use crate::access;
use crate::base::BasePath;
use crate::body::{self, Body};
use crate::convert;
use crate::failure::Failure;
use crate::limits::PAGE;
use crate::page::Window;
use crate::peer::Peer;
use crate::precondition::precondition;
use crate::request::{Arrival, Query, Request};
use crate::routes::{Matched, find};
use crate::session;

/// Reads a body as each type that a route accepts. An accepted value must stay the same when it is written and read again.
pub fn body(text: &[u8]) {
    round_trip::<CancelJob>(text);
    round_trip::<CreateBlobLink>(text);
    round_trip::<CreateRegistration>(text);
    round_trip::<CreateSession>(text);
    round_trip::<CreateSignInLink>(text);
    round_trip::<Hello>(text);
    round_trip::<LimitRunner>(text);
    round_trip::<Poll>(text);
    round_trip::<PruneRequest>(text);
    round_trip::<RegenerateToken>(text);
    round_trip::<RegisterRunner>(text);
    round_trip::<RerunJob>(text);
    round_trip::<Resume>(text);
    round_trip::<SetValue>(text);
    round_trip::<Suspend>(text);
    round_trip::<Validate>(text);
    // Writing may round numbers with a fraction, so these values are only read.
    drop(body::parse::<DispatchRequest>(text));
    let reports = [
        round_trip::<Timeline>(text).map(|report| report.steps),
        round_trip::<CompleteJob>(text).map(|report| report.steps),
    ];
    for step in reports.into_iter().flatten().flatten() {
        let _reported = convert::reported_step(step);
    }
    if let Some(asked) = round_trip::<CreateToken>(text) {
        drop(Scopes::parse(asked.scopes.iter().map(String::as_str)));
    }
    let paths = [
        round_trip::<CopyBlob>(text).map(|asked| {
            drop(blobs::life(asked.expires_in.as_deref()));
            [asked.from, asked.to]
        }),
        round_trip::<MoveBlob>(text).map(|asked| [asked.from, asked.to]),
    ];
    for path in paths.into_iter().flatten().flatten() {
        if let Ok(path) = blobs::member("path", &path) {
            same_path(&path);
        }
    }
}

fn round_trip<T: DeserializeOwned + Serialize + PartialEq>(text: &[u8]) -> Option<T> {
    let first: T = body::parse(text).ok()?;
    let written = serde_json::to_vec(&first).expect("what was read can be written");
    let second: T = body::parse(&written).expect("what was written can be read");
    assert!(first == second, "the second reading differs");
    Some(first)
}

/// An accepted path must stay the same when it is written and read again.
fn same_path(path: &BlobPath) {
    assert_eq!(path.to_string().parse().as_ref(), Ok(path));
}

/// Reads a batch of log records with both readers. If the fast reader accepts it, the slow reader must accept it with the same
/// result.
pub fn log_batch(text: &[u8]) {
    let canonical = EncodedRecord::all_canonical(&Bytes::copy_from_slice(text));
    let parsed = body::parse::<Vec<wire::NewLogRecord>>(text);
    let encoded = parsed.map(|records| {
        let records: Vec<_> = records.into_iter().map(worker::record).collect();
        EncodedRecord::all(0, &records)
    });
    let Some(canonical) = canonical else {
        return;
    };
    match encoded {
        Ok(Ok(encoded)) => assert_eq!(encoded, canonical),
        Ok(Err(error)) => panic!("only the fast reader accepts the batch: {error}"),
        Err(_) => panic!("only the fast reader can read the batch"),
    }
}

/// Reads a `Range` header for content of this size. A part must not be empty or out of bounds.
pub fn range(header: &str, size: u64) {
    if let content::Wanted::Part(range) = content::wanted_range(header, size) {
        assert!(range.start < range.end && range.end <= size, "{range:?}");
    }
}

/// Reads the target of a request: its path, and its query with the same functions as the handlers.
pub fn target(target: &str) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    for method in [
        Method::GET,
        Method::HEAD,
        Method::PUT,
        Method::POST,
        Method::PATCH,
        Method::DELETE,
    ] {
        let Matched::Route(route, parameters) = find(&method, path) else {
            continue;
        };
        if let Ok(query) = Query::parse(query, route.query) {
            parameters_of(&query, route.query);
        }
        let Ok(request) = request(method, path, parameters, HeaderMap::new()) else {
            continue;
        };
        if let Ok(path) = blobs::path(&request)
            && route.path.contains("{*path}")
        {
            same_path(&path);
            assert!(!joined(path.names()).is_empty());
        }
    }
}

fn parameters_of(query: &Query, known: &[&str]) {
    for name in known {
        drop(query.flag(name));
        drop(query.number(name));
        drop(query.time(name));
        if let Ok(Some(count)) = query.count(name) {
            assert!(count > 0);
        }
    }
    let has = |name| known.contains(&name);
    if has("limit") && has("cursor") {
        drop(Window::of(query));
    }
    if has("cursor")
        && let Some(cursor) = query.get("cursor")
    {
        drop(FilePage::of(query, PAGE));
        drop(cursor.parse::<JobId>());
        if let Ok(path) = cursor.parse::<BlobPath>() {
            same_path(&path);
        }
    }
    if has("stream") {
        drop(logs::filter(query));
    }
    if has("expires_in") {
        drop(blobs::life(query.get("expires_in")));
    }
}

/// Reads the headers of a request, one on each line, with each function that reads headers.
pub fn headers(text: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in text.split(|byte| *byte == b'\n').take(100) {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let name = parts.next().map(HeaderName::from_bytes);
        let value = parts.next().map(HeaderValue::from_bytes);
        if let (Some(Ok(name)), Some(Ok(value))) = (name, value) {
            headers.append(name, value);
        }
    }
    // Through a trusted proxy, so that its headers are read.
    let proxy: Option<Cidr> = LOOPBACK.address.to_string().parse().ok();
    let peer = Peer::of(LOOPBACK, &headers, proxy.as_slice(), &[]);
    let _network = peer.network();
    let arrival = arrival(Method::POST, "/", peer);
    if let Some(cookie) = session::cookie(&headers, &arrival) {
        let written = session::set(&headers, &arrival, &cookie);
        assert!(HeaderValue::from_str(&written).is_ok(), "{written:?}");
    }
    drop(session::check_origin(&Method::POST, &headers, peer));
    drop(precondition(&headers));
    drop(body::is_json(&headers));
    if let Ok(token) = access::bearer(&headers) {
        drop(PlainToken::parse_session(token));
        for kind in [
            TokenKind::Personal,
            TokenKind::Registration,
            TokenKind::BlobLink,
        ] {
            drop(PlainToken::parse(kind, token));
        }
    }
    if let Ok(request) = request(Method::PUT, "/v0/blobs/a", Vec::new(), headers) {
        drop(blobs::replacement(&request));
        drop(logs::Form::of(&request));
        let _has_etag = request.has_already("\"1\"");
    }
}

const LOOPBACK: Connection = Connection {
    address: IpAddr::V4(Ipv4Addr::LOCALHOST),
    is_tls: false,
};

fn arrival(method: Method, path: &str, peer: Peer) -> Arrival {
    Arrival {
        id: Uuid::nil(),
        method,
        path: path.to_owned(),
        base: BasePath::default(),
        peer,
    }
}

fn request(
    method: Method,
    path: &str,
    parameters: Vec<String>,
    headers: HeaderMap,
) -> Result<Request, Failure> {
    let arrival = arrival(method, path, Peer::of(LOOPBACK, &headers, &[], &[]));
    let nothing = stream::empty::<Result<Bytes, warp::Error>>();
    Ok(Request {
        arrival: arrival.into(),
        parameters,
        query: Query::parse("", &["timestamps"])?,
        body: Body::new(nothing, &headers, u64::MAX)?,
        headers,
    })
}
