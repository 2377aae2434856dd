//! Calls over HTTP/1.1, each on its own connection. The answer is read whole or piece by piece.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::documented;

/// Long enough for the busiest machine. Tests wait this long only if the code is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// A call before it is sent.
#[derive(Clone)]
pub(crate) struct Call {
    method: Method,
    path: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl Call {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    /// The same call with another method.
    pub(crate) fn with(mut self, method: &Method) -> Self {
        self.method = method.clone();
        self
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn bytes(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json")
            .bytes(body.to_string())
    }

    /// Sends the call and reads the head of the answer.
    pub(crate) async fn open(self, address: SocketAddr) -> Opened {
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        // A broken connection is visible in the answer.
        tokio::spawn(async move { drop(connection.await) });
        let host = self.headers.iter().find(|(name, _)| name == "host");
        let host = host.map_or("localhost", |(_, host)| host.as_str());
        let mut request = Request::builder()
            .method(self.method)
            .uri(&self.path)
            .header("host", host);
        for (name, value) in self.headers.iter().filter(|(name, _)| name != "host") {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(self.body)).unwrap();
        let response = in_time(sender.send_request(request)).await.unwrap();
        let (head, body) = response.into_parts();
        Opened {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        }
    }

    /// Sends the call and reads the answer, except for the events of a stream, which has no end.
    pub(crate) async fn send_to_stream(self, address: SocketAddr) -> Answer {
        let opened = self.open(address).await;
        let kind = opened.headers.get("content-type");
        if kind.is_some_and(|kind| kind == "text/event-stream") {
            return Answer {
                status: opened.status,
                headers: opened.headers,
                body: Bytes::new(),
            };
        }
        opened.whole().await
    }

    /// Sends the call and reads the whole answer.
    pub(crate) async fn send(self, address: SocketAddr) -> Answer {
        let (method, path) = (self.method.clone(), self.path.clone());
        let headers = self.headers.clone();
        let answer = self.open(address).await.whole().await;
        documented::check(&method, &path, &headers, &answer);
        answer
    }
}

/// An answer whose body has not been read.
pub(crate) struct Opened {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Incoming,
}

impl Opened {
    async fn whole(self) -> Answer {
        let Self {
            status,
            headers,
            body,
        } = self;
        let body = in_time(body.collect()).await.unwrap().to_bytes();
        Answer {
            status,
            headers,
            body,
        }
    }

    /// The next piece as text; none at the end.
    pub(crate) async fn piece(&mut self) -> Option<String> {
        let frame = in_time(self.body.frame()).await?.unwrap();
        Some(String::from_utf8(frame.into_data().unwrap().into()).unwrap())
    }

    /// Reads until `text` has arrived, and returns everything read so far.
    pub(crate) async fn until(&mut self, text: &str) -> String {
        let mut read = String::new();
        while !read.contains(text) {
            match self.piece().await {
                Some(piece) => read.push_str(&piece),
                None => panic!("ended without {text:?}: {read:?}"),
            }
        }
        read
    }

    /// Reads the rest of the body. True if the body breaks off instead of ending.
    pub(crate) async fn breaks_off(&mut self) -> bool {
        loop {
            match in_time(self.body.frame()).await {
                Some(Ok(_)) => {}
                Some(Err(_)) => return true,
                None => return false,
            }
        }
    }

    /// The rest of the body.
    pub(crate) async fn rest(&mut self) -> String {
        let mut read = String::new();
        while let Some(piece) = self.piece().await {
            read.push_str(&piece);
        }
        read
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {} {:?}", self.status, self.body))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The JSON of the answer, which must have this status.
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:?}", self.body);
        if self.body.is_empty() {
            Value::Null
        } else {
            self.json()
        }
    }

    /// Expects a problem with this status and code, and returns its body.
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        let body = self.expect(status);
        assert_eq!(body["code"], code, "{body}");
        assert_eq!(body["status"], status, "{body}");
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        assert_eq!(body["request_id"].as_str(), self.header("x-request-id"));
        body
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// Raw bytes on a separate connection.
pub(crate) struct Raw(TcpStream);

impl Raw {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    /// Opens a connection and sends the bytes.
    pub(crate) async fn send(address: SocketAddr, bytes: impl AsRef<[u8]>) -> Self {
        let mut raw = Self::connect(address).await;
        raw.write(bytes).await;
        raw
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
    }

    /// The head of the answer, up to the empty line.
    pub(crate) async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match in_time(self.0.read_u8()).await {
                Ok(byte) => head.push(byte),
                Err(_) => break,
            }
        }
        String::from_utf8(head).unwrap()
    }

    /// Closes the sending side, and returns everything the server sends until it closes.
    pub(crate) async fn leave(mut self) -> String {
        self.0.shutdown().await.unwrap();
        self.until_closed().await
    }

    /// Everything the server sends until it closes.
    pub(crate) async fn until_closed(mut self) -> String {
        let mut rest = Vec::new();
        // A reset closes the connection, too.
        drop(in_time(self.0.read_to_end(&mut rest)).await);
        String::from_utf8_lossy(&rest).into_owned()
    }
}

/// Waits for something that must happen soon.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("nothing came in {PATIENCE:?}"),
    }
}
