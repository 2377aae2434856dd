//! Work that is done to its end also when who asked for it goes away.

use std::future::Future;

/// Does the work in a task of its own and waits for it. None when the daemon stops before it is done; a panic of the
/// work is the caller's.
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
