//! Sends a job's log from the spool to the daemon, in order and without gaps, whatever happens to the connection. It
//! waits a moment for more lines before it sends some, unless the log is closed: so a short job costs one request, and a
//! job without lines none.

use std::sync::Arc;
use std::time::Duration;

use client::Backoff;
use model::error_chain;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::job_log::{JobLog, Progress};
use crate::limits;
use crate::link::{Link, Verdict};
use crate::spool::SpoolError;
use crate::stop::Stop;

/// Knows how much of a log the daemon has.
#[derive(Debug)]
pub(crate) struct LogShipper {
    log: Arc<JobLog>,
    link: Link,
    ship_after: Duration,
    progress: watch::Receiver<Progress>,
    sent: u64,
    sent_bytes: u64,
    backoff: Backoff,
}

impl LogShipper {
    /// Nothing below the log's first record needs to be sent.
    pub(crate) fn new(log: Arc<JobLog>, link: Link, ship_after: Duration) -> Self {
        let progress = log.watch();
        let sent = progress.borrow().written;
        Self {
            log,
            link,
            ship_after,
            progress,
            sent,
            sent_bytes: 0,
            backoff: limits::backoff(),
        }
    }

    /// Records below this number have reached the daemon.
    pub(crate) const fn sent(&self) -> u64 {
        self.sent
    }

    /// Sends from this record on, because the daemon has lost what followed.
    pub(crate) fn rewind(&mut self, next: u64) {
        self.sent = next;
        self.sent_bytes = 0;
    }

    /// Sends until the log is closed and the daemon has all of it, or until the job is over.
    pub(crate) async fn run(mut self) -> Self {
        while self.something_to_send().await && self.link.stop.reason() != Some(Stop::JobOver) {
            if let Err(error) = self.send_batch().await {
                let error = error_chain(&error);
                tracing::error!(job = %self.link.job, error, "the log cannot be sent");
                self.link.stop.request(Stop::LogFailed(error));
                break;
            }
        }
        self
    }

    /// Waits until a request is worth sending. False when there will never be one.
    async fn something_to_send(&mut self) -> bool {
        let sent = self.sent;
        let sent_bytes = self.sent_bytes;
        let is_due = |progress: &Progress| {
            progress.closed || progress.bytes - sent_bytes >= limits::BATCH_BYTES as u64
        };
        let has_started = |progress: &Progress| progress.written != sent || progress.closed;
        // The sender lives in `self.log`, so the waits end by their conditions; running out of time is the usual end
        // of the second.
        let _ = self.progress.wait_for(has_started).await;
        let _ = timeout(self.ship_after, self.progress.wait_for(is_due)).await;
        self.progress.borrow().written != sent
    }

    async fn send_batch(&mut self) -> Result<(), SpoolError> {
        let records = self.log.read(self.sent)?;
        let request = self
            .link
            .client
            .append_logs(self.link.job, self.sent, &records);
        match self.link.judge(request.await) {
            Ok(receipt) if receipt.received > self.sent => {
                self.backoff.succeeded();
                let bytes: usize = records.iter().map(|record| record.text.len()).sum();
                self.sent_bytes += bytes as u64;
                self.sent = receipt.received;
                let progress = *self.progress.borrow();
                if progress.written == self.sent {
                    self.sent_bytes = progress.bytes;
                }
                self.log.forget_below(receipt.durable.min(receipt.received));
            }
            Ok(_) => sleep(self.backoff.failed()).await,
            Err(failure) => match failure.verdict {
                // The same number again would go in circles without a pause.
                Verdict::LogFrom(next) if next != self.sent => self.rewind(next),
                Verdict::LogFrom(_) | Verdict::Again | Verdict::Refused => {
                    self.link.pause(&mut self.backoff, &failure).await;
                }
                Verdict::Over => {}
            },
        }
        Ok(())
    }
}
