//! The running calls of the `git` program, so that a stop of the daemon can end them all.
//!
//! A child process outlives the thread that waits for it, and even this process. A fetch that keeps running would write
//! into a mirror while the next daemon fetches into it. So calls are counted, no call starts after the stop, and the
//! stop can wait until the last child has ended.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::supervise::lock;

/// All calls of one reconciler. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ended: bool,
    running: usize,
}

/// A running call. Dropping it marks its end.
#[derive(Debug)]
pub(super) struct Running<'a> {
    calls: &'a Calls,
}

#[derive(Debug)]
pub(super) struct Ended;

/// Why waiting for a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Done,
    TimedOut,
    Ended,
}

impl Calls {
    /// Ends every call and allows no new call. Waits until none runs. False if that takes longer than `limit`.
    pub(crate) fn end(&self, limit: Duration) -> bool {
        self.lock().ended = true;
        self.shared.changed.notify_all();
        let (state, _) = self
            .shared
            .changed
            .wait_timeout_while(self.lock(), limit, |state| state.running > 0)
            .unwrap_or_else(PoisonError::into_inner);
        state.running == 0
    }

    pub(super) fn begin(&self) -> Result<Running<'_>, Ended> {
        let mut state = self.lock();
        if state.ended {
            return Err(Ended);
        }
        state.running += 1;
        Ok(Running { calls: self })
    }

    /// Waits until a call is done (see [`Calls::recheck`]), its deadline has passed, or all calls are ended.
    pub(super) fn watch(&self, deadline: Instant, is_done: impl Fn() -> bool) -> Patience {
        let mut state = self.lock();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if is_done() {
                return Patience::Done;
            } else if state.ended {
                return Patience::Ended;
            } else if left.is_zero() {
                return Patience::TimedOut;
            }
            let woken = self.shared.changed.wait_timeout(state, left);
            (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Wakes all waiting threads, so that they check whether their call is done.
    pub(super) fn recheck(&self) {
        // A waiter holds the lock from its check until it waits. So taking the lock here ensures that no wake-up is lost.
        drop(self.lock());
        self.shared.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.shared.state)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.calls.lock().running -= 1;
        self.calls.shared.changed.notify_all();
    }
}
