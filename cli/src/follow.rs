//! A job's log on standard output.

use client::Client;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;
use wire::{Job, LogCut, LogRecord};
use workflow::format_size;

use crate::error::Error;
use crate::limits;
use crate::session::Session;
use crate::why_waiting::WhyWaiting;

/// Writes the log as far as it goes now.
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

/// Writes the log until the job is over, each line as it comes, and returns the job.
pub(crate) async fn follow(
    session: &mut Session<'_>,
    client: &Client,
    job: Uuid,
    from: u64,
) -> Result<Job, Error> {
    let mut from = from;
    let mut has_heard = false;
    let mut why = WhyWaiting::of(client, job);
    loop {
        let begun = Instant::now();
        let log = client.logs(job, from, true);
        // The daemon may answer a last time and be gone when the log is asked for again.
        let mut log = if has_heard { log.patiently() } else { log };
        while let Some(record) = why
            .beside(log.next_record(), |text| session.terminal.say(text))
            .await?
        {
            write(session, &record)?;
            session.terminal.flush()?;
        }
        from = log.position();
        has_heard = true;
        // A stream may have ended because the daemon stops; its restart is waited for as `job wait` does.
        let current = client.job_patiently(job).await?;
        if current.state.is_terminal() {
            // The job may have gone on and ended since the stream broke off.
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

/// Says where a log was cut.
pub(crate) fn cut_at(cut: &LogCut) -> String {
    format!(
        "cut at record {}: it has reached its limit of {}",
        cut.record,
        format_size(cut.limit)
    )
}
