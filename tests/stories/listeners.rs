//! A thousand listeners to events, one of which never reads: only this listener is dropped, and the
//! daemon keeps no events for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use rustix::net::sockopt::set_socket_recv_buffer_size;
use serde_json::{Value, json};

use crate::backup;
use crate::support::{PATIENCE, World};

const LISTENERS: usize = 1_000;

/// Listeners that subscribe to all events and read them. The others wait for a job that never changes.
const READERS: usize = 2;

/// Allowed growth of the daemon's memory: less than the size of all events together, which the
/// daemon would need if it kept them for a listener.
const GROWTH: u64 = 24 * 1024 * 1024;

/// Characters of an event, with four bytes each: the limit for a step's error, so that the sockets
/// at both ends are soon full.
const PADDING: usize = 1_900;

/// A listener that never reads is dropped when its sockets are full, which takes some megabytes,
/// and a thousand commits wait for it. These events have more bytes than both together.
const EVENTS: u64 = 2_000;

/// Number of events between two polls of the runner.
const BETWEEN_POLLS: u64 = 200;

const WORKFLOW: &str = "scans: { wait: { on: { dispatch: {} }, steps: [ { run: 'true' } ] } }\n";

/// A connection that stays open from request to request.
pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
    token: String,
}

impl Connection {
    pub(crate) fn open(world: &World, token: &str) -> Self {
        let stream = TcpStream::connect(world.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            reader: BufReader::new(stream),
            token: token.to_owned(),
        }
    }

    /// Limits the kernel's buffer for unread data. Otherwise the kernel may buffer all events.
    fn with_small_buffer(self) -> Self {
        set_socket_recv_buffer_size(self.reader.get_ref(), 64 * 1024).unwrap();
        self
    }

    fn send(&mut self, method: &str, path: &str, body: &str) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len(),
        );
        self.reader.get_mut().write_all(request.as_bytes()).unwrap();
    }

    /// Reads a head, which must have status 200, and returns the length of the body.
    fn head(&mut self) -> usize {
        let (mut status, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).unwrap();
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if status.is_empty() {
                line.clone_into(&mut status);
            }
            if let Some(text) = line.strip_prefix("content-length: ") {
                length = text.parse().unwrap();
            }
        }
        assert!(status.starts_with("HTTP/1.1 2"), "{status}");
        length
    }

    pub(crate) fn call(&mut self, method: &str, path: &str, body: &Value) -> Value {
        self.send(method, path, &body.to_string());
        let mut answer = vec![0; self.head()];
        self.reader.read_exact(&mut answer).unwrap();
        serde_json::from_slice(&answer).unwrap_or_default()
    }

    /// Listens, and waits until the daemon has it among the listeners.
    fn listen(mut self, query: &str) -> Self {
        self.send("GET", &format!("/v0/events{query}"), "");
        self.head();
        self.until(": alive");
        self
    }

    /// Reads until a line begins with `text`; false at the end of the stream.
    fn until(&mut self, text: &str) -> bool {
        loop {
            let mut line = Vec::new();
            // A broken stream has also ended.
            match self.reader.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return false,
                // The last chunk.
                Ok(_) if line == b"0\r\n" => return false,
                Ok(_) if line.starts_with(text.as_bytes()) => return true,
                Ok(_) => {}
            }
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The memory of the daemon, in bytes.
fn memory(world: &World) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.daemon_pid())).unwrap();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kilobytes * 1024
}

#[test]
fn a_listener_that_never_reads_is_dropped_and_costs_no_memory() {
    // Each event is a commit, which is faster in memory.
    let mut world = backup::memory().map_or_else(World::new, World::below);
    world.init_repository();
    world.push(&[("wait.yaml", Some(WORKFLOW))]);
    world.start_daemon();
    world.sync();
    let admin = world.token().unwrap();
    let open = |token: &str| Connection::open(&world, token);

    let mut user = open(&admin);
    let dispatch = "/v0/workflows/wait/scans/wait/dispatch";
    let busy = user.call("POST", dispatch, &json!({}));
    let registration = user.call("POST", "/v0/runner-registrations", &json!({}));
    let register = json!({
        "token": registration["token"], "name": "one", "capacity": 1, "version": "0.1.0",
    });
    let runner = user.call("POST", "/v0/runners/register", &register);
    let poll = json!({"capacity": 1, "holding": []});
    let runner = text(&runner["token"]);
    let messages = open(&runner).call("POST", "/v0/messages", &poll);
    let offer = &messages[0]["job_assigned"];
    assert_eq!(offer["id"], busy["job"]["id"]);
    let job = format!("/v0/jobs/{}", text(&offer["id"]));
    let mut worker = open(&text(&offer["token"]));
    worker.call("POST", &format!("{job}/resolve"), &json!({}));
    let quiet = user.call("POST", dispatch, &json!({}));

    let of_quiet = format!("?job={}", text(&quiet["job"]["id"]));
    let mut readers: Vec<Connection> = (0..READERS).map(|_| open(&admin).listen("")).collect();
    let others = LISTENERS - READERS - 1;
    let _others: Vec<Connection> = (0..others)
        .map(|_| open(&admin).listen(&of_quiet))
        .collect();
    let mut silent = open(&admin).with_small_buffer().listen("");

    let padding = "\u{1f980}".repeat(PADDING);
    let mut report = |number: u64| {
        let step = json!({
            "index": 0, "status": "running", "started_at": "2026-11-20T12:00:00Z",
            "error": format!("{number} {padding}"),
        });
        worker.call(
            "POST",
            &format!("{job}/timeline"),
            &json!({"steps": [step]}),
        );
        for reader in &mut readers {
            assert!(
                reader.until("event: step"),
                "a reader was dropped at {number}"
            );
        }
    };
    // The runner polls meanwhile. On a busy machine the events take longer than a runner may be silent.
    let holding = json!({"capacity": 1, "holding": [busy["job"]["id"]]}).to_string();
    let mut poll = |number| {
        let mut connection = open(&runner);
        connection.send("POST", "/v0/messages", &holding);
        (number..number + BETWEEN_POLLS).for_each(&mut report);
    };
    poll(0);
    let before = memory(&world);
    (BETWEEN_POLLS..EVENTS)
        .step_by(BETWEEN_POLLS as usize)
        .for_each(&mut poll);
    let after = memory(&world);
    assert!(after < before + GROWTH, "{before} became {after}");
    // On a busy machine the daemon may close the connection before it has too much to send.
    let mut received = 0;
    while silent.until("event: step") {
        received += 1;
    }
    assert!(received < EVENTS, "it was not dropped");
}
