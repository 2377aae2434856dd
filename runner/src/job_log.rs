//! A job's log while the job runs. The execution writes to it and the log shipper reads from it. The lines are in the spool on
//! disk; only counters are in memory, and their changes wake the readers. Secrets are masked before a line arrives here.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::SubsecRound as _;
use model::{MaskStream, Masker};
use tokio::sync::watch;
use tokio::time::Instant;
use wire::{RecordHead, Stream};

use crate::clock;
use crate::limits;
use crate::output::LineSplitter;
use crate::spool::{Batch, Spool, SpoolError};

const MICROSECONDS: u16 = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Records below this number are in the spool.
    pub(crate) written: u64,
    /// The number of written bytes, in the form in which they are sent.
    pub(crate) bytes: u64,
    pub(crate) closed: bool,
    full: bool,
}

#[derive(Debug)]
pub(crate) struct JobLog {
    spool: Mutex<Spool>,
    masker: Masker,
    /// Whether the output of steps is dropped, because the log has reached the daemon's limit.
    drops_output: AtomicBool,
    progress: watch::Sender<Progress>,
}

impl JobLog {
    /// An empty log in `folder`. Its first record will have the number `next`.
    pub(crate) fn new(folder: PathBuf, next: u64, masker: Masker) -> Self {
        Self {
            masker,
            drops_output: AtomicBool::new(false),
            spool: Mutex::new(Spool::new(folder, next)),
            progress: watch::Sender::new(Progress {
                written: next,
                bytes: 0,
                closed: false,
                full: false,
            }),
        }
    }

    /// A masker of the job's secrets for one stream of output. It must run before the stream is cut into lines.
    pub(crate) fn mask_stream(&self) -> MaskStream {
        self.masker.stream()
    }

    /// Appends lines with the current time. Each has at most [`limits::LINE_BYTES`] and no secrets. After an error of the disk,
    /// nothing is appended.
    pub(crate) fn write(
        &self,
        step: Option<u32>,
        stream: Stream,
        lines: impl FnOnce(&mut dyn FnMut(&str)),
    ) -> Result<(), SpoolError> {
        if stream != Stream::Runner && self.drops_output.load(Ordering::Relaxed) {
            return Ok(());
        }
        let head = RecordHead::new(clock::now().trunc_subsecs(MICROSECONDS), step, stream);
        let mut spool = self.spool();
        let bytes = spool.append(|records| lines(&mut |text| records.add(&head, text)))?;
        if bytes > 0 {
            self.progress.send_modify(|progress| {
                progress.written = spool.next();
                progress.bytes += bytes;
                progress.full = spool.bytes() >= limits::SPOOL_BYTES;
            });
        }
        Ok(())
    }

    /// Drops the output of steps from now on: the log has reached the daemon's limit.
    pub(crate) fn drop_output(&self) {
        self.drops_output.store(true, Ordering::Relaxed);
    }

    pub(crate) fn add_runner_lines(&self, step: Option<u32>, text: &str) -> Result<(), SpoolError> {
        let text = self.masker.mask(text);
        self.write(step, Stream::Runner, |mut line| {
            let mut splitter = LineSplitter::default();
            splitter.push(text.as_bytes(), Instant::now(), &mut line);
            splitter.finish(&mut line);
        })
    }

    pub(crate) fn close(&self) {
        self.progress
            .send_if_modified(|progress| !std::mem::replace(&mut progress.closed, true));
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.progress.borrow().full
    }

    pub(crate) async fn has_room(&self) {
        // `self` holds the sender, so the wait cannot fail.
        let _ = self.watch().wait_for(|progress| !progress.full).await;
    }

    pub(crate) fn read(&self, from: u64) -> Result<Batch, SpoolError> {
        self.spool().read(from, limits::BATCH_BYTES)
    }

    /// Drops the records from `from` on, and appends the text that `explain` makes of their number.
    pub(crate) fn cut(
        &self,
        from: u64,
        explain: impl FnOnce(u64) -> String,
    ) -> Result<(), SpoolError> {
        let records = self.spool().cut(from)?;
        if records == 0 {
            return Ok(());
        }
        self.add_runner_lines(None, &explain(records))
    }

    pub(crate) fn forget_below(&self, durable: u64) {
        let mut spool = self.spool();
        spool.forget_below(durable);
        let full = spool.bytes() >= limits::SPOOL_BYTES;
        self.progress
            .send_if_modified(|progress| std::mem::replace(&mut progress.full, full) != full);
    }

    pub(crate) fn remove(&self) {
        self.spool().remove();
    }

    fn spool(&self) -> MutexGuard<'_, Spool> {
        // No method leaves the spool half changed, so a panic elsewhere does not damage it.
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_drops_output_takes_the_words_of_the_runner_only() {
        let folder = tempfile::tempdir().unwrap();
        let log = JobLog::new(folder.path().join("spool"), 0, Masker::default());
        let step = |text: &str| {
            let written = log.write(Some(0), Stream::Stdout, |line| line(text));
            written.unwrap();
        };
        step("one");
        log.drop_output();
        step("two");
        log.add_runner_lines(None, "the job was cancelled").unwrap();
        let json = log.read(0).unwrap().json;
        let records: Vec<wire::NewLogRecord> = serde_json::from_slice(&json).unwrap();
        let texts = records.into_iter().map(|record| record.text);
        assert_eq!(texts.collect::<Vec<_>>(), ["one", "the job was cancelled"]);
    }
}
