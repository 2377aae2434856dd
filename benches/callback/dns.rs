//! Answers of DNS per second, beside a program on one thread that sends equally many bytes back. One client keeps queries in
//! flight, to one program after the other, in turns. The names have a live tag, so that each query is also a hit, or no known id.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use callback::{Server, Settings, Table, bind, start};
use tokio::sync::{mpsc, watch};

/// Queries in flight.
const WINDOW: usize = 64;

const TURNS: usize = 5;
const TURN: Duration = Duration::from_secs(2);

const SERVER: &str = "abcdefghijklmnop";
const TAG: &str = "22222222223333333333";

pub(crate) fn run() {
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    let settings = Settings {
        zones: vec!["cb.example.com".parse().unwrap()],
        dns: vec![here],
        http: Vec::new(),
        https: Vec::new(),
        tls: None,
        challenges: watch::channel(Vec::new()).1,
        public: vec!["192.0.2.1".parse().unwrap()],
        unlimited: vec!["127.0.0.1".parse().unwrap()],
        trusted_proxies: Vec::new(),
    };
    let server = Server {
        tags: Arc::new([(TAG.parse().unwrap(), None)].into()),
        ..Server::default()
    };
    let table = Table {
        servers: [(SERVER.parse().unwrap(), server)].into(),
    };
    let (_table, known) = watch::channel(Arc::new(table));
    let (hit, mut hits) = mpsc::channel(1024);
    let reader = thread::spawn(move || {
        let mut count = 0_u64;
        while hits.blocking_recv().is_some() {
            count += 1;
        }
        count
    });
    let callbacks = start(
        bind(settings).unwrap(),
        Arc::new(SystemTime::now),
        known,
        hit,
    )
    .unwrap();
    let ours = callbacks.dns[0];
    println!("queries in flight: {WINDOW}, turns of {} s", TURN.as_secs());
    for (label, name) in [
        ("with a live tag", format!("{SERVER}-{TAG}.cb.example.com")),
        ("without a known id", "www.cb.example.com".to_owned()),
    ] {
        let query = query(&name);
        let echo = echo(answer_length(ours, &query));
        let mut figures = [Vec::new(), Vec::new()];
        for _ in 0..TURNS {
            for (address, figures) in [echo, ours].into_iter().zip(&mut figures) {
                figures.push(rate(address, &query));
            }
        }
        let [echo, ours] = figures.map(median);
        println!(
            "{label}: {ours:.0}/s, echo {echo:.0}/s, ratio {:.2} (target: at least 0.5)",
            ours / echo
        );
    }
    println!("answered: {}", callbacks.answered());
    drop(callbacks);
    println!("hits in the channel: {}", reader.join().unwrap());
}

pub(crate) fn query(name: &str) -> Vec<u8> {
    let mut bytes = vec![0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.bytes());
    }
    bytes.extend([0, 0, 1, 0, 1]);
    bytes
}

pub(crate) fn client(address: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(address).unwrap();
    let patience = Some(Duration::from_millis(200));
    socket.set_read_timeout(patience).unwrap();
    socket
}

pub(crate) fn answer_length(address: SocketAddr, query: &[u8]) -> usize {
    let socket = client(address);
    socket.send(query).unwrap();
    socket.recv(&mut [0; 2048]).unwrap()
}

/// Starts the floor: whatever arrives, an answer of this length goes back.
pub(crate) fn echo(length: usize) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok((_, peer)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..length], peer);
        }
    });
    address
}

/// Answers per second.
fn rate(address: SocketAddr, query: &[u8]) -> f64 {
    let socket = client(address);
    let mut buffer = [0; 2048];
    let start = Instant::now();
    let mut answers = 0_u32;
    while start.elapsed() < TURN {
        for _ in 0..WINDOW {
            socket.send(query).unwrap();
        }
        for _ in 0..WINDOW {
            // A lost one is not waited for twice.
            if socket.recv(&mut buffer).is_err() {
                break;
            }
            answers += 1;
        }
    }
    f64::from(answers) / start.elapsed().as_secs_f64()
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
