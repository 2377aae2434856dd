//! The whole package on sockets of this machine, with programs of others as peers.

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

mod https;
mod rules;

use crate::limits::DNS_CONNECTIONS;
use crate::{Callbacks, Hit, Kind, Server, Settings, StartError, Table, Transport, bind, start};

/// Longer than the busiest machine needs. Tests wait this long only if the code is broken.
const PATIENCE: Duration = Duration::from_secs(120);

const SERVER: &str = "abcdefghijklmnop";
const TAG: &str = "22222222223333333333";
const QUIET: &str = "44444444445555555555";

struct World {
    callbacks: Callbacks,
    hits: mpsc::Receiver<Hit>,
    table: watch::Sender<Arc<Table>>,
}

fn settings() -> Settings {
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    Settings {
        zones: vec!["cb.example.com".parse().unwrap()],
        dns: vec![here],
        http: vec![here],
        https: Vec::new(),
        tls: None,
        challenges: watch::channel(Vec::new()).1,
        public: vec!["192.0.2.1".parse().unwrap()],
        unlimited: vec!["127.0.0.0/8".parse().unwrap()],
        trusted_proxies: Vec::new(),
    }
}

fn table() -> Table {
    let tags = [TAG, QUIET].map(|tag| (tag.parse().unwrap(), None));
    let server = Server {
        tags: Arc::new(tags.into()),
        ..Server::default()
    };
    Table {
        servers: [(SERVER.parse().unwrap(), server)].into(),
    }
}

fn try_start(settings: Settings) -> Result<World, StartError> {
    let (table, known) = watch::channel(Arc::new(table()));
    let (hit, hits) = mpsc::channel(256);
    let callbacks = start(bind(settings)?, Arc::new(SystemTime::now), known, hit)?;
    Ok(World {
        callbacks,
        hits,
        table,
    })
}

impl World {
    fn start() -> Self {
        try_start(settings()).unwrap()
    }

    /// The arguments by which `dig` and `kdig` ask this server, and its output.
    fn dig(&self, program: &str, arguments: &str) -> Option<String> {
        let address = self.callbacks.dns[0];
        let port = address.port().to_string();
        let server = format!("@{}", address.ip());
        let fixed = [&server, "-p", &port, "+time=20", "+retry=0"].map(str::to_owned);
        output(
            program,
            fixed
                .into_iter()
                .chain(arguments.split(' ').map(str::to_owned)),
        )
    }

    async fn hit(&mut self) -> Hit {
        let hit = tokio::time::timeout(PATIENCE, self.hits.recv()).await;
        hit.unwrap().unwrap()
    }
}

/// What a program prints. `None` if it is not installed.
fn output(program: &str, arguments: impl Iterator<Item = String>) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            println!("SKIP: `{program}` cannot be run: {error}");
            None
        }
    }
}

fn query(name: &str) -> Vec<u8> {
    let mut bytes = vec![0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.bytes());
    }
    bytes.extend([0, 0, 1, 0, 1]);
    bytes
}

/// Asks over UDP and returns the answer.
fn ask(address: SocketAddr, name: &str) -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(&query(name), address).unwrap();
    let mut answer = vec![0; 2000];
    let length = socket.recv(&mut answer).unwrap();
    answer.truncate(length);
    answer
}

/// Sends bytes, and returns what comes back until the end.
async fn talk(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut answer = Vec::new();
    // A refused connection may be reset at any time.
    let _ = stream.write_all(bytes).await;
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer));
    let _ = read.await.unwrap();
    answer
}

