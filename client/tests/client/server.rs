//! A server on a loopback socket that gives prepared answers, one to each request in order, and remembers what it was
//! asked. Answers are raw bytes, so that they may be torn anywhere. After the last one it closes without a word.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A received request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    /// Method, path and query.
    pub(crate) line: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    async fn read(stream: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut request = Self::default();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            match line.split_once(": ") {
                Some((name, value)) => {
                    let header = (name.to_ascii_lowercase(), value.to_owned());
                    request.headers.push(header);
                }
                None => request.line = line.trim_end_matches(" HTTP/1.1").to_owned(),
            }
        }
        let length = request.header("content-length");
        let length = length.map_or(0, |length| length.parse().unwrap());
        request.body = vec![0; length];
        stream.read_exact(&mut request.body).await.ok()?;
        Some(request)
    }
}

/// The reply to a request.
#[derive(Debug, Clone)]
pub(crate) struct Reply(Vec<u8>);

impl Reply {
    pub(crate) fn new(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut bytes = head(status, headers);
        bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(body);
        Self(bytes)
    }

    pub(crate) fn json(body: &str) -> Self {
        Self::new(200, &[("content-type", "application/json")], body)
    }

    /// A problem document of this status and code.
    pub(crate) fn problem(status: u16, code: &str) -> Self {
        let body = format!(
            r#"{{"title":"T","status":{status},"code":"{code}","detail":"D","hint":"H","next":7}}"#
        );
        Self::new(status, &[("content-type", wire::PROBLEM_MEDIA_TYPE)], body)
    }

    /// A stream of pieces, either complete or interrupted.
    pub(crate) fn chunked(pieces: &[&str], ended: bool) -> Self {
        let mut bytes = head(200, &[("transfer-encoding", "chunked")]);
        bytes.extend_from_slice(b"\r\n");
        for piece in pieces {
            bytes.extend_from_slice(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes());
        }
        if ended {
            bytes.extend_from_slice(b"0\r\n\r\n");
        }
        Self(bytes)
    }

    /// The same response without its last bytes.
    pub(crate) fn torn(mut self, missing: usize) -> Self {
        self.0.truncate(self.0.len() - missing);
        self
    }

    /// Closes the connection without a response.
    pub(crate) fn nothing() -> Self {
        Self(Vec::new())
    }
}

fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.into_bytes()
}

/// The running server; it ends with the test's runtime.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub(crate) async fn start(replies: impl Into<Vec<Reply>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let replies = replies.into();
        tokio::spawn(async move {
            let mut replies = replies.into_iter();
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream = BufReader::new(stream);
                let Some(request) = Request::read(&mut stream).await else {
                    continue;
                };
                log.lock().unwrap().push(request);
                let reply = replies.next().unwrap_or_else(Reply::nothing);
                stream.write_all(&reply.0).await.unwrap();
                stream.shutdown().await.unwrap();
            }
        });
        Self { url, seen }
    }

    pub(crate) fn client(&self) -> client::Client {
        client::Client::new(&self.url, Some(client::Secret::new("hush"))).unwrap()
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen()
            .into_iter()
            .map(|request| request.line)
            .collect()
    }
}
