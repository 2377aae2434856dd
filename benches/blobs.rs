//! What storing and reading a large blob costs beside the least that does the same: a server that writes each body into a
//! file, hashes it and syncs it, and sends a file as it is. Both are driven by the same client, one connection for each request.
//!
//!     cargo bench --package daemon --bench blobs [-- MEGABYTES]

#![expect(
    clippy::disallowed_methods,
    reason = "tests lay out files and start the programs they are about"
)]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use support::World;

#[path = "../tests/support.rs"]
#[expect(
    dead_code,
    clippy::unwrap_used,
    reason = "the stories need more of it, and a figure that cannot be taken ends there as well"
)]
mod support;

const RUNS: usize = 5;
const MEGABYTES: u64 = 2_000;
const PIECE: usize = 256 * 1024;

type Failure = Box<dyn std::error::Error>;

#[expect(clippy::print_stdout, reason = "the figures are this program's output")]
fn main() -> Result<(), Failure> {
    let megabytes = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(MEGABYTES);
    let size = megabytes * 1_000_000;
    // On the disk of the build, not in memory.
    let mut world = World::below(Path::new(env!("CARGO_TARGET_TMPDIR")));
    world.init_repository();
    world.start_daemon();
    let token = world.token().ok_or("no token")?;
    let daemon = Server {
        address: world.address(),
        path: "/v0/blobs/large".to_owned(),
        token,
    };
    let floor = Server {
        address: plain(world.path("plain"))?,
        path: "/large".to_owned(),
        token: String::new(),
    };
    let before = resident(world.daemon_pid())?;
    println!("{megabytes} MB, {RUNS} runs, best of them");
    for (what, request) in [
        (
            "upload",
            Server::upload as fn(&Server, u64) -> Result<(), Failure>,
        ),
        ("download", Server::download),
    ] {
        let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
        for _ in 0..RUNS {
            theirs = theirs.min(timed(|| request(&floor, size))?);
            ours = ours.min(timed(|| request(&daemon, size))?);
        }
        let rate = |time: Duration| size as f64 / 1e6 / time.as_secs_f64();
        println!(
            "{what:<9} daemon {:>7.0} MB/s, floor {:>7.0} MB/s, ratio {:.2}",
            rate(ours),
            rate(theirs),
            rate(ours) / rate(theirs)
        );
    }
    let after = resident(world.daemon_pid())?;
    println!("memory: {before} kB before, at most {after} kB");
    world.stop_daemon();
    Ok(())
}

fn timed(work: impl FnOnce() -> Result<(), Failure>) -> Result<Duration, Failure> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed())
}

struct Server {
    address: String,
    path: String,
    token: String,
}

impl Server {
    fn send(&self, method: &str, length: u64) -> Result<TcpStream, Failure> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(
            stream,
            "{method} {} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n",
            self.path, self.token
        )?;
        Ok(stream)
    }

    fn upload(&self, size: u64) -> Result<(), Failure> {
        let mut stream = self.send("PUT", size)?;
        let piece: Vec<u8> = (0..PIECE).map(|n| (n % 251) as u8).collect();
        let mut left = size;
        while left > 0 {
            let count = left.min(PIECE as u64) as usize;
            stream.write_all(&piece[..count])?;
            left -= count as u64;
        }
        let mut reader = BufReader::new(stream);
        head(&mut reader).map(drop)
    }

    fn download(&self, size: u64) -> Result<(), Failure> {
        let mut reader = BufReader::with_capacity(PIECE, self.send("GET", 0)?);
        head(&mut reader)?;
        let mut piece = vec![0; PIECE];
        let mut received = 0;
        loop {
            match reader.read(&mut piece)? {
                0 if received == size => return Ok(()),
                0 => return Err(format!("{received} bytes came").into()),
                count => received += count as u64,
            }
        }
    }
}

/// Reads a head, and answers its first line and the length that it tells.
fn head(reader: &mut impl BufRead) -> Result<(String, u64), Failure> {
    let (mut first, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if first.is_empty() {
            first = line;
        }
    }
    match first.starts_with("HTTP/1.1 4") || first.starts_with("HTTP/1.1 5") {
        true => Err(first.into()),
        false => Ok((first, length)),
    }
}

/// Serves one file: a body is written, hashed and synced, and then the file is renamed.
fn plain(folder: PathBuf) -> Result<String, Failure> {
    std::fs::create_dir(&folder)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if serve(stream, &folder).is_err() {
                return;
            }
        }
    });
    Ok(address)
}

fn serve(stream: TcpStream, folder: &Path) -> Result<(), Failure> {
    let mut reader = BufReader::with_capacity(PIECE, stream.try_clone()?);
    let (first, length) = head(&mut reader)?;
    let (path, mut stream) = (folder.join("large"), stream);
    let mut piece = vec![0; PIECE];
    if first.starts_with("GET") {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n")?;
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(()),
                count => stream.write_all(&piece[..count])?,
            }
        }
    }
    let unfinished = folder.join("new");
    let mut file = File::create(&unfinished)?;
    let mut digest = Sha256::new();
    let mut left = length;
    while left > 0 {
        let count = reader.read(&mut piece)?;
        file.write_all(&piece[..count])?;
        digest.update(&piece[..count]);
        left -= count as u64;
    }
    file.sync_data()?;
    std::fs::rename(&unfinished, &path)?;
    File::open(folder)?.sync_all()?;
    let digest = workflow::hex(&digest.finalize());
    Ok(write!(
        stream,
        "HTTP/1.1 201 Created\r\netag: \"{digest}\"\r\ncontent-length: 0\r\n\r\n"
    )?)
}

/// The most memory that a process has had, in kB.
fn resident(pid: u32) -> Result<u64, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let count = line.and_then(|line| line.split_whitespace().next());
    Ok(count.ok_or("no VmHWM")?.parse()?)
}
