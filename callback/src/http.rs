//! HTTP/1: any request is received, reported and answered, one for each connection.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use listen::Cidr;
use tokio::net::TcpStream;

use self::head::Head;
use self::received::{Copying, Received};
use crate::hit::{Hit, Http, Kind};
use crate::ids::{ServerId, Tag};
use crate::limits::{BODY, HEAD, HEAD_BYTES, RECEIVED_BODY, REQUEST};
use crate::report::Reporter;

pub(crate) mod head;
pub(crate) mod proxy;
mod received;

#[cfg(test)]
mod tests;

pub(crate) struct Site {
    pub(crate) trusted_proxies: Vec<Cidr>,
    pub(crate) reporter: Arc<Reporter>,
}

/// Answers the request of a connection, and reports it if it names a known id.
pub(crate) async fn converse(mut stream: TcpStream, peer: SocketAddr, site: Arc<Site>) {
    let mut proxies = site.trusted_proxies.iter();
    let peer = if proxies.any(|range| range.contains(peer.ip())) {
        match tokio::time::timeout(HEAD, proxy::sender(&mut stream, peer)).await {
            Ok(Ok(sender)) => sender,
            Ok(Err(error)) => {
                tracing::warn!(%error, %peer, "a trusted proxy of callbacks sent no PROXY v2 header");
                return;
            }
            Err(_) => return,
        }
    } else {
        peer
    };
    let received = Received::default();
    let service = service_fn(|request: Request<Incoming>| {
        let (received, site) = (received.clone(), site.clone());
        async move { Ok::<_, Infallible>(answer(request, peer, &received, &site).await) }
    });
    let copied = Copying::new(stream, received.clone());
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .keep_alive(false)
        .half_close(true)
        .serve_connection(TokioIo::new(copied), service);
    if let Ok(Err(error)) = tokio::time::timeout(REQUEST, served).await {
        tracing::debug!(%error, %peer, "a request of a callback broke off");
    }
    if let Some(bytes) = received.refused() {
        let found = site.reporter.find(&[&bytes]);
        site.report(peer, found, "refused", || Http {
            malformed: true,
            ..http(&bytes)
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    peer: SocketAddr,
    received: &Received,
    site: &Site,
) -> Response<Full<Bytes>> {
    let bytes = received.head();
    let is_whole = receive(request.into_body()).await;
    let head = Head::read(&bytes);
    let found = site.reporter.find(&[head.host, head.target, &bytes]);
    let response = match found {
        Some((server, tag)) => default_answer(server, tag, head.target),
        None => {
            let mut response = Response::default();
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        }
    };
    site.report(peer, found, response.status().as_str(), || {
        let (body, is_cut) = received.body(bytes.len());
        Http {
            body,
            truncated: is_cut || !is_whole,
            ..http(&bytes)
        }
    });
    response
}

/// A request with this head.
fn http(bytes: &Bytes) -> Http {
    let head = Head::read(bytes);
    let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
    Http {
        method: text(head.method),
        target: text(head.target),
        host: text(head.host),
        head: bytes.clone(),
        body: Bytes::new(),
        truncated: false,
        malformed: false,
    }
}

/// Receives a body, for a bounded time and length. Returns whether it has ended.
async fn receive(mut body: Incoming) -> bool {
    let whole = async {
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            length += frame.data_ref().map_or(0, Bytes::len);
            if length > RECEIVED_BODY {
                return false;
            }
        }
        true
    };
    tokio::time::timeout(BODY, whole).await.unwrap_or(false)
}

/// The id reversed: it proves that the request arrived here, and a page that only shows the request does not have it.
fn default_answer(server: ServerId, tag: Option<Tag>, target: &[u8]) -> Response<Full<Bytes>> {
    let id = match tag {
        Some(tag) => format!("{server}-{tag}"),
        None => server.to_string(),
    };
    let reversed: String = id.chars().rev().collect();
    let path = target.split(|byte| matches!(byte, b'?' | b'#')).next();
    let path = path.unwrap_or_default();
    let (kind, text) = if path.ends_with(b"/robots.txt") {
        let text = format!("User-agent: *\nDisallow: /\n# {reversed}\n");
        ("text/plain", text)
    } else if path.ends_with(b".json") {
        ("application/json", format!("{{\"data\":\"{reversed}\"}}"))
    } else if path.ends_with(b".xml") {
        ("application/xml", format!("<data>{reversed}</data>"))
    } else {
        ("text/plain", reversed)
    };
    let mut response = Response::new(Full::from(text));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

impl Site {
    fn report(
        &self,
        peer: SocketAddr,
        found: Option<(ServerId, Option<Tag>)>,
        answer: &str,
        http: impl FnOnce() -> Http,
    ) {
        let Some((server, tag)) = found else { return };
        self.reporter.report(Hit {
            at: self.reporter.now(),
            peer,
            server,
            tag,
            kind: Kind::Http(http()),
            answer: answer.to_owned(),
        });
    }
}
