//! All listeners, and the task that sends them the events of each commit.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use model::{JobId, Principal, ProjectId, Rights, Share};
use reconciler::Handle;
use state::{ChangesGone, Published, Seq, Subscription};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::event::{self, Event};
use super::pace::Pace;
use super::{Batch, Form, Inbox, Listener, Start, Wanted, batch, topics};
use crate::limits::{LISTENER_COMMITS, LISTENERS, PROJECT_LISTENERS, SHARE_LISTENERS};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TooManyListeners {
    Share,
    Project,
    All,
}

#[derive(Default)]
pub(crate) struct Hub(Mutex<Listeners>);

#[derive(Default)]
pub(super) struct Listeners {
    last_id: u64,
    pub(super) all: HashMap<u64, Sender>,
    pub(super) of_jobs: HashMap<JobId, Vec<u64>>,
    /// Listeners that follow more than one job.
    pub(super) broad: Vec<u64>,
    /// The number of listeners of each person, or of the jobs of a project.
    pub(super) of_shares: HashMap<Share, usize>,
    /// The number of listeners that are limited to each project.
    pub(super) of_projects: HashMap<ProjectId, usize>,
    /// The last commit whose events were sent, while the task runs.
    pub(super) sent: Option<Seq>,
}

pub(super) struct Sender {
    pub(super) wanted: Wanted,
    pub(super) outbox: Outbox,
    pub(super) is_slow: Arc<AtomicBool>,
}

/// The sending end of an [`Inbox`].
pub(super) enum Outbox {
    Commits(mpsc::Sender<Batch>),
    Topics(topics::Sender),
}

impl Form {
    pub(super) fn channel(self) -> (Outbox, Inbox) {
        match self {
            Self::Whole => {
                let (sender, receiver) = mpsc::channel(LISTENER_COMMITS);
                (Outbox::Commits(sender), Inbox::Commits(receiver))
            }
            Self::Topics => {
                let (sender, receiver) = topics::channel();
                (Outbox::Topics(sender), Inbox::Topics(receiver))
            }
        }
    }
}

impl Sender {
    /// Sends the listener's events of a commit. False if the listener is too slow.
    fn send(&self, seq: Seq, taken: Vec<&Event<'_>>) -> bool {
        match &self.outbox {
            Outbox::Commits(batches) => {
                let batch = batch(seq, &taken);
                batch.is_none_or(|batch| batches.try_send(batch).is_ok())
            }
            Outbox::Topics(pending) => {
                pending.add(seq, taken.into_iter());
                true
            }
        }
    }
}

impl Hub {
    /// Listens from now on, or from the commit after `after`.
    pub(crate) fn listen(
        self: &Arc<Self>,
        handle: &Handle,
        wanted: Wanted,
        after: Option<Seq>,
    ) -> Result<Listener, TooManyListeners> {
        let mut listeners = self.listeners();
        listeners.check_room(&wanted)?;
        let place = match listeners.sent {
            Some(sent) => sent,
            None => {
                let (place, commits) = follow(handle);
                listeners.sent = Some(place);
                let (hub, handle) = (self.clone(), handle.clone());
                tokio::spawn(async move {
                    let sending = AssertUnwindSafe(hub.send(handle, commits));
                    if sending.catch_unwind().await.is_err() {
                        tracing::error!("sending events panicked; listeners are dropped");
                        hub.listeners().drop_all();
                    }
                });
                place
            }
        };
        let (outbox, inbox) = wanted.form.channel();
        let is_slow = Arc::new(AtomicBool::new(false));
        let id = listeners.add(Sender {
            wanted: wanted.clone(),
            outbox,
            is_slow: is_slow.clone(),
        });
        drop(listeners);
        let (start, past) = match after.map(|after| handle.state().subscribe(after)) {
            None => (Start::From(place), None),
            Some(Ok(commits)) => (Start::From(place), Some((commits, handle.clone()))),
            Some(Err(ChangesGone { .. })) => (Start::Resync(place), None),
        };
        Ok(Listener {
            start,
            past,
            place,
            wanted,
            inbox,
            is_slow,
            id,
            hub: self.clone(),
        })
    }

