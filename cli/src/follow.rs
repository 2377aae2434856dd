//! Prints a job's log.

use client::Client;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;
use wire::{Job, LogCut, LogRecord};
use workflow::format_size;

use crate::error::Error;
use crate::limits;
use crate::session::Session;
use crate::why_waiting::WhyWaiting;

/// Prints the log up to its current end.
pub(crate) async fn read(
    session: &mut Session<'_>,
    client: &Client,
    job: Uuid,
    from: u64,
) -> Result<(), Error> {
    let mut log = client.logs(job, from, false);
    while let Some(record) = log.next_record().await? {
        write(session, &record)?;
    }
    Ok(())
}

/// Prints the log line by line until the job is over, and returns the job.
pub(crate) async fn follow(
    session: &mut Session<'_>,
    client: &Client,
    job: Uuid,
    from: u64,
) -> Result<Job, Error> {
    let mut from = from;
    let mut was_reached = false;
    let mut why = WhyWaiting::of(client, job);
    loop {
        let begun = Instant::now();
        let log = client.logs(job, from, true);
        // The daemon was there a moment ago. If it restarts now, wait for it.
        let mut log = if was_reached { log.patiently() } else { log };
        while let Some(record) = why
            .beside(log.next_record(), |text| session.terminal.say(text))
            .await?
        {
            write(session, &record)?;
            session.terminal.flush()?;
        }
        from = log.position();
        was_reached = true;
        // The stream may have ended because the daemon stops. Wait for its restart, as `job wait` does.
        let current = client.job_patiently(job).await?;
        if current.state.is_terminal() {
            // The job may have gone on and ended after the stream broke off.
            if from < current.log.records {
                let mut rest = client.logs(job, from, false).patiently();
                while let Some(record) = rest.next_record().await? {
                    write(session, &record)?;
                }
            }
            return Ok(current);
        }
        // A daemon that stopped has ended the stream before the job.
        sleep_until(begun + limits::ASK_AGAIN).await;
    }
}

fn write(session: &mut Session<'_>, record: &LogRecord) -> Result<(), Error> {
    match session.format.item(record)? {
        Some(line) => session.terminal.line(&line),
        None => session.terminal.printed_line(&record.record.text),
    }
}

/// Where a log was cut.
pub(crate) fn cut_at(cut: &LogCut) -> String {
    format!(
        "cut at record {}: it has reached its limit of {}",
        cut.record,
        format_size(cut.limit)
    )
}
