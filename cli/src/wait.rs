//! Waiting for the end of a job, by an answer that the daemon holds until then.

use std::time::Duration;

use client::Client;
use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;
use wire::Job;

use crate::error::Error;
use crate::exit::Exit;
use crate::limits;
use crate::session::Session;
use crate::why_waiting::WhyWaiting;

/// The job once it is over.
pub(crate) async fn end_of(
    session: &mut Session<'_>,
    client: &Client,
    job: Uuid,
) -> Result<Job, Error> {
    let mut why = WhyWaiting::of(client, job);
    // The first look fails soon when nobody answers; from then on the daemon is known and may be restarted.
    let mut current = client.job(job).await?;
    while !current.state.is_terminal() {
        let asked = Instant::now();
        let held = client.await_job(job);
        current = why.beside(held, |text| session.terminal.say(text)).await?;
        if !current.state.is_terminal() {
            sleep_until(asked + limits::ASK_AGAIN).await;
        }
    }
    Ok(current)
}

/// Says how the job ended.
pub(crate) fn report_end(session: &mut Session<'_>, job: &Job) -> Exit {
    session.terminal.say(&format!(
        "job {} {}: {}",
        job.id,
        job.state.as_str(),
        job.reason.message
    ));
    Exit::of_job(job.state)
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
