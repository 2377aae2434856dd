//! A minimal warp server: it answers every GET with the same bytes, and holds every POST to `/held`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use warp::Filter;
use warp::http::Response;

/// The argument that makes this program the bare server.
pub(crate) const SERVE: &str = "bare-server";

/// A running bare server. Dropping it ends it.
pub(crate) struct Bare {
    process: Child,
    pub(crate) address: String,
}

impl Bare {
    /// Starts a server that answers with the bytes of a file.
    pub(crate) fn start(body: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg(SERVE)
            .arg(body)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        let output = process.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut address).unwrap();
        Self {
            address: address.trim().to_owned(),
            process,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Serves until it is killed.
pub(crate) fn serve(body: &str) {
    let body = Bytes::from(std::fs::read(body).unwrap());
    let answer = move || {
        Response::builder()
            .header("content-type", "application/json")
            .body(body.clone())
    };
    let held = Arc::new(AtomicUsize::new(0));
    let holding = held.clone();
    let count = warp::path!("held")
        .and(warp::get())
        .map(move || held.load(Ordering::Relaxed).to_string());
    let hold = warp::path!("held")
        .and(warp::post())
        .and(warp::body::bytes())
        .then(move |_: Bytes| {
            holding.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<String>()
        });
    let answered = warp::get().map(answer.clone());
    let posted = warp::post()
        .and(warp::body::bytes())
        .map(move |_: Bytes| answer());
    let service = warp::service(count.or(hold).or(answered).or(posted));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        std::io::stdout().flush().unwrap();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let service = TowerToHyperService::new(service.clone());
            // A disconnected client is not an error.
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
}
