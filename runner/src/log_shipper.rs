//! Sends a job's log from the spool to the daemon, in order and without gaps, even over a bad connection. Before it sends lines
//! it waits a moment for more, unless the log is complete. So a short job needs one request, and a job without lines needs none.
//! The log of a cancelled job is cut a moment after the job's processes have ended.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use client::Backoff;
use model::error_chain;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::job_log::{JobLog, Progress};
use crate::limits;
use crate::link::{Link, Verdict};
use crate::options::Options;
use crate::spool::SpoolError;
use crate::stop::{Reporting, Stop};

#[derive(Debug, thiserror::Error)]
enum ShipError {
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error("the daemon refuses the log")]
    Refused(#[source] client::Error),
}

/// Sends one log, and remembers how much of it the daemon has.
#[derive(Debug)]
pub(crate) struct LogShipper {
    log: Arc<JobLog>,
    link: Link,
    options: Options,
    progress: watch::Receiver<Progress>,
    sent: u64,
    sent_bytes: u64,
    unsent: u64,
    is_cut: bool,
    backoff: Backoff,
}

impl LogShipper {
    pub(crate) fn new(log: Arc<JobLog>, link: Link, options: Options) -> Self {
        let progress = log.watch();
        let sent = progress.borrow().written;
        Self {
            log,
            link,
            options,
            progress,
            sent,
            sent_bytes: 0,
            unsent: sent,
            is_cut: false,
            backoff: limits::backoff(),
        }
    }

    pub(crate) const fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn give_up(&self) {
        let lines = self.progress.borrow().written.saturating_sub(self.sent);
        if lines > 0 {
            tracing::warn!(job = %self.link.job, lines, "the end of a log is lost");
        }
    }

    /// Sends the records from this record on again, because the daemon has lost them.
    pub(crate) fn rewind(&mut self, next: u64) {
        self.sent = next;
        self.sent_bytes = 0;
    }

    /// Sends until the log is complete and the daemon has all of it, or until the daemon accepts no reports. For a cancelled job
    /// the time is limited.
    pub(crate) async fn run(mut self) -> Self {
        let stop = self.link.stop.clone();
        let given_up = self.after_cancelled_end(self.options.final_report);
        let sent = tokio::select! {
            _ = stop.reduced_to(Reporting::Nothing) => Ok(()),
            _ = given_up => Ok(()),
            sent = self.send() => sent,
        };
        if let Err(error) = sent {
            let error = error_chain(&error);
            tracing::error!(job = %self.link.job, error, "the log cannot be sent");
            stop.request(Stop::LogFailed(error));
        }
        self
    }

    async fn send(&mut self) -> Result<(), ShipError> {
        let mut late = pin!(self.after_cancelled_end(self.options.final_log));
        loop {
            tokio::select! {
                biased;
                reason = &mut late, if !self.is_cut => {
                    self.is_cut = true;
                    self.cut(&reason)?;
                }
                more = self.something_to_send() => {
                    if !more {
                        return Ok(());
                    }
                    self.send_batch().await?;
                }
            }
        }
    }

    /// Waits until `span` after the last process of a cancelled job has ended. Returns the reason of the stop.
    fn after_cancelled_end(&self, span: Duration) -> impl Future<Output = Stop> + use<> {
        let stop = self.link.stop.clone();
        let mut progress = self.progress.clone();
        async move {
            let reason = stop.reduced_to(Reporting::Brief).await;
            // The log is closed when the processes have ended. `self.log` holds the sender.
            let _ = progress.wait_for(|progress| progress.closed).await;
            sleep(span).await;
            reason
        }
    }

    /// Replaces all unsent records by one line about them.
    fn cut(&self, reason: &Stop) -> Result<(), SpoolError> {
        let reason = reason.explanation();
        let seconds = self.options.final_log.as_secs();
        self.log.cut(self.unsent, |lines| {
            tracing::warn!(job = %self.link.job, reason, lines, "cut the end of a log");
            let noun = if lines == 1 { "line" } else { "lines" };
            format!(
                "the end of this log is cut ({lines} {noun}): {reason}, and what was not sent {seconds} s \
                 after its processes had ended is dropped"
            )
        })
    }

