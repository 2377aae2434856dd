//! Waits for the end of a job. The daemon holds its answer until then.

use std::time::Duration;

use client::Client;
use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;
use wire::{Job, JobState};

use crate::error::Error;
use crate::exit::Exit;
use crate::limits;
use crate::session::Session;
use crate::table::time;
use crate::why_waiting::WhyWaiting;

/// Waits until the job is over, and the jobs that retry it. Returns the last one.
pub(crate) async fn end_of(
    session: &mut Session<'_>,
    client: &Client,
    job: Uuid,
) -> Result<Job, Error> {
    let mut current = end_of_one(session, client, job).await?;
    while let Some(retry) = next_attempt(session, client, &current).await? {
        current = end_of_one(session, client, retry).await?;
    }
    Ok(current)
}

/// The job that retries a job, if one does. Says so.
pub(crate) async fn next_attempt(
    session: &mut Session<'_>,
    client: &Client,
    ended: &Job,
) -> Result<Option<Uuid>, Error> {
    let Some(retry) = ended.retried_by else {
        return Ok(None);
    };
    let retry = client.job_patiently(retry).await?;
    report_end(session, ended);
    let place = retry.attempt.zip(retry.attempts);
    let place = place.map(|(attempt, attempts)| format!(" (attempt {attempt} of {attempts})"));
    let due = retry.not_before.as_ref();
    let due = due.filter(|_| retry.state == JobState::Scheduled);
    let at = due.map(|at| format!(" at {}", time(at)));
    session.terminal.say(&format!(
        "job {} retries it{}{}",
        retry.id,
        at.unwrap_or_default(),
        place.unwrap_or_default()
    ));
    Ok(Some(retry.id))
}

/// Waits until the job is over, and returns it.
async fn end_of_one(session: &mut Session<'_>, client: &Client, job: Uuid) -> Result<Job, Error> {
    let mut why = WhyWaiting::of(client, job);
    // The first request fails soon if nobody answers. After it the daemon is known, and a restart is waited for.
    let mut current = client.job(job).await?;
    while !current.state.is_terminal() {
        let asked = Instant::now();
        let held = client.await_job(job);
        current = why.beside(held, |text| session.terminal.say(text)).await?;
        if !current.state.is_terminal() {
            why.renew(current.waiting.as_ref(), |text| session.terminal.say(text));
            sleep_until(asked + limits::ASK_AGAIN).await;
        }
    }
    Ok(current)
}

/// Reports how the job ended.
pub(crate) fn report_end(session: &mut Session<'_>, job: &Job) -> Exit {
    let reason = &job.reason;
    // The messages of other ends name who caused them, or nobody did.
    let by = match reason.code.as_str() {
        "cancelled_by_user" => format!(" ({})", reason.actor),
        _ => String::new(),
    };
    session.terminal.say(&format!(
        "job {} {}: {}{by}",
        job.id,
        job.state.as_str(),
        reason.message
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
