//! Which parts of pages an event concerns, and what a listener of these topics was not told yet.
//!
//! A page is fetched again at most four times a second, so its listener is told as often. What changes in between comes
//! in one event: under load most commits wake no listener.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use model::Job;
use serde::Serialize;
use state::Seq;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use ui::topics;

use super::Batch;
use super::event::{About, Event};
use crate::limits::{TOLD_TOPICS, TOPICS_PAUSE};

/// Everything may have changed.
const ALL: [&str; 1] = ["*"];

/// A new pair of sender and receiver.
pub(super) fn channel() -> (Sender, Receiver) {
    let shared = Arc::new(Shared::default());
    let receiver = Receiver {
        shared: shared.clone(),
        next: Instant::now(),
    };
    (Sender(shared), receiver)
}

/// The side that collects. It never waits for its listener, and when it is dropped, nothing more comes.
pub(super) struct Sender(Arc<Shared>);

/// The side of the listener.
pub(super) struct Receiver {
    shared: Arc<Shared>,
    /// When the listener may be told again.
    next: Instant,
}

#[derive(Default)]
struct Shared {
    untold: Mutex<Untold>,
    /// Something was added, or the sender is gone.
    changed: Notify,
}

#[derive(Default)]
struct Untold {
    /// The last commit with a topic that was not told.
    seq: Option<Seq>,
    topics: BTreeSet<Arc<str>>,
    /// There were too many topics to name them.
    is_all: bool,
    has_ended: bool,
}

impl Sender {
    /// Adds the topics of a commit.
    pub(super) fn add<'e, 'c: 'e>(&self, seq: Seq, events: impl Iterator<Item = &'e Event<'c>>) {
        let mut events = events.peekable();
        if events.peek().is_none() {
            return;
        }
        let mut untold = self.0.untold();
        untold.seq = Some(seq);
        for event in events {
            untold.topics.extend(event.topics().iter().cloned());
        }
        if untold.topics.len() > TOLD_TOPICS {
            untold.topics.clear();
            untold.is_all = true;
        }
        drop(untold);
        self.0.changed.notify_one();
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.untold().has_ended = true;
        self.0.changed.notify_one();
    }
}

impl Receiver {
    pub(super) fn is_empty(&self) -> bool {
        self.shared.untold().seq.is_none()
    }

    /// What has changed since the last call, not sooner than a pause after it. None when the sender is gone. Nothing is
    /// lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Option<Batch> {
        loop {
            let has_ended = self.shared.untold().has_ended;
            if !self.is_empty() {
                if !has_ended {
                    sleep_until(self.next).await;
                }
                let told = std::mem::take(&mut *self.shared.untold());
                self.shared.untold().has_ended |= told.has_ended;
                self.next = Instant::now() + TOPICS_PAUSE;
                return told.batch();
            }
            if has_ended {
                return None;
            }
            self.shared.changed.notified().await;
        }
    }
}

impl Shared {
    fn untold(&self) -> MutexGuard<'_, Untold> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Untold {
    fn batch(self) -> Option<Batch> {
        let text = match self.is_all {
            true => text(&ALL),
            false => text(&self.topics.iter().map(AsRef::as_ref).collect::<Vec<_>>()),
        };
        let texts = vec![text];
        self.seq.map(|seq| Batch { seq, texts })
    }
}

fn text<T: Serialize>(topics: &T) -> Bytes {
    // Our own texts are always JSON.
    let data = serde_json::to_string(topics).unwrap_or_default();
    Bytes::from(format!("event: changed\ndata: {data}\n\n"))
}

/// The topics of an event.
pub(super) fn of(about: &About<'_>) -> Vec<String> {
    match about {
        About::Job(job, _) => vec![topics::job(job.id.uuid()), scan(job)],
        About::Steps(job) => vec![topics::job(job.id.uuid())],
        About::Workflow(record) => vec![topics::workflow(record.id.uuid())],
        About::Suspension(suspension) => vec![topics::workflow(suspension.workflow.id.uuid())],
        About::Source(source) => vec![topics::source(source.name.as_str())],
        About::Runner(runner) => vec![topics::runner(runner.id.uuid())],
        About::RunnerRemoved(id) => vec![topics::runner(id.uuid())],
    }
}

fn scan(job: &Job) -> String {
    topics::scan(job.workflow.id.uuid(), job.scan.as_str())
}
