//! A fake daemon on a loopback socket. It gives prepared answers in order, or chooses them by the request, and records
//! the requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;

#[derive(Debug, Clone)]
pub(crate) struct Reply {
    status: u16,
    headers: String,
    body: Vec<u8>,
    delay: Duration,
}

impl Reply {
    pub(crate) fn bytes(body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            headers: String::new(),
            body: body.into(),
            delay: Duration::ZERO,
        }
    }

    /// A stored content, with its digest.
    pub(crate) fn content(body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let tag = format!("\"{}\"", workflow::sha256(&body));
        Self::bytes(body).header("etag", &tag)
    }

    pub(crate) fn json(value: &impl Serialize) -> Self {
        Self::bytes(serde_json::to_vec(value).unwrap())
    }

    pub(crate) fn problem(status: u16, code: &str, detail: &str, hint: Option<&str>) -> Self {
        Self::json(&serde_json::json!({
            "title": "Problem", "status": status, "code": code, "detail": detail, "hint": hint,
            "request_id": "r-1",
        }))
        .status(status)
    }

    pub(crate) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// Delays the response, like a daemon that holds the request.
    pub(crate) fn held(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    /// Method, path and query.
    pub(crate) line: String,
    pub(crate) token: Option<String>,
    /// The header `If-Match` or `If-None-Match`.
    pub(crate) condition: Option<String>,
    pub(crate) body: String,
}

/// The running server. Its thread ends with the process.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub(crate) fn start(replies: impl Into<Vec<Reply>>) -> Self {
        let replies = replies.into();
        Self::serve(move |listener, seen| {
            for reply in replies {
                let (stream, _) = listener.accept().unwrap();
                answer(stream, |_| reply, seen);
            }
        })
    }

    /// Answers any number of requests by method, path and query. For commands that repeat requests while they wait.
    pub(crate) fn answering(mut reply: impl FnMut(&str) -> Reply + Send + 'static) -> Self {
        Self::serve(move |listener, seen| {
            loop {
                let (stream, _) = listener.accept().unwrap();
                answer(stream, &mut reply, seen);
            }
        })
    }

    fn serve(serve: impl FnOnce(TcpListener, &Mutex<Vec<Request>>) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        std::thread::spawn(move || serve(listener, &log));
        Self { url, seen }
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

fn answer(stream: TcpStream, reply: impl FnOnce(&str) -> Reply, log: &Mutex<Vec<Request>>) {
    let mut reader = BufReader::new(stream);
    let mut request = Request::default();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some((name, value)) => match name.to_ascii_lowercase().as_str() {
                name @ ("if-match" | "if-none-match") => {
                    request.condition = Some(format!("{name}: {value}"));
                }
                "content-length" => length = value.parse().unwrap(),
                "authorization" => request.token = Some(value.to_owned()),
                _ => {}
            },
            None if line.trim().is_empty() => break,
            None => request.line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned(),
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    request.body = String::from_utf8_lossy(&body).into_owned();
    let reply = reply(&request.line);
    log.lock().unwrap().push(request);
    std::thread::sleep(reply.delay);
    let head = format!(
        "HTTP/1.1 {} X\r\nconnection: close\r\ncontent-length: {}\r\n{}\r\n",
        reply.status,
        reply.body.len(),
        reply.headers
    );
    let mut stream = reader.into_inner();
    // The program may have ended already, for example after a timeout.
    drop(stream.write_all(head.as_bytes()));
    drop(stream.write_all(&reply.body));
}