    /// Waits until a request is useful. False if there will be no request.
    async fn something_to_send(&mut self) -> bool {
        let sent = self.sent;
        let sent_bytes = self.sent_bytes;
        let is_due = |progress: &Progress| {
            let unsent = progress.bytes.saturating_sub(sent_bytes);
            progress.closed || unsent >= limits::BATCH_BYTES as u64
        };
        let has_started = |progress: &Progress| progress.written != sent || progress.closed;
        // `self.log` holds the sender, so the waits end by their conditions. The second wait usually ends by its timeout.
        let _ = self.progress.wait_for(has_started).await;
        let _ = timeout(self.options.ship_after, self.progress.wait_for(is_due)).await;
        self.progress.borrow().written != sent
    }

    async fn send_batch(&mut self) -> Result<(), ShipError> {
        let batch = self.log.read(self.sent)?;
        self.unsent = self.unsent.max(self.sent + batch.records);
        let request = self
            .link
            .client
            .append_logs(self.link.job, self.sent, batch.json);
        match self.link.judge(request.await) {
            Ok(receipt) if receipt.received > self.sent => {
                self.backoff.succeeded();
                if receipt.full {
                    self.log.drop_output();
                }
                self.sent_bytes += batch.bytes;
                self.sent = receipt.received;
                let progress = *self.progress.borrow();
                if progress.written == self.sent {
                    self.sent_bytes = progress.bytes;
                }
                self.log.forget_below(receipt.durable.min(receipt.received));
            }
            Ok(_) => sleep(self.backoff.failed()).await,
            Err(failure) if failure.verdict == Verdict::Refused => {
                return Err(ShipError::Refused(failure.error));
            }
            Err(failure) => {
                if failure.verdict == Verdict::Over {
                    self.link.stop.stop_reporting();
                }
                self.link.pause(&mut self.backoff, &failure).await;
                if let Verdict::LogFrom(next) = failure.verdict {
                    self.rewind(next);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use client::Client;
    use model::Masker;
    use uuid::Uuid;
    use wire::{NewLogRecord, Stream};

    use super::*;
    use crate::contact::Contact;
    use crate::stop::StopSignal;

    /// The shipper of a cancelled job that has printed this many lines. No daemon answers it.
    fn shipper(folder: &Path, lines: usize) -> LogShipper {
        let log = JobLog::new(folder.join("spool"), 0, Masker::default());
        let link = Link {
            client: Client::new("http://127.0.0.1:1", None).unwrap(),
            job: Uuid::nil(),
            stop: StopSignal::new(),
            contact: Contact::new(Options::default().silence),
            progress: Contact::new(Options::default().silence),
        };
        link.stop.request(Stop::Cancelled);
        let shipper = LogShipper::new(Arc::new(log), link, Options::default());
        let print = |line: &mut dyn FnMut(&str)| (0..lines).for_each(|_| line("y"));
        shipper.log.write(Some(0), Stream::Stdout, print).unwrap();
        shipper.log.close();
        shipper
    }

    fn lines(shipper: &LogShipper, from: u64) -> Vec<String> {
        let batch = shipper.log.read(from).unwrap();
        let records: Vec<NewLogRecord> = serde_json::from_slice(&batch.json).unwrap();
        records.into_iter().map(|record| record.text).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_is_cut_once_however_long_the_daemon_is_away() {
        let folder = tempfile::tempdir().unwrap();
        let shipper = shipper(folder.path(), 20_000);
        let batch = shipper.log.read(0).unwrap().records;
        let shipper = shipper.run().await.run().await;
        let marker = format!(
            "the end of this log is cut ({} lines): the job was cancelled, and what was not sent 3 s after its processes \
             had ended is dropped",
            20_000 - batch
        );
        assert_eq!(lines(&shipper, batch), [marker]);
    }

    #[tokio::test]
    async fn a_single_line_is_no_plural() {
        let folder = tempfile::tempdir().unwrap();
        let shipper = shipper(folder.path(), 1);
        shipper.cut(&Stop::Cancelled).unwrap();
        let marker = &lines(&shipper, 0)[0];
        assert!(marker.contains("(1 line):"), "{marker}");
    }
}
