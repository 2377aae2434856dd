//! Waiting for the end of a job, by an answer that the daemon holds until then.

use std::time::Duration;

use client::Client;
use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;
use wire::Job;

use crate::error::Error;
use crate::limits;

/// The job once it is over.
pub(crate) async fn end_of(client: &Client, job: Uuid) -> Result<Job, Error> {
    // The first look fails soon when nobody answers; from then on the daemon is known and may be restarted.
    let mut current = client.job(job).await?;
    while !current.state.is_terminal() {
        let asked = Instant::now();
        current = client.await_job(job).await?;
        if !current.state.is_terminal() {
            sleep_until(asked + limits::ASK_AGAIN).await;
        }
    }
    Ok(current)
}

/// Bounds an attempt that ends with the job.
pub(crate) async fn within<T>(
    bound: Option<Duration>,
    job: Uuid,
    attempt: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match bound {
        None => attempt.await,
        Some(after) => timeout(after, attempt)
            .await
            .unwrap_or(Err(Error::WaitTimedOut { job, after })),
    }
}
