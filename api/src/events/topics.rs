//! The topics (parts of pages) that an event concerns, and the topics that a listener has not received yet.
//!
//! A page is fetched again at most four times a second, so its listener gets at most four events a second. One event has all
//! changes since the last event, so under load most commits wake no listener.

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
use crate::limits::{EVENT_TOPICS, TOPICS_PAUSE};

/// The topic that stands for everything.
const ALL: [&str; 1] = ["*"];

pub(super) fn channel() -> (Sender, Receiver) {
    let shared = Arc::new(Shared::default());
    let receiver = Receiver {
        shared: shared.clone(),
        next: Instant::now(),
    };
    (Sender(shared), receiver)
}

/// Collects topics and never waits for the listener. Dropping the sender ends the listener.
pub(super) struct Sender(Arc<Shared>);

pub(super) struct Receiver {
    shared: Arc<Shared>,
    /// When the next event may be sent.
    next: Instant,
}

#[derive(Default)]
struct Shared {
    pending: Mutex<Pending>,
    /// Notified when a topic was added or the sender was dropped.
    changed: Notify,
}

#[derive(Default)]
struct Pending {
    /// The last commit with a pending topic.
    seq: Option<Seq>,
    topics: BTreeSet<Arc<str>>,
    /// True if there were too many topics to name them.
    is_all: bool,
    has_ended: bool,
}

impl Sender {
    pub(super) fn add<'e, 'c: 'e>(&self, seq: Seq, events: impl Iterator<Item = &'e Event<'c>>) {
        let mut events = events.peekable();
        if events.peek().is_none() {
            return;
        }
        let mut pending = self.0.pending();
        pending.seq = Some(seq);
        for event in events {
            pending.topics.extend(event.topics().iter().cloned());
        }
        if pending.topics.len() > EVENT_TOPICS {
            pending.topics.clear();
            pending.is_all = true;
        }
        drop(pending);
        self.0.changed.notify_one();
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.pending().has_ended = true;
        self.0.changed.notify_one();
    }
}

impl Receiver {
    pub(super) fn is_empty(&self) -> bool {
        self.shared.pending().seq.is_none()
    }

    /// The topics since the last call, after a pause. None once the sender was dropped. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<Batch> {
        loop {
            let has_ended = self.shared.pending().has_ended;
            if !self.is_empty() {
                if !has_ended {
                    sleep_until(self.next).await;
                }
                let batch = std::mem::take(&mut *self.shared.pending());
                self.shared.pending().has_ended |= batch.has_ended;
                self.next = Instant::now() + TOPICS_PAUSE;
                return batch.batch();
            }
            if has_ended {
                return None;
            }
            self.shared.changed.notified().await;
        }
    }
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
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

pub(super) fn of(about: &About<'_>) -> Vec<String> {
    match about {
        About::Job(job, _) => vec![topics::job(job.id.uuid()), scan(job)],
        About::Steps(job) => vec![topics::job(job.id.uuid())],
        About::Workflow(record) => vec![topics::workflow(record.id.uuid())],
        About::Suspension(suspension) => vec![topics::workflow(suspension.workflow.id.uuid())],
        About::Source(source) => vec![topics::source(source.name.as_str())],
        About::Condition(..) => vec![topics::CONDITIONS.to_owned()],
        About::Delivery(record) => {
            let jobs = record.jobs.iter().map(|job| topics::job(job.uuid()));
            jobs.chain([topics::DELIVERIES.to_owned()]).collect()
        }
        About::Interactions(server, _) => vec![topics::callback(server.as_str())],
        About::Runner(runner) | About::RunnerRemoved(runner) => {
            vec![topics::runner(runner.id.uuid())]
        }
    }
}

fn scan(job: &Job) -> String {
    topics::scan(job.workflow.id.uuid(), job.scan.as_str())
}
