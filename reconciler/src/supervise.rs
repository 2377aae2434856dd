//! Keeping a task alive. A task that panics is restarted after a pause and logged.
//!
//! A task reads the world again when it starts, so a restart is a full recovery. A task that panics repeatedly stops
//! only its own work.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tokio::time::Instant;

use crate::limits::{FIRST_RESTART, LAST_RESTART};

/// Runs the task that `begin` makes until it ends without a panic.
pub(crate) async fn supervise<T: Future<Output = ()>>(task: String, mut begin: impl FnMut() -> T) {
    let mut pause = FIRST_RESTART;
    loop {
        let began = Instant::now();
        // A lock that a panic poisoned stays usable (`PoisonError::into_inner`). Its data is either replaced as a whole
        // or rebuilt from the world.
        if AssertUnwindSafe(begin()).catch_unwind().await.is_ok() {
            return;
        }
        if began.elapsed() > LAST_RESTART {
            pause = FIRST_RESTART;
        }
        tracing::error!(
            task,
            ?pause,
            "a task panicked and begins again after a pause"
        );
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LAST_RESTART);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_begins_again_with_growing_pauses() {
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
        // 1 + 2 + 4 + 8 + 16 + 32, then the longest pause twice.
        assert_eq!(began.elapsed().as_secs(), 63 + 2 * LAST_RESTART.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_went_on_for_long_begins_again_soon() {
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
