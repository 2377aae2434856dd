//! Waits for the end of a job. The daemon holds its answer until the job ends.

use std::cell::RefCell;
use std::time::Duration;

use client::Client;
use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;
use wire::{Job, JobState};

use crate::error::{Error, Retry};
use crate::exit::Exit;
use crate::limits;
use crate::session::Session;
use crate::table::time;
use crate::why_waiting::WhyWaiting;

/// The current job of the wait: the first job, or a job that retries it.
pub(crate) struct Waited {
    job: Uuid,
    retry: RefCell<Option<Retry>>,
}

impl Waited {
    pub(crate) const fn new(job: Uuid) -> Self {
        Self {
            job,
            retry: RefCell::new(None),
        }
    }

    pub(crate) const fn first(&self) -> Uuid {
        self.job
    }
}

/// Waits until the job and the jobs that retry it have ended. Returns the last job.
pub(crate) async fn end_of(
    session: &mut Session<'_>,
    client: &Client,
    waited: &Waited,
) -> Result<Job, Error> {
    let mut current = end_of_one(session, client, waited.job).await?;
    while let Some(retry) = next_attempt(session, client, waited, &current).await? {
        current = end_of_one(session, client, retry).await?;
    }
    Ok(current)
}

/// The job that retries a job, if there is one. Prints a message about it.
pub(crate) async fn next_attempt(
    session: &mut Session<'_>,
    client: &Client,
    waited: &Waited,
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
    let due = due.filter(|_| retry.state == JobState::Scheduled).map(time);
    let at = due.as_ref().map(|at| format!(" at {at}"));
    session.report(&format!(
        "job {} retries it{}{}",
        retry.id,
        at.unwrap_or_default(),
        place.unwrap_or_default()
    ));
    waited.retry.replace(Some(Retry {
        of: ended.id,
        id: retry.id,
        due,
    }));
    Ok(Some(retry.id))
}

/// Waits until the job has ended, and returns it.
async fn end_of_one(session: &mut Session<'_>, client: &Client, job: Uuid) -> Result<Job, Error> {
    let mut why = WhyWaiting::of(client, job);
    // The first request fails soon if the daemon does not answer. Later requests wait for a restart of the daemon.
    let mut current = client.job(job).await?;
    while !current.state.is_terminal() {
        let asked = Instant::now();
        let held = client.await_job(job);
        current = why.run(held, |text| session.report(text)).await?;
        if !current.state.is_terminal() {
            why.renew(current.waiting.as_ref(), |text| session.report(text));
            sleep_until(asked + limits::ASK_AGAIN).await;
        }
    }
    Ok(current)
}

pub(crate) fn report_end(session: &mut Session<'_>, job: &Job) -> Exit {
    let (state, cause) = (job.state.as_str(), job.end_cause());
    session.report(&format!("job {} {state}: {cause}", job.id));
    Exit::of_job(job.state)
}

/// Limits the duration of an attempt.
pub(crate) async fn within<T>(
    bound: Option<Duration>,
    waited: &Waited,
    attempt: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match bound {
        None => attempt.await,
        Some(after) => timeout(after, attempt).await.unwrap_or_else(|_| {
            Err(match waited.retry.take() {
                None => Error::WaitTimedOut {
                    job: waited.job,
                    after,
                },
                Some(retry) => Error::RetryTimedOut { retry, after },
            })
        }),
    }
}
