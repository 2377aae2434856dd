//! Passes events from the watcher to the thread that handles them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::supervise::lock;

/// Events that are not handled yet. Equal events are merged, so the size is fixed.
#[derive(Default)]
pub(super) struct News {
    pending: Mutex<Pending>,
    arrived: Condvar,
}

#[derive(Default)]
pub(super) struct Pending {
    pub(super) stop: bool,
    pub(super) lost: Option<notify::Error>,
    pub(super) rearm: bool,
    pub(super) changed: bool,
}

pub(super) enum Next {
    Stop,
    Lost(notify::Error),
    Rearm,
    Changed,
}

impl News {
    pub(super) fn add(&self, change: impl FnOnce(&mut Pending)) {
        change(&mut self.lock());
        self.arrived.notify_all();
    }

    /// Waits for an event and returns the most important event. Handling it covers the other events.
    pub(super) fn next(&self) -> Next {
        let mut pending = self.lock();
        loop {
            if pending.stop {
                return Next::Stop;
            }
            let taken = std::mem::take(&mut *pending);
            if let Some(error) = taken.lost {
                return Next::Lost(error);
            }
            if taken.rearm {
                return Next::Rearm;
            }
            if taken.changed {
                return Next::Changed;
            }
            pending = self
                .arrived
                .wait(pending)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for `pause`. True if the watch must stop.
    pub(super) fn stops_within(&self, pause: Duration) -> bool {
        let (pending, _) = self
            .arrived
            .wait_timeout_while(self.lock(), pause, |pending| !pending.stop)
            .unwrap_or_else(PoisonError::into_inner);
        pending.stop
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        lock(&self.pending)
    }
}
