//! A minimal HTTP client: one connection, one request after the other.

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A kept connection.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Received bytes that are not read yet.
    buffer: BytesMut,
}

/// The address and the credentials of requests.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: String,
    pub(crate) token: String,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The cookie that the response sets, as `name=value`.
    pub(crate) cookie: Option<String>,
    pub(crate) body: BytesMut,
}

/// The head of a response.
pub(crate) struct Head {
    pub(crate) status: u16,
    length: usize,
    cookie: Option<String>,
}

impl Answer {
    /// The body of a successful response.
    pub(crate) fn json<T: serde::de::DeserializeOwned>(&self) -> T {
        let text = String::from_utf8_lossy(&self.body);
        assert!(self.status < 300, "{}: {text}", self.status);
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Target {
    pub(crate) async fn connect(&self) -> Connection {
        let stream = TcpStream::connect(&self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Connection {
            stream,
            buffer: BytesMut::with_capacity(4 * 1024),
        }
    }

    /// The bytes of a request.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
        format!(
            "{method} {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n{headers}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        )
        .into_bytes()
    }
}

impl Connection {
    /// Sends a request and reads the whole response.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Answer {
        self.send(request).await;
        self.answer().await
    }

    pub(crate) async fn send(&mut self, request: &[u8]) {
        self.stream.write_all(request).await.unwrap();
    }

    /// Reads a response with a length.
    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        while self.buffer.len() < head.length {
            self.more().await;
        }
        Answer {
            status: head.status,
            cookie: head.cookie,
            body: self.buffer.split_to(head.length),
        }
    }

    pub(crate) async fn head(&mut self) -> Head {
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end;
            }
            self.more().await;
        };
        let text = std::str::from_utf8(&self.buffer[..end]).unwrap();
        let value = |wanted: &str| {
            let mut headers = text.lines().filter_map(|line| line.split_once(": "));
            let found = headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value)
        };
        let cookie = value("set-cookie").and_then(|value| value.split(';').next());
        let head = Head {
            status: text[9..12].parse().unwrap(),
            length: value("content-length").map_or(0, |length| length.parse().unwrap()),
            cookie: cookie.map(str::to_owned),
        };
        self.buffer.advance(end + 4);
        head
    }

    /// Waits for the next event of a stream, and drops everything before it. The frames of chunks are between lines and
    /// not inside them, since the daemon sends whole events.
    pub(crate) async fn event(&mut self) {
        loop {
            let found = find(&self.buffer, b"\nevent: ").or_else(|| find(&self.buffer, b"event: "));
            if let Some(start) = found
                && let Some(end) = find(&self.buffer[start..], b"\n\n")
            {
                self.buffer.advance(start + end + 2);
                return;
            }
            self.more().await;
        }
    }

    /// Reads and drops data until the connection ends.
    pub(crate) async fn drain(mut self) {
        while self.stream.read_buf(&mut self.buffer).await.unwrap_or(0) > 0 {
            self.buffer.clear();
        }
    }

    async fn more(&mut self) {
        let count = self.stream.read_buf(&mut self.buffer).await.unwrap();
        assert!(count > 0, "the server has closed the connection");
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}
