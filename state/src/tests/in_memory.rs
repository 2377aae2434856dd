//! Tests the state with the engine in memory, on one thread and with a clock that the test moves, as in simulations.

use std::sync::Arc;
use std::time::Duration;

use model::decide::{Consider, Evaluate};
use store::Room;
use store::memory::MemoryStore;
use tokio::task::JoinHandle;

use super::everything::make_every_kind_of_record;
use super::fixture::{Fleet, Opened, Seeded, TestClock, WATCHING, completion, line};
use crate::limits::LOG_SYNC;
use crate::{State, SubmitError};

/// A state in memory, with its committer and its logs on the caller's runtime.
struct Simulated {
    opened: Opened,
    committer: JoinHandle<Result<(), store::CloseError>>,
    logs: JoinHandle<()>,
}

impl Simulated {
    async fn open(store: &MemoryStore, clock: &Arc<TestClock>, seed: u64) -> Self {
        let entropy = Box::new(Seeded(seed));
        let opened = State::open_on(store.engine(), clock.clone(), entropy).await;
        let crate::open::Opened {
            state, committer, ..
        } = opened.unwrap();
        let committer = tokio::spawn(committer.run());
        let logs = state.clone();
        let logs = tokio::spawn(async move { logs.keep_logs_durable().await });
        Self {
            opened: Opened::unclosed(state),
            committer,
            logs,
        }
    }

    async fn close(self) {
        self.logs.abort();
        self.logs.await.unwrap_err();
        drop(self.opened);
        self.committer.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_in_memory_runs_on_the_callers_runtime_and_can_be_reopened() {
    let (store, clock) = (MemoryStore::new(), TestClock::at_noon());
    let first = Simulated::open(&store, &clock, 1).await;
    let opened = &first.opened;
    let fleet = opened.prepare().await;
    make_every_kind_of_record(opened, fleet).await;
    let job = opened.running_job(fleet, "build").await;
    let logs = opened.state.logs();
    let appended = logs.append(job, 0, vec![line("one"), line("two")]).await;
    assert_eq!(appended.unwrap().durable, 0);
    // The paused clock advances at once, because all tasks are idle.
    tokio::time::sleep(LOG_SYNC + Duration::from_millis(1)).await;
    assert_eq!(logs.receipt(job).await.unwrap().durable, 2);
    opened.store_artifact(job, "report", "zip").await;
    opened.state.complete(completion(job, 2)).await.unwrap();
    let record = opened.state.job(job).await.unwrap().unwrap();
    first.close().await;

    let second = Simulated::open(&store, &clock, 2).await;
    let state = &second.opened.state;
    assert_eq!(*state.job(job).await.unwrap().unwrap(), *record);
    let download = state.open_artifact(job, "report").await.unwrap().unwrap();
    assert_eq!(download.read(0, 3).await.unwrap().1, "zip");
    let (_, lines) = state.logs().stream(job, 1).next().await;
    let lines = lines.unwrap().unwrap();
    assert!(lines.starts_with(b"{\"n\":1,"), "{lines:?}");
    second.close().await;
}

/// A job ends on a disk that is getting full. The expression that it triggers waits until the disk has space.
#[tokio::test(start_paused = true)]
async fn an_expression_makes_no_job_while_the_disk_is_getting_full() {
    let (store, clock) = (MemoryStore::new(), TestClock::at_noon());
    let simulated = Simulated::open(&store, &clock, 1).await;
    let opened = &simulated.opened;
    let fleet = Fleet {
        workflow: opened.activate("watching", WATCHING).await,
        runner: opened.register("one").await,
    };
    let scan = fleet.scan("announce");
    let made = || opened.state.read(|world| world.jobs_of(&scan).count());
    for room in [Room::Enough, Room::Low] {
        let job = opened.running_job(fleet, "build").await;
        store.set_room(room);
        opened.complete(job).await;
        assert_eq!(made(), 0);
    }
    let consider = || Consider {
        scan: scan.clone(),
        evaluate: Evaluate::HERE,
    };
    let waiting = opened.state.submit(consider()).await;
    assert!(matches!(waiting, Err(SubmitError::DiskLow)));
    store.set_room(Room::Enough);
    opened.state.submit(consider()).await.unwrap();
    assert_eq!(made(), 1);
    simulated.close().await;
}
