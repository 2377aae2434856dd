//! Waits for the end of a job. The daemon holds its answer until then.

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

/// Waits until the job is over, and returns it.
pub(crate) async fn end_of(
    session: &mut Session<'_>,
    client: &Client,
    job: Uuid,
) -> Result<Job, Error> {
    let mut why = WhyWaiting::of(client, job);
    // The first request fails soon if nobody answers. After it the daemon is known, and a restart is waited for.
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

/// Reports how the job ended.
pub(crate) fn report_end(session: &mut Session<'_>, job: &Job) -> Exit {
    session.terminal.say(&format!(
        "job {} {}: {}",
        job.id,
        job.state.as_str(),
        job.reason.message
    ));
    Exit::of_job(job.state)
}

/// Limits the time of an attempt.
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
