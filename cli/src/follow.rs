//! Prints a job's log.

use client::{Client, LogQuery};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;
use wire::{Job, LogCut};
use workflow::format_size;

use crate::error::Error;
use crate::limits;
use crate::log_lines::LogLines;
use crate::session::Session;
use crate::wait::{Waited, next_attempt};
use crate::why_waiting::WhyWaiting;

pub(crate) async fn read(
    session: &mut Session<'_>,
    client: &Client,
    job: Uuid,
    query: LogQuery,
    lines: &mut LogLines,
) -> Result<(), Error> {
    let mut log = client.logs(job, query);
    while let Some(record) = log.next_record().await? {
        lines.print(session, &record)?;
    }
    Ok(())
}

/// Prints the log line by line until the job ends, and then the logs of the jobs that retry it. Returns the last job.
pub(crate) async fn follow(
    session: &mut Session<'_>,
    client: &Client,
    waited: &Waited,
    query: LogQuery,
    lines: &mut LogLines,
) -> Result<Job, Error> {
    let whole = LogQuery {
        from: 0,
        tail: None,
        ..query
    };
    let mut current = follow_one(session, client, waited.first(), query, lines).await?;
    while let Some(retry) = next_attempt(session, client, waited, &current).await? {
        lines.begin_another();
        current = follow_one(session, client, retry, whole, lines).await?;
    }
    Ok(current)
}

/// Prints the log line by line until the job ends, and returns the job.
async fn follow_one(
    session: &mut Session<'_>,
    client: &Client,
    job: Uuid,
    mut query: LogQuery,
    lines: &mut LogLines,
) -> Result<Job, Error> {
    query.follow = true;
    let mut was_reached = false;
    let mut why = WhyWaiting::of(client, job);
    loop {
        let begun = Instant::now();
        let log = client.logs(job, query);
        // The daemon answered a moment ago. If it restarts now, wait for it.
        let mut log = if was_reached { log.patiently() } else { log };
        while let Some(record) = why
            .run(log.next_record(), |text| session.report(text))
            .await?
        {
            lines.print(session, &record)?;
            session.terminal.flush()?;
        }
        query = log.unread();
        was_reached = true;
        // The stream may have ended because the daemon stops. Wait for its restart, as `job wait` does.
        let current = client.job_patiently(job).await?;
        if current.state.is_terminal() {
            // The job may have continued and ended after the stream broke off.
            if query.from < current.log.records {
                query.follow = false;
                let mut rest = client.logs(job, query).patiently();
                while let Some(record) = rest.next_record().await? {
                    lines.print(session, &record)?;
                }
            }
            return Ok(current);
        }
        why.renew(current.waiting.as_ref(), |text| session.report(text));
        // A stopping daemon ended the stream before the job ended.
        sleep_until(begun + limits::ASK_AGAIN).await;
    }
}

pub(crate) fn cut_at(cut: &LogCut) -> String {
    format!(
        "cut at record {}: it has reached its limit of {}",
        cut.record,
        format_size(cut.limit)
    )
}
