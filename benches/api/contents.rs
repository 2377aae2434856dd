//! Uploads and downloads of a blob and an artifact. The floor is a minimal server: it writes each body into a file,
//! hashes and syncs it, and sends a file unchanged. The same client drives both servers, with one connection per
//! request.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use client::Secret;
use sha2::{Digest, Sha256};
use uuid::Uuid;
use wire::{Message, Poll};

use crate::figures::memory;
use crate::stage::Stage;

const RUNS: usize = 5;
const MEGABYTES: u64 = 2_000;
const PIECE: usize = 256 * 1024;

type Failure = Box<dyn std::error::Error>;

pub(crate) fn run() {
    let size = MEGABYTES * 1_000_000;
    let stage = Stage::new();
    let pid = stage.world.daemon_pid();
    println!("contents: {MEGABYTES} MB, best of {RUNS} runs");
    let server = |path: &str| Server {
        address: stage.target.address.clone(),
        path: path.to_owned(),
        token: stage.target.token.clone(),
        digest: String::new(),
    };
    let floor = Server {
        address: plain(stage.world.path("plain")).unwrap(),
        ..server("/large")
    };
    let before = memory(pid, "VmHWM:");
    let blob = server("/v0/blobs/large");
    let mut uploads = Race::default();
    let mut downloads = Race::default();
    for _ in 0..RUNS {
        uploads.run(|| floor.upload(size), || blob.upload(size));
        downloads.run(|| floor.download(size), || blob.download(size));
    }
    uploads.print("blob in", size);
    downloads.print("blob out", size);
    let more = (memory(pid, "VmHWM:") - before) / 1_000.0;
    println!("  most memory of the daemon: {more:.1} MB more than before");
    let (mut uploads, mut downloads) = (Race::default(), Race::default());
    for run in 0..RUNS {
        // A job can have only one artifact of this name.
        let (job, token) = stage.block_on(claimed(&stage, run));
        let artifact = server(&format!("/v0/jobs/{job}/artifacts/out"));
        let writer = Server {
            token,
            address: artifact.address.clone(),
            path: artifact.path.clone(),
            digest: format!(
                "{}: sha256:{}\r\n",
                wire::CONTENT_DIGEST_HEADER,
                "0".repeat(64)
            ),
        };
        uploads.run(|| floor.upload(size), || writer.upload(size));
        downloads.run(|| floor.download(size), || artifact.download(size));
    }
    uploads.print("artifact in", size);
    downloads.print("artifact out", size);
    let more = (memory(pid, "VmHWM:") - before) / 1_000.0;
    println!("  most memory of the daemon: {more:.1} MB more than before");
}

/// A job that a runner has claimed, and the token of its worker.
async fn claimed(stage: &Stage, run: usize) -> (Uuid, String) {
    let labels = vec![format!("own_{run}")];
    let session = Stage::runner(&stage.client, format!("taker-{run}"), labels).await;
    let session = stage.client.with_token(session);
    let job = stage.dispatch(&format!("own_{run}")).await;
    let poll = Poll {
        instance: Uuid::nil(),
        number: None,
        capacity: 1,
        holding: Vec::new(),
    };
    let answer = session.poll(&poll).await.unwrap();
    let [Message::JobAssigned(assigned)] = &answer.messages[..] else {
        panic!("no job was assigned")
    };
    let worker = stage.client.with_token(Secret::new(assigned.token.clone()));
    worker.resolve(job).await.unwrap();
    (job, assigned.token.clone())
}

/// The best times of the floor and of the daemon, run in turn.
struct Race {
    floor: Duration,
    daemon: Duration,
}

impl Default for Race {
    fn default() -> Self {
        Self {
            floor: Duration::MAX,
            daemon: Duration::MAX,
        }
    }
}

impl Race {
    fn run(
        &mut self,
        floor: impl FnOnce() -> Result<(), Failure>,
        daemon: impl FnOnce() -> Result<(), Failure>,
    ) {
        self.floor = self.floor.min(timed(floor));
        self.daemon = self.daemon.min(timed(daemon));
    }

    fn print(&self, what: &str, size: u64) {
        let rate = |time: Duration| size as f64 / 1e6 / time.as_secs_f64();
        let (ours, floor) = (rate(self.daemon), rate(self.floor));
        println!(
            "  {what:<12}: {ours:>6.0} MB/s, floor {floor:>6.0} MB/s, ratio {:.2}",
            ours / floor
        );
    }
}

fn timed(work: impl FnOnce() -> Result<(), Failure>) -> Duration {
    let begun = Instant::now();
    work().unwrap();
    begun.elapsed()
}

struct Server {
    address: String,
    path: String,
    token: String,
    /// The digest over an artifact's entries, sent with the upload. The daemon stores it and cannot check it.
    digest: String,
}

impl Server {
    fn send(&self, method: &str, length: u64) -> Result<TcpStream, Failure> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(
            stream,
            "{method} {} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n{}\
             content-length: {length}\r\n\r\n",
            self.path, self.token, self.digest
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

/// Reads a head, and returns its first line and the length of the body.
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
