//! A daemon with a callback server, and a client that asks its names at a steady rate.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use client::{Client, Secret};
use tokio::runtime::Runtime;
use wire::{CreateCallback, CreateCallbackToken};

use crate::dns;
use crate::support::World;
use crate::support::port::Port;

const WORKFLOW: &str = "scans: { idle: { on: { dispatch: {} }, steps: [{ run: 'true' }] } }\n";

/// Queries are sent in this rhythm.
const TICK: Duration = Duration::from_millis(5);

pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) runtime: Runtime,
    pub(crate) client: Client,
    /// The id of the server.
    pub(crate) server: String,
    /// The tags of names, and the names.
    pub(crate) names: Vec<(String, String)>,
    pub(crate) address: SocketAddr,
    _port: Port,
}

impl Stage {
    /// With so many names. All of them are answered.
    pub(crate) fn new(names: usize) -> Self {
        let port = Port::hold();
        let mut world = World::below(Path::new(env!("CARGO_TARGET_TMPDIR")));
        world.init_repository();
        world.push(&[("bench.yaml", Some(WORKFLOW))]);
        world.daemon_config = Some(format!(
            "url: https://everscan.example.org\ncallback:\n  zones: [cb.test]\n  public: [192.0.2.1]\n  \
             unlimited: [127.0.0.1]\n  listen: {{ dns: ['127.0.0.1:{}'] }}\n",
            port.number()
        ));
        world.start_daemon();
        world.sync();
        let client = Client::new(world.url(), world.token().map(Secret::new)).unwrap();
        let runtime = Runtime::new().unwrap();
        let create = CreateCallback {
            project: "main".to_owned(),
            name: "oast".to_owned(),
            keep_days: None,
            keep_forever: false,
        };
        let server = runtime.block_on(client.create_callback(&create)).unwrap();
        let name = CreateCallbackToken {
            note: String::new(),
            expires_in_seconds: None,
            never_expires: false,
        };
        let token = || runtime.block_on(client.create_callback_token(&server.id, &name));
        let tokens = (0..names).map(|_| token().unwrap());
        let names = tokens.map(|mut it| (it.tag, it.names.remove(0))).collect();
        let stage = Self {
            address: SocketAddr::from(([127, 0, 0, 1], port.number())),
            world,
            runtime,
            client,
            server: server.id,
            names,
            _port: port,
        };
        // Names are known soon after they are made, the newest last.
        while stage.recorded() == 0 {
            stage.ask(&stage.names.last().unwrap().1);
            std::thread::sleep(Duration::from_millis(300));
        }
        stage
    }

    /// How many interactions are kept.
    pub(crate) fn recorded(&self) -> u64 {
        let shown = self.runtime.block_on(self.client.callbacks(None)).unwrap();
        shown[0].interactions
    }

    pub(crate) fn ask(&self, name: &str) {
        let socket = dns::client(self.address);
        socket.send(&dns::query(name)).unwrap();
        let _ = socket.recv(&mut [0; 2048]);
    }

    /// Commits since the daemon started, and their total time in seconds.
    pub(crate) fn commits(&self) -> (f64, f64) {
        let mut stream = TcpStream::connect(self.world.address()).unwrap();
        let token = self.world.token().unwrap();
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut metrics = String::new();
        stream.read_to_string(&mut metrics).unwrap();
        let value = |name: &str| {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().parse().unwrap()
        };
        (
            value("everscan_commit_seconds_count "),
            value("everscan_commit_seconds_sum "),
        )
    }
}

/// Sends queries until it is dropped or has sent them all. Nothing waits for the answers.
pub(crate) struct Flood {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    /// Asks the names in turns. Each query has a label of its own before its name, so that none is a repetition.
    pub(crate) fn start(address: SocketAddr, names: Vec<String>, rate: u32, most: usize) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let thread = std::thread::spawn(move || {
            let socket = dns::client(address);
            socket.set_nonblocking(true).unwrap();
            let (begun, mut sent) = (Instant::now(), 0);
            while sent < most && !over.load(Ordering::Relaxed) {
                let due = (begun.elapsed().as_secs_f64() * f64::from(rate)) as usize;
                for number in sent..due.min(most) {
                    let name = &names[number % names.len()];
                    // A full buffer of the receiver loses it, as any network may.
                    let _ = socket.send(&dns::query(&format!("n{number}.{name}")));
                    while socket.recv(&mut [0; 2048]).is_ok() {}
                }
                sent = due.min(most);
                std::thread::sleep(TICK);
            }
        });
        Self {
            is_over,
            thread: Some(thread),
        }
    }

    /// Waits until everything is sent.
    pub(crate) fn finish(mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}
