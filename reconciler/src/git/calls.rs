//! The calls of the `git` program that run now, so that a stop can end them all.
//!
//! A child outlives the thread that waits for it, and even this process: a fetch that was left behind would write into
//! a mirror in which the next daemon fetches, too. So calls are counted, none begins once they are ended, and whoever
//! ends them can wait until the last child is gone.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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

/// Stands for a call that runs; dropped, it is over.
#[derive(Debug)]
pub(super) struct Running<'a> {
    calls: &'a Calls,
}

/// No call begins any more.
#[derive(Debug)]
pub(super) struct Ended;

/// Why a call need not be waited for any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// It has come to its end.
    Done,
    /// Its time is up.
    TimedOut,
    /// All calls were ended.
    Ended,
}

impl Calls {
    /// Ends every call, now and from now on, and waits until none runs; false when that takes longer than `limit`.
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

    /// Lets a call begin.
    pub(super) fn begin(&self) -> Result<Running<'_>, Ended> {
        let mut state = self.lock();
        if state.ended {
            return Err(Ended);
        }
        state.running += 1;
        Ok(Running { calls: self })
    }

    /// Waits for the end of a call, which is told through [`Calls::look_again`], of its time, or of all calls.
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

    /// Makes everybody who watches a call look whether it is done.
    pub(super) fn look_again(&self) {
        // Whoever has just found it not done waits before this lock is given out.
        drop(self.lock());
        self.shared.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.calls.lock().running -= 1;
        self.calls.shared.changed.notify_all();
    }
}
