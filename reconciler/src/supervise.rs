//! Work that continues after a panic, or after its caller is gone. A task that panics is logged and restarted after a pause.
//!
//! A task reads the world again when it starts, so a restart recovers it fully. A task that panics repeatedly stops
//! only its own work.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use tokio::time::Instant;

use crate::limits::{FIRST_RESTART, LAST_RESTART};

/// Runs the task that `begin` creates until it ends without a panic.
pub(crate) async fn supervise<T: Future<Output = ()>>(task: String, mut begin: impl FnMut() -> T) {
    let mut pause = FIRST_RESTART;
    loop {
        let began = Instant::now();
        if AssertUnwindSafe(begin()).catch_unwind().await.is_ok() {
            return;
        }
        if began.elapsed() > LAST_RESTART {
            pause = FIRST_RESTART;
        }
        tracing::error!(task, ?pause, "a task panicked and restarts after a pause");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LAST_RESTART);
    }
}

/// Runs the work in its own task and waits for it. If the caller is dropped, the work continues. None if the daemon
/// stops first. A panic of the work is passed to the caller.
pub(crate) async fn uninterrupted<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    match tokio::spawn(work).await {
        Ok(done) => Some(done),
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => None,
        },
    }
}

/// Locks a mutex, even after a panic of a holder. The data of these mutexes is replaced as a whole or rebuilt from the world.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_restarts_with_growing_pauses() {
        let began = Instant::now();
        let times = Cell::new(0_u32);
        supervise("test".to_owned(), || {
            let attempt = times.get();
            times.set(attempt + 1);
            async move {
                assert!(
                    attempt >= 8,
                    "the panic of attempt {attempt} is a part of the test"
                )
            }
        })
        .await;
        assert_eq!(times.get(), 9);
        // Pauses of 1 + 2 + 4 + 8 + 16 + 32 seconds, then the longest pause twice.
        assert_eq!(began.elapsed().as_secs(), 63 + 2 * LAST_RESTART.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_ran_for_long_restarts_soon() {
        let began = Instant::now();
        let times = Cell::new(0_u32);
        let healthy = LAST_RESTART * 2;
        supervise("test".to_owned(), || {
            let attempt = times.get();
            times.set(attempt + 1);
            async move {
                tokio::time::sleep(healthy).await;
                assert!(
                    attempt >= 3,
                    "the panic of attempt {attempt} is a part of the test"
                );
            }
        })
        .await;
        assert_eq!(began.elapsed(), healthy * 4 + FIRST_RESTART * 3);
    }
}