    async fn send(&self, handle: Handle, mut commits: Subscription) {
        let mut pace = Pace::default();
        let mut place = commits.place();
        loop {
            let due = pace.due();
            let published = tokio::select! {
                published = commits.next() => published.map(|it| pace.hold(it, Instant::now())),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => Ok(Published {
                    seq: place,
                    changes: pace.release(Instant::now()),
                }),
                () = handle.stopping() => return self.listeners().drop_all(),
            };
            let mut listeners = self.listeners();
            if listeners.all.is_empty() {
                listeners.sent = None;
                return;
            }
            match published {
                Ok(published) => {
                    place = published.seq;
                    listeners.publish(&published, |it| handle.rights(it));
                }
                // This task fell behind, so all listeners did.
                Err(ChangesGone { .. }) => {
                    (place, commits) = follow(&handle);
                    listeners.drop_all();
                    listeners.sent = Some(place);
                }
            }
        }
    }

    pub(super) fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn follow(handle: &Handle) -> (Seq, Subscription) {
    loop {
        let place = handle.state().seq();
        // Subscribing fails only if a thousand commits came in between.
        if let Ok(commits) = handle.state().subscribe(place) {
            return (place, commits);
        }
    }
}

impl Listeners {
    pub(super) fn check_room(&self, wanted: &Wanted) -> Result<(), TooManyListeners> {
        if self
            .of_shares
            .get(&wanted.principal.share())
            .copied()
            .unwrap_or(0)
            >= SHARE_LISTENERS
        {
            return Err(TooManyListeners::Share);
        }
        let project = wanted.only_project;
        let of_project = project.and_then(|project| self.of_projects.get(&project));
        if of_project.is_some_and(|count| *count >= PROJECT_LISTENERS) {
            return Err(TooManyListeners::Project);
        }
        if self.all.len() >= LISTENERS {
            return Err(TooManyListeners::All);
        }
        Ok(())
    }

    pub(super) fn add(&mut self, sender: Sender) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        match sender.wanted.job {
            Some(job) => self.of_jobs.entry(job).or_default().push(id),
            None => self.broad.push(id),
        }
        *self
            .of_shares
            .entry(sender.wanted.principal.share())
            .or_default() += 1;
        if let Some(project) = sender.wanted.only_project {
            *self.of_projects.entry(project).or_default() += 1;
        }
        self.all.insert(id, sender);
        id
    }

    pub(super) fn remove(&mut self, id: u64) {
        let Some(sender) = self.all.remove(&id) else {
            return;
        };
        count_down(&mut self.of_shares, sender.wanted.principal.share());
        if let Some(project) = sender.wanted.only_project {
            count_down(&mut self.of_projects, project);
        }
        match sender.wanted.job {
            None => self.broad.retain(|other| *other != id),
            Some(job) => {
                if let Some(listeners) = self.of_jobs.get_mut(&job) {
                    listeners.retain(|other| *other != id);
                    if listeners.is_empty() {
                        self.of_jobs.remove(&job);
                    }
                }
            }
        }
    }

    pub(super) fn drop_all(&mut self) {
        for sender in self.all.values() {
            sender.is_slow.store(true, Ordering::Release);
        }
        *self = Self {
            last_id: self.last_id,
            ..Self::default()
        };
    }

    pub(super) fn publish(
        &mut self,
        published: &Published,
        rights_of: impl Fn(&Principal) -> Option<Rights>,
    ) {
        let events: Vec<Event> = event::events(&published.changes).collect();
        self.sent = Some(published.seq);
        let mut concerned = self.broad.clone();
        let mut jobs: Vec<JobId> = events.iter().filter_map(|event| event.job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        for job in jobs {
            concerned.extend(self.of_jobs.get(&job).into_iter().flatten());
        }
        for id in concerned {
            let Some(sender) = self.all.get(&id) else {
                continue;
            };
            let taken = sender.wanted.take(&events, &rights_of);
            if !sender.send(published.seq, taken) {
                sender.is_slow.store(true, Ordering::Release);
                self.remove(id);
            }
        }
    }
}

fn count_down<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: K) {
    if let Entry::Occupied(mut count) = counts.entry(key) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}
