//! A job's log while the job runs: who executes writes to it, who ships reads from it. It lives in the spool on disk;
//! in memory are only its counters, which wake whoever waits for them. Secrets are hidden before a line gets here.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::SubsecRound as _;
use model::{MaskStream, Masker};
use tokio::sync::watch;
use wire::{RecordHead, Stream};

use crate::clock;
use crate::limits;
use crate::output::LineSplitter;
use crate::spool::{Batch, Spool, SpoolError};

/// Digits of a second's fraction in the times of records.
const MICROSECONDS: u16 = 6;

/// How far the log has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Records below this number are in the spool.
    pub(crate) written: u64,
    /// Bytes written in all, as they are sent.
    pub(crate) bytes: u64,
    /// No more will be written.
    pub(crate) closed: bool,
    /// The spool has reached its bound.
    full: bool,
}

/// One job's log.
#[derive(Debug)]
pub(crate) struct JobLog {
    spool: Mutex<Spool>,
    masker: Masker,
    /// Whether the daemon keeps the runner's own words only.
    drops_output: AtomicBool,
    progress: watch::Sender<Progress>,
}

impl JobLog {
    /// An empty log in `folder` whose first record has the number `next`, for a job with the masker's secrets.
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

    /// What hides the job's secrets in one stream of output, before it is cut into lines.
    pub(crate) fn mask_stream(&self) -> MaskStream {
        self.masker.stream()
    }

    /// Appends the lines that `lines` gives, each at most [`limits::LINE_BYTES`] long, read just now and without secrets.
    ///
    /// # Errors
    /// When the disk refuses them; none is written then.
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

    /// From here on lines of steps are dropped: the log has reached the daemon's limit.
    pub(crate) fn drop_output(&self) {
        self.drops_output.store(true, Ordering::Relaxed);
    }

    /// Adds the runner's own word.
    ///
    /// # Errors
    /// When the disk refuses it.
    pub(crate) fn say(&self, step: Option<u32>, text: &str) -> Result<(), SpoolError> {
        let text = self.masker.mask(text);
        self.write(step, Stream::Runner, |mut line| {
            let mut splitter = LineSplitter::default();
            splitter.push(text.as_bytes(), &mut line);
            splitter.finish(&mut line);
        })
    }

    /// Says that nothing will follow.
    pub(crate) fn close(&self) {
        self.progress
            .send_if_modified(|progress| !std::mem::replace(&mut progress.closed, true));
    }

    /// Lets a reader follow the counters.
    pub(crate) fn watch(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Whether writers should wait.
    pub(crate) fn is_full(&self) -> bool {
        self.progress.borrow().full
    }

    /// Waits until the spool is below its bound.
    pub(crate) async fn has_room(&self) {
        // `self` holds the sender, so the wait cannot fail.
        let _ = self.watch().wait_for(|progress| !progress.full).await;
    }

    /// Reads the next records for one request.
    ///
    /// # Errors
    /// When the spool does not have them.
    pub(crate) fn read(&self, from: u64) -> Result<Batch, SpoolError> {
        self.spool().read(from, limits::BATCH_BYTES)
    }

    /// Drops the records from `from` on, and writes what `say` makes of their number in their place.
    ///
    /// # Errors
    /// When the spool does not have them, or the disk refuses the word on them.
    pub(crate) fn cut(&self, from: u64, say: impl FnOnce(u64) -> String) -> Result<(), SpoolError> {
        let records = self.spool().cut(from)?;
        if records == 0 {
            return Ok(());
        }
        self.say(None, &say(records))
    }

    /// Lets go of records that the daemon has made durable.
    pub(crate) fn forget_below(&self, durable: u64) {
        let mut spool = self.spool();
        spool.forget_below(durable);
        let full = spool.bytes() >= limits::SPOOL_BYTES;
        self.progress
            .send_if_modified(|progress| std::mem::replace(&mut progress.full, full) != full);
    }

    /// Removes the spool.
    pub(crate) fn remove(&self) {
        self.spool().remove();
    }

    fn spool(&self) -> MutexGuard<'_, Spool> {
        // No method leaves the spool half changed, so a panic elsewhere does not spoil it.
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
        log.say(None, "the job was cancelled").unwrap();
        let json = log.read(0).unwrap().json;
        let records: Vec<wire::NewLogRecord> = serde_json::from_slice(&json).unwrap();
        let texts = records.into_iter().map(|record| record.text);
        assert_eq!(texts.collect::<Vec<_>>(), ["one", "the job was cancelled"]);
    }
}