#[tokio::test]
async fn dig_and_kdig_understand_the_answers() {
    let mut world = World::start();
    for program in ["dig", "kdig"] {
        for transport in ["", " +tcp"] {
            let name = format!("{SERVER}-{TAG}.cb.example.com");
            let Some(answer) = world.dig(program, &format!("{name} A{transport} +short")) else {
                continue;
            };
            assert_eq!(answer.trim(), "192.0.2.1");
            let Kind::Dns(dns) = world.hit().await.kind else {
                panic!()
            };
            let is_tcp = dns.transport == Transport::Tcp;
            assert_eq!((dns.name, is_tcp), (name, !transport.is_empty()));
        }
        for (arguments, expected) in [
            (
                "a.cb.example.com TXT",
                &["status: NOERROR", "\tSOA\tns1.cb.example.com."][..],
            ),
            (
                "cb.example.com NS",
                &["ns1.cb.example.com.", "ns2.cb.example.com."],
            ),
            (
                "cb.example.com SOA +short",
                &["hostmaster.cb.example.com. 1 3600 600 86400 0"],
            ),
            ("a.cb.example.com ANY +notcp", &["HINFO", "RFC8482"]),
            ("example.org A", &["status: REFUSED"]),
        ] {
            let Some(answer) = world.dig(program, arguments) else {
                continue;
            };
            for text in expected {
                // Only dig separates by tabs.
                let is_there = answer.contains(text) || answer.replace(' ', "\t").contains(text);
                assert!(is_there, "{program} {arguments}: {answer}");
            }
            assert!(!answer.contains("WARNING: Message parser"), "{answer}");
        }
        let transferred = world.dig(program, "cb.example.com AXFR");
        assert!(
            !transferred.unwrap_or_default().contains("ns1"),
            "{program}"
        );
    }
    world.callbacks.stop().await;
}

#[tokio::test]
async fn dig_shows_the_question_in_its_case_and_the_client_subnet_arrives() {
    let mut world = World::start();
    let name = format!("{SERVER}.Cb.eXAMPLE.com");
    let Some(answer) = world.dig("dig", &format!("{name} AAAA +subnet=198.51.100.0/24")) else {
        return;
    };
    assert!(answer.contains(&format!(";{name}.")), "{answer}");
    let Kind::Dns(dns) = world.hit().await.kind else {
        panic!()
    };
    assert_eq!(
        dns.client_subnet,
        Some(("198.51.100.0".parse().unwrap(), 24))
    );
    assert_eq!(dns.name, name);
}

#[tokio::test]
async fn dnsperf_loses_no_answer_while_nobody_takes_the_hits() {
    let mut world = World::start();
    let folder = tempfile::tempdir().unwrap();
    let asked = folder.path().join("asked");
    let lines = (0..100).map(|at| format!("{at}.{SERVER}-{TAG}.cb.example.com A\n"));
    std::fs::write(&asked, lines.collect::<String>()).unwrap();
    let port = world.callbacks.dns[0].port();
    let mut answered = 0;
    for mode in ["udp", "tcp"] {
        let fixed = format!("-m {mode} -s 127.0.0.1 -p {port} -c 4 -n 10 -t 60 -d");
        let arguments = fixed.split(' ').map(str::to_owned);
        let arguments = arguments.chain([asked.display().to_string()]);
        let Some(report) = output("dnsperf", arguments) else {
            return;
        };
        answered += 1000;
        assert!(report.contains("NOERROR 1000 (100.00%)"), "{report}");
        assert_eq!(world.callbacks.answered(), answered);
    }
    // The channel was full at once. What it did not take is counted.
    let mut hits = 0;
    while world.hits.try_recv().is_ok() {
        hits += 1;
    }
    let table = world.table.borrow().clone();
    let server = &table.servers[&SERVER.parse().unwrap()];
    assert_eq!(hits + server.counts.take().1, answered);
    world.callbacks.stop().await;
}

#[tokio::test]
async fn curl_gets_the_answer_and_leaves_its_request() {
    let mut world = World::start();
    let address = world.callbacks.http[0];
    let name = format!("{SERVER}-{TAG}.cb.example.com");
    let arguments = [
        "--silent",
        "--max-time",
        "60",
        "--http1.1",
        "--resolve",
        &format!("{name}:{}:{}", address.port(), address.ip()),
        "--user-agent",
        "Test-Agent",
        "--data-binary",
        "stolen=1",
        &format!("http://{name}:{}/path.json", address.port()),
    ];
    let Some(answer) = output("curl", arguments.into_iter().map(str::to_owned)) else {
        return;
    };
    assert_eq!(
        answer,
        r#"{"data":"33333333332222222222-ponmlkjihgfedcba"}"#
    );
    let Kind::Http(http) = world.hit().await.kind else {
        panic!()
    };
    assert_eq!(
        (http.method.as_str(), &*http.body),
        ("POST", &b"stolen=1"[..])
    );
    let head = String::from_utf8(http.head.to_vec()).unwrap();
    assert!(head.contains("\r\nUser-Agent: Test-Agent\r\n"), "{head}");
}

