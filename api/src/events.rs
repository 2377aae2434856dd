//! Live events: the changes of each commit, sent to listeners.
//!
//! One task follows the commits while there are listeners. It renders each event once for all listeners, and wakes only
//! listeners that want the event. A listener that does not keep up is dropped; the task never waits for a listener.

mod event;
mod hub;
mod pace;
mod topics;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::FutureExt;
use model::{JobId, Principal, ProjectId, Rights, WorkflowId};
use reconciler::Handle;
use state::{ChangesGone, Seq, Subscription};
use tokio::sync::mpsc;

use self::event::Event;
pub(crate) use self::hub::{Hub, TooManyListeners};

/// The filter of a listener.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// Who listens. Events that the listener may not see are left out.
    pub(crate) principal: Arc<Principal>,
    /// The project of the filter, or else the only project of the listener's rights. The listener counts towards its limit.
    pub(crate) only_project: Option<ProjectId>,
    pub(crate) project: Option<ProjectId>,
    pub(crate) workflow: Option<WorkflowId>,
    pub(crate) job: Option<JobId>,
    pub(crate) form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The objects that have changed, as in `/v0`.
    Whole,
    /// Only the topics of the pages that show the changed objects.
    Topics,
}

impl Wanted {
    /// The events that this listener gets. Reads the listener's rights only if an event matches the filter.
    fn take<'e, 'c>(
        &self,
        events: &'e [Event<'c>],
        rights_of: impl Fn(&Principal) -> Option<Rights>,
    ) -> Vec<&'e Event<'c>> {
        let about = events.iter().filter(|event| self.is_about(event));
        let mut taken: Vec<_> = about.collect();
        if !taken.is_empty() {
            let rights = rights_of(&self.principal);
            taken.retain(|event| rights.as_ref().is_some_and(|it| event.is_seen_by(it)));
        }
        taken
    }

    fn is_about(&self, event: &Event) -> bool {
        fn fits<T: PartialEq>(wanted: Option<T>, of: Option<T>) -> bool {
            wanted.is_none() || wanted == of
        }
        fits(self.project, event.project)
            && fits(self.workflow, event.workflow)
            && fits(self.job, event.job)
    }
}

/// The events of one commit that one listener gets.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) seq: Seq,
    pub(crate) texts: Vec<Bytes>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// All events after this commit follow.
    From(Seq),
    /// The requested commits are no longer available. All events after this commit follow.
    Resync(Seq),
}

pub(crate) struct Listener {
    pub(crate) start: Start,
    /// The commits after the requested one, up to `place`. They are read one by one, as the listener takes them.
    past: Option<(Subscription, Handle)>,
    /// Commits after this one arrive in `inbox`.
    place: Seq,
    wanted: Wanted,
    inbox: Inbox,
    is_slow: Arc<AtomicBool>,
    id: u64,
    hub: Arc<Hub>,
}

enum Inbox {
    Commits(mpsc::Receiver<Batch>),
    Topics(topics::Receiver),
}

impl Inbox {
    fn is_empty(&self) -> bool {
        match self {
            Self::Commits(batches) => batches.is_empty(),
            Self::Topics(pending) => pending.is_empty(),
        }
    }
}

/// Why a listener gets no more events.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// The listener did not keep up.
    pub(crate) is_slow: bool,
}

impl Listener {
    /// The last commit that was sent, if the listener has taken all events.
    pub(crate) fn place(&self) -> Option<Seq> {
        if self.past.is_some() {
            return None;
        }
        let listeners = self.hub.listeners();
        match listeners.sent {
            Some(sent) if self.inbox.is_empty() => Some(sent),
            Some(_) | None => None,
        }
    }

    /// The next events: those of one commit. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Batch, Dropped> {
        while let Some((commits, handle)) = &mut self.past {
            match commits.next().now_or_never() {
                Some(Ok(published)) if published.seq <= self.place => {
                    let events: Vec<Event> = event::events(&published.changes).collect();
                    let taken = self.wanted.take(&events, |it| handle.rights(it));
                    if let Some(batch) = batch(published.seq, &taken) {
                        return Ok(batch);
                    }
                }
                Some(Ok(_)) | None => self.past = None,
                Some(Err(ChangesGone { .. })) => return Err(Dropped { is_slow: true }),
            }
        }
        let batch = match &mut self.inbox {
            Inbox::Commits(batches) => batches.recv().await,
            Inbox::Topics(pending) => pending.next().await,
        };
        let is_slow = &self.is_slow;
        batch.ok_or_else(|| Dropped {
            is_slow: is_slow.load(Ordering::Acquire),
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.hub.listeners().remove(self.id);
    }
}

fn batch(seq: Seq, taken: &[&Event]) -> Option<Batch> {
    let texts = taken.iter().map(|event| event.text());
    let texts: Vec<Bytes> = texts.filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then_some(Batch { seq, texts })
}

#[cfg(test)]
mod tests;
