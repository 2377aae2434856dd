//! Sending files of the repository while something is slow or stops.

use std::fs;
use std::net::{TcpListener, TcpStream};

use futures_util::FutureExt as _;
use model::{CHECKOUT, SourceName, WorkflowId};
use tempfile::TempDir;
use tokio::task::{JoinSet, yield_now};

use super::*;
use crate::git::testing::{FILE, Fixture};
use crate::git::{Access, Calls, Location};
use crate::limits::FILE_STREAMS;
use crate::source::SourceConfig;
use crate::testing::{PATIENCE, TestDaemon, in_time};

const WITH_FILES: &str = "
scans:
  say:
    on: {dispatch: {}}
    checkout: true
    steps: [{run: 'true'}]
";

fn config(name: &str, location: Location) -> SourceConfig {
    SourceConfig {
        name: name.parse().unwrap(),
        location,
        access: Access::default(),
        reference: None,
        folder: "workflows".to_owned(),
        interval: Duration::from_secs(3600),
    }
}

/// The worker of a job that gets files of this source.
async fn worker_of(daemon: &TestDaemon, source: &str) -> Worker {
    let name: SourceName = source.parse().unwrap();
    let synced = in_time("a poll", daemon.handle.sources().sync(&name, true));
    synced.await.unwrap();
    let (runner, _) = daemon.register(source, 1).await;
    let capabilities = vec![CHECKOUT.to_owned()];
    let started = daemon
        .handle
        .runners()
        .starts(runner, "1".to_owned(), capabilities);
    started.await.unwrap();
    daemon
        .run(runner, WorkflowId::derive(&name, "files"), "say")
        .await
}

#[tokio::test]
async fn fetching_a_commit_of_a_source_does_not_delay_files_of_another_source() {
    let [away, near] = ["away", "near"].map(|name| {
        let fixture = Fixture::bare();
        fixture.push(&[("workflows/files.yaml", FILE, WITH_FILES.as_bytes())]);
        (config(name, fixture.location()), fixture)
    });
    let folder = TempDir::new().unwrap();
    let daemon = TestDaemon::open(&folder, 0, vec![away.0, near.0]).await;
    let (of_away, of_near) = (
        worker_of(&daemon, "away").await,
        worker_of(&daemon, "near").await,
    );

    // One job waits for the repository, which does not answer. Other jobs wait for their turn.
    let source = daemon
        .handle
        .sources()
        .get(&"away".parse().unwrap())
        .unwrap()
        .clone();
    let asking = source.turn_to_fetch().await;
    let mirrors = state::mirrors_folder(&folder.path().join("state"));
    fs::remove_dir_all(state::mirror_folder(&mirrors, source.name())).unwrap();
    let mut waiting = JoinSet::new();
    for _ in 0..FILE_STREAMS {
        let (handle, worker) = (daemon.handle.clone(), of_away.clone());
        waiting.spawn(async move { handle.source_files(&worker).await.map(drop) });
    }
    yield_now().await;
    let files = in_time(
        "files of the other source",
        daemon.handle.source_files(&of_near),
    );
    assert!(files.await.is_ok());

    drop(asking);
    for ended in in_time("the others", waiting.join_all()).await {
        ended.unwrap();
    }
    daemon.close().await;
}

/// A source whose repository accepts connections but does not answer, with a running fetch of one commit.
struct Hanging {
    source: SourceHandle,
    calls: Calls,
    fetching: tokio::task::JoinHandle<Result<(), WorkerError>>,
    _folder: TempDir,
    _connection: TcpStream,
}

impl Hanging {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x", listener.local_addr().unwrap());
        let folder = TempDir::new().unwrap();
        let calls = Calls::default();
        let config = config("recon", Location::parse(&url).unwrap());
        let source = SourceHandle::new(config, folder.path(), calls.clone());
        let turn = source.turn_to_fetch().await;
        let (asked, commit) = (source.clone(), "c".repeat(40).parse().unwrap());
        let fetching = tokio::spawn(async move { fetch(&asked, commit, turn).await });
        let accepted = tokio::task::spawn_blocking(move || listener.accept().unwrap());
        let (connection, _) = in_time("the call of git", accepted).await.unwrap();
        Self {
            source,
            calls,
            fetching,
            _folder: folder,
            _connection: connection,
        }
    }

    /// Does the last part of a stop.
    async fn stop(&self) {
        let calls = self.calls.clone();
        let ended = tokio::task::spawn_blocking(move || calls.end(PATIENCE));
        assert!(in_time("the end of git", ended).await.unwrap());
    }
}

#[tokio::test]
async fn a_stop_while_a_commit_is_fetched_does_not_fail_the_job() {
    let mut hanging = Hanging::start().await;
    hanging.stop().await;
    let fetched = in_time("the end of the fetch", &mut hanging.fetching);
    let fetched = fetched.await.unwrap();
    assert!(matches!(fetched, Err(WorkerError::Stopping)), "{fetched:?}");
}

#[tokio::test]
async fn a_fetch_keeps_its_turn_after_its_caller_was_cancelled() {
    let mut hanging = Hanging::start().await;
    hanging.fetching.abort();
    let fetched = in_time("the end of the request", &mut hanging.fetching);
    assert!(fetched.await.unwrap_err().is_cancelled());
    let next = hanging.source.turn_to_fetch();
    tokio::pin!(next);
    assert!(next.as_mut().now_or_never().is_none());
    hanging.stop().await;
    in_time("the next turn", next).await;
}

#[tokio::test]
async fn after_a_missed_piece_the_reader_gets_no_other_piece() {
    let (sender, mut pieces) = mpsc::channel(1);
    let runtime = Runtime::current();
    let sending = tokio::task::spawn_blocking(move || {
        let mut sending = Pieces {
            sender: &sender,
            runtime: &runtime,
            pause: Duration::from_millis(10),
            has_failed: false,
        };
        sending.write_all(b"read").unwrap();
        sending.write_all(b"missed").unwrap_err();
        assert!(matches!(pieces.blocking_recv(), Some(Piece::Bytes(read)) if read == "read"));
        sending.write_all(b"after").unwrap_err();
        assert!(pieces.try_recv().is_err());
    });
    sending.await.unwrap();
}

async fn sent(length: usize) -> mpsc::Receiver<Piece> {
    let (sender, pieces) = mpsc::channel(FILES_PIECES);
    let runtime = Runtime::current();
    let sending = tokio::task::spawn_blocking(move || {
        let pieces = Pieces {
            sender: &sender,
            runtime: &runtime,
            pause: Duration::from_millis(10),
            has_failed: false,
        };
        let content = vec![0; length];
        send_all(pieces, |writer| {
            writer.write_all(&content).map_err(FilesError::Unsent)
        });
    });
    sending.await.unwrap();
    pieces
}

#[tokio::test]
async fn a_stuck_reader_does_not_block_the_stream_and_gets_no_end() {
    let mut pieces = sent((FILES_PIECES + 1) * FILES_PIECE).await;
    let mut last = None;
    while let Some(piece) = pieces.recv().await {
        last = Some(piece);
    }
    assert!(matches!(last, Some(Piece::Bytes(_))));

    let mut pieces = sent(1).await;
    assert!(matches!(pieces.recv().await, Some(Piece::Bytes(_))));
    assert!(matches!(pieces.recv().await, Some(Piece::End)));
    assert!(pieces.recv().await.is_none());
}