#[tokio::test]
async fn a_flood_on_one_tag_leaves_room_for_another() {
    let world = World::start();
    let address = world.callbacks.dns[0];
    let asked = tokio::task::spawn_blocking(move || {
        for _ in 0..300 {
            ask(address, &format!("{SERVER}-{TAG}.cb.example.com"));
        }
        ask(address, &format!("{SERVER}-{QUIET}.cb.example.com"));
    });
    asked.await.unwrap();
    let known = world.table.borrow().servers[&SERVER.parse().unwrap()]
        .counts
        .clone();
    assert_eq!(world.callbacks.answered(), 301);
    world.callbacks.stop().await;
    let mut hits = world.hits;
    let mut tags = Vec::new();
    while let Some(hit) = hits.recv().await {
        tags.push(hit.tag.unwrap().to_string());
    }
    assert_eq!(
        tags.len() as u64 + known.dropped.load(Ordering::Relaxed),
        301
    );
    assert_eq!(tags.last().unwrap(), QUIET);
}

#[tokio::test]
async fn a_new_table_counts_at_once() {
    let mut world = World::start();
    let name = "qrstuvwxyzabcdef";
    let request = format!("GET / HTTP/1.1\r\nhost: {name}\r\n\r\n");
    let status = async |address| {
        let answer = talk(address, request.as_bytes()).await;
        String::from_utf8(answer[9..12].to_vec()).unwrap()
    };
    let address = world.callbacks.http[0];
    assert_eq!(status(address).await, "404");
    assert_eq!(world.callbacks.unknown(), 1);
    let mut changed = table();
    changed
        .servers
        .insert(name.parse().unwrap(), Server::default());
    world.table.send_replace(Arc::new(changed));
    assert_eq!(status(address).await, "200");
    assert_eq!(world.hit().await.server.to_string(), name);
}

#[tokio::test]
async fn ten_thousand_connections_are_bounded() {
    let world = World::start();
    let address = world.callbacks.dns[0];
    let mut held = Vec::new();
    // Each is answered, so it has its place.
    while held.len() < DNS_CONNECTIONS {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let asked = query("cb.example.com");
        let length = u16::try_from(asked.len()).unwrap().to_be_bytes();
        stream
            .write_all(&[&length, asked.as_slice()].concat())
            .await
            .unwrap();
        stream.read_u16().await.unwrap();
        held.push(stream);
    }
    for _ in 0..10_000 {
        assert_eq!(talk(address, b"").await, b"");
    }
    let answer = tokio::task::spawn_blocking(move || ask(address, "cb.example.com"));
    assert_eq!(answer.await.unwrap()[3] & 0xf, 0);
    // Idle connections do not delay the stop for long.
    world.callbacks.stop().await;
    drop(held);
}

#[tokio::test]
async fn a_stop_frees_the_ports_and_ends_the_hits() {
    let mut world = World::start();
    let (dns, http) = (world.callbacks.dns[0], world.callbacks.http[0]);
    let _silent = TcpStream::connect(http).await.unwrap();
    let stopped = tokio::time::timeout(PATIENCE, world.callbacks.stop());
    stopped.await.unwrap();
    assert!(world.hits.recv().await.is_none());
    UdpSocket::bind(dns).unwrap();
    let same = Settings {
        dns: vec![dns],
        http: vec![http],
        ..settings()
    };
    try_start(same).unwrap();
}

#[tokio::test]
async fn ports_that_cannot_be_bound_are_named() {
    let holder = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = holder.local_addr().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let asked = socket.local_addr().unwrap();
    let none = || Settings {
        dns: Vec::new(),
        http: Vec::new(),
        ..settings()
    };
    let mut of_dns = none();
    of_dns.dns = vec![taken];
    let mut of_udp = none();
    of_udp.dns = vec![asked];
    let mut of_http = none();
    of_http.http = vec![taken];
    let mut of_https = none();
    of_https.https = vec![taken];
    for (settings, service, address) in [
        (of_dns, "DNS", taken),
        (of_udp, "DNS", asked),
        (of_http, "HTTP", taken),
        (of_https, "HTTPS", taken),
    ] {
        let expected = format!("cannot listen for {service} of callbacks on {address}");
        let error = try_start(settings).err().unwrap();
        assert_eq!(error.to_string(), expected);
        let StartError::Bind { source, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(source.kind(), std::io::ErrorKind::AddrInUse);
    }
}
