//! Work that is completed even if the caller goes away.

use std::future::Future;

/// Runs the work in a task of its own and waits for it. None if the daemon stops before. A panic of the work is passed
/// on to the caller.
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
