//! HTTP/1, with or without TLS: any request is received, reported and answered, one for each connection.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use listen::{Addresses, Cidr, ServerTls};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use self::head::Head;
use self::received::{Copying, Received};
use crate::hit::{Http, Kind};
use crate::ids::{ServerId, Tag};
use crate::limits::{
    BODY, DRAIN, FIND, HEAD, HEAD_BYTES, PER_ADDRESS, RECEIVED_BODY, REQUEST, TEXT_BYTES,
};
use crate::report::{Named, Reporter};
use crate::start::Stopped;

pub(crate) mod head;
pub(crate) mod proxy;
mod received;
mod tls;

#[cfg(test)]
mod tests;

pub(crate) struct Site {
    pub(crate) trusted_proxies: Vec<Cidr>,
    /// The connections of senders that a proxy names.
    pub(crate) proxied: Addresses,
    pub(crate) reporter: Arc<Reporter>,
}

/// The other end of a connection.
#[derive(Debug, Clone)]
struct Client {
    peer: SocketAddr,
    is_tls: bool,
    /// The name that it asks for in TLS.
    sni: Option<String>,
}

impl Client {
    fn sni(&self) -> &[u8] {
        self.sni.as_deref().unwrap_or_default().as_bytes()
    }
}

/// Answers the request of a connection, and reports it if it names a known id.
pub(crate) async fn converse(
    mut stream: TcpStream,
    peer: SocketAddr,
    site: Arc<Site>,
    tls: Option<ServerTls>,
    stopped: Stopped,
) {
    let mut place = None;
    let mut proxies = site.trusted_proxies.iter();
    let peer = if proxies.any(|range| range.contains(peer.ip())) {
        match tokio::time::timeout(HEAD, proxy::sender(&mut stream, peer)).await {
            Ok(Ok(sender)) => {
                place = site.proxied.enter(sender.ip(), PER_ADDRESS, &[]);
                if place.is_none() {
                    return;
                }
                sender
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, %peer, "a trusted proxy of callbacks sent no PROXY v2 header");
                return;
            }
            Err(_) => return,
        }
    } else {
        peer
    };
    let mut client = Client {
        peer,
        is_tls: tls.is_some(),
        sni: None,
    };
    match tls {
        None => exchange(stream, client, site, stopped).await,
        Some(tls) => {
            let greeted = tls::greet(stream, &tls).await.unwrap_or_default();
            client.sni = greeted.name;
            match greeted.stream {
                Some(stream) => exchange(stream, client, site, stopped).await,
                // The name alone shows that the target has read it.
                None => site.report_bytes(&client, &Bytes::new(), "TLS handshake failed"),
            }
        }
    }
    drop(place);
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    client: Client,
    site: Arc<Site>,
    stopped: Stopped,
) {
    let received = Received::default();
    let service = service_fn(|request: Request<Incoming>| {
        let (received, site) = (received.clone(), site.clone());
        let (client, stopped) = (client.clone(), stopped.clone());
        async move { Ok::<_, Infallible>(answer(request, &client, &received, &site, stopped).await) }
    });
    let copied = Copying::new(stream, received.clone());
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .keep_alive(false)
        .half_close(true)
        .serve_connection(TokioIo::new(copied), service);
    // A stop leaves the time in which an answer is sent.
    let cut_off = async {
        stopped.clone().wait().await;
        tokio::time::sleep(DRAIN / 2).await;
    };
    tokio::select! {
        ended = tokio::time::timeout(REQUEST, served) => if let Ok(Err(error)) = ended {
            tracing::debug!(%error, peer = %client.peer, "a request of a callback broke off");
        },
        () = cut_off => {}
    }
    if let Some((bytes, status)) = received.refused() {
        site.report_bytes(&client, &bytes, &status);
    }
}

async fn answer(
    request: Request<Incoming>,
    client: &Client,
    received: &Received,
    site: &Site,
    mut stopped: Stopped,
) -> Response<Full<Bytes>> {
    let bytes = received.head();
    let is_tunnel = request.method() == Method::CONNECT;
    let is_whole = tokio::select! {
        is_whole = receive(request.into_body()) => is_whole,
        () = stopped.wait() => false,
    };
    let head = Head::read(&bytes);
    // Host and SNI may differ: a client connects to one name and asks for another.
    let texts = [head.host, client.sni(), head.target, &bytes];
    let named = site.reporter.find(&texts);
    let rule = named
        .as_ref()
        .and_then(|named| named.server.rules.http(&named.id, &head));
    let served = named.as_ref().filter(|_| rule.is_none() && !is_tunnel);
    let served = match served.and_then(|named| named.server.served.as_ref()) {
        Some(served) => tokio::select! {
            found = tokio::time::timeout(FIND, served.find(head.target)) => found.ok().flatten(),
            () = stopped.wait() => None,
        },
        None => None,
    };
    let payload = served.as_ref().map(|payload| payload.name.clone());
    let response = match (&named, &rule, served) {
        // After a 200 hyper would leave the connection to the caller.
        _ if is_tunnel => empty(StatusCode::METHOD_NOT_ALLOWED),
        (Some(_), Some(rule), _) => rule.response(),
        (Some(_), None, Some(payload)) => payload.response(),
        (Some(named), None, None) => default_answer(named.id, named.tag, head.target),
        (None, ..) => empty(StatusCode::NOT_FOUND),
    };
    let answer = match payload {
        Some(payload) => format!("{} {payload}", response.status().as_str()),
        None => response.status().as_str().to_owned(),
    };
    let name = rule.as_ref().filter(|_| !is_tunnel).map(|rule| rule.name());
    site.report(client, named.as_ref(), &answer, name, || {
        let (body, is_cut) = received.body(bytes.len());
        Http {
            body,
            truncated: is_cut || !is_whole,
            ..http(client, &bytes)
        }
    });
    if let Some(rule) = rule {
        tokio::select! {
            () = tokio::time::sleep(rule.delay) => {}
            () = stopped.wait() => {}
        }
    }
    response
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}

/// A request with this head.
fn http(client: &Client, bytes: &Bytes) -> Http {
    let head = Head::read(bytes);
    let text =
        |part: &[u8]| String::from_utf8_lossy(&part[..part.len().min(TEXT_BYTES)]).into_owned();
    Http {
        method: text(head.method),
        target: text(head.target),
        host: text(head.host),
        is_tls: client.is_tls,
        sni: client.sni.clone(),
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
    /// Reports what is no request.
    fn report_bytes(&self, client: &Client, bytes: &Bytes, answer: &str) {
        let named = self.reporter.find(&[client.sni(), bytes]);
        self.report(client, named.as_ref(), answer, None, || Http {
            malformed: true,
            ..http(client, bytes)
        });
    }

    fn report(
        &self,
        client: &Client,
        named: Option<&Named>,
        answer: &str,
        rule: Option<&str>,
        http: impl FnOnce() -> Http,
    ) {
        let Some(named) = named else { return };
        let (kind, rule) = (Kind::Http(http()), rule.map(str::to_owned));
        let hit = self
            .reporter
            .hit(named, client.peer, kind, answer.to_owned(), rule);
        self.reporter.report(&named.server, hit);
    }
}
