//! Job logs: numbered records, appended while a job runs. The same code reads them during the job and afterwards.
//!
//! An append is written at once and synced within a second; the receipt has both positions. When a job completes, its
//! commit also stores the unsynced end of its log. So a job can end on a full disk: only a short end of its log waits
//! in memory, and the journal has reserved space for the commit.
//!
//! A log that reaches its limit is cut: see `cut.rs`.

mod cut;
mod filter;
mod job_log;
mod records;
mod search;
mod stream;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::decide::{Command, Complete, Decision, LargeInputs};
use model::{JobId, Timestamp};
use serde::{Deserialize, Serialize};
use store::volume::Volume;
use store::{Append, Batch, Fault, Key};
use thiserror::Error;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::alarm::Alarm;
use crate::blocking::{on_volume, while_awaited};
use crate::encode::adopt_inputs;
use crate::error::{Interrupted, ReadError, WriteError};
use crate::layout::Layout;
use crate::limits::{LOG_SYNC, SEARCH_BYTES};
pub use crate::log::filter::LogFilter;
use crate::log::job_log::JobLog;
pub use crate::log::records::EncodedRecord;
pub use crate::log::search::{LogMatches, LogSearch};
pub use crate::log::stream::LogStream;
use crate::publication::Publication;
use crate::warned::Warned;
use crate::watchers::Watchers;
use crate::{State, SubmitError};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecord {
    /// The number of the record within the job, from 0.
    pub n: u64,
    #[serde(flatten)]
    pub record: NewLogRecord,
}

/// A log line before it has a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewLogRecord {
    pub at: Timestamp,
    /// The number of its step, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    pub stream: Stream,
    pub text: String,
}

/// Where a log line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
    /// A message of the runner itself.
    Runner,
}

/// How far a log was received and synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogReceipt {
    /// Records below this number are stored.
    pub received: u64,
    /// Records below this number survive a power failure.
    pub durable: u64,
    /// The number of the record that marks the cut, if the log has reached its limit. Later records are accepted and
    /// dropped.
    pub cut: Option<u64>,
}

/// Why records were not appended.
#[derive(Debug, Error)]
pub enum LogError {
    /// The records leave a gap, or differ from the stored ones.
    #[error("the log has records 0 to {next} (exclusive); send from there")]
    Mismatch { next: u64 },
    #[error("record {n} is longer than a log line may be; split it")]
    TooLong { n: u64 },
    /// A record cannot be written as JSON. This is a defect.
    #[error("a log record cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<Interrupted> for LogError {
    fn from(interrupted: Interrupted) -> Self {
        Self::Write(interrupted.into())
    }
}

/// The logs of all jobs. Cheap to clone.
#[derive(Clone)]
pub struct Logs {
    shared: Arc<Shared>,
}

struct Shared {
    volume: Arc<dyn Volume>,
    publication: Arc<Publication>,
    alarm: Alarm,
    open: Mutex<HashMap<JobId, Slot>>,
    growth: Watchers<JobId>,
    dirty: Notify,
    warned: Warned,
}

/// Measures logs, in bytes. A log that cannot be measured counts as empty, because its job must be able to end.
pub(crate) fn lengths(volume: Arc<dyn Volume>) -> Box<dyn Fn(JobId) -> u64 + Send> {
    Box::new(move |job| {
        length(&*volume, &Layout::log(job)).unwrap_or_else(|error| {
            tracing::warn!(%job, %error, "a log cannot be measured; it counts as empty");
            0
        })
    })
}

/// The length of a growing file; 0 if there is no such file.
fn length(volume: &dyn Volume, key: &Key) -> Result<u64, Fault> {
    let file = volume.read_growing(key)?;
    file.map_or(Ok(0), |file| file.size())
}

/// Holds the only writer of a log. A slot is empty until its log is open: finding the end of a long log takes time, and
/// must not block other logs. A slot in use stays in the map, so a log never has two writers.
type Slot = Arc<Mutex<Option<JobLog>>>;

impl Logs {
    pub(crate) fn new(
        volume: Arc<dyn Volume>,
        publication: Arc<Publication>,
        alarm: Alarm,
        warned: Warned,
    ) -> Self {
        let (open, growth, dirty) = (Mutex::default(), Watchers::default(), Notify::new());
        Self {
            shared: Arc::new(Shared {
                volume,
                publication,
                alarm,
                open,
                growth,
                dirty,
                warned,
            }),
        }
    }

    /// Like [`Self::append_within`], without a limit.
    pub async fn append(
        &self,
        job: JobId,
        from: u64,
        records: Vec<NewLogRecord>,
    ) -> Result<LogReceipt, LogError> {
        let records = EncodedRecord::all(from, &records)?;
        self.append_within(u64::MAX, job, from, records).await
    }

    /// Appends records; the first has the number `from`. Records that are already stored are compared, not stored
    /// again. A log that would become longer than `limit` bytes is cut.
    pub async fn append_within(
        &self,
        limit: u64,
        job: JobId,
        from: u64,
        records: Vec<EncodedRecord>,
    ) -> Result<LogReceipt, LogError> {
        let logs = self.clone();
        let appended = on_volume(&self.shared.volume, move |_| {
            let receipt = logs.with(job, |log| log.append(from, &records, limit))?;
            logs.shared.growth.wake(&job);
            Ok::<_, LogError>((receipt, receipt.durable < receipt.received))
        });
        let (receipt, dirty) = appended.await?;
        if dirty {
            self.shared.dirty.notify_one();
        }
        Ok(receipt)
    }

    /// The receipt for the log of an unfinished job.
    pub async fn receipt(&self, job: JobId) -> Result<LogReceipt, LogError> {
        let logs = self.clone();
        on_volume(&self.shared.volume, move |_| {
            logs.with(job, |log| Ok(log.receipt()))
        })
        .await
    }

    /// How many records the log of a running or finished job has.
    pub async fn records(&self, job: JobId) -> Result<u64, LogError> {
        if self.is_open(job) {
            let logs = self.clone();
            on_volume(&self.shared.volume, move |_| {
                logs.with(job, |log| Ok(log.records()))
            })
            .await
        } else if self.shared.publication.silent().contains(&job) {
            Ok(0)
        } else {
            Ok(self.stream(job, 0).count().await?)
        }
    }

    /// Wakes when the log of an unfinished job grows. Closed when the job ends.
    pub fn subscribe(&self, job: JobId) -> watch::Receiver<()> {
        self.shared.growth.subscribe(job)
    }

    /// Reads the log of a running or finished job from record `from` on.
    pub fn stream(&self, job: JobId, from: u64) -> LogStream {
        LogStream::new(self.shared.volume.clone(), Layout::log(job), from)
    }

    /// Where to start reading to get the last `count` records that match the filter. With a filter, the log is read
    /// backwards until they are found, possibly to its beginning. Without a filter, only the end is read.
    pub async fn begin_of_last(
        &self,
        job: JobId,
        filter: LogFilter,
        count: u64,
    ) -> Result<u64, ReadError> {
        if filter.takes_all() {
            let records = self.stream(job, 0).count().await?;
            return Ok(records.saturating_sub(count));
        }
        let key = Layout::log(job);
        while_awaited(&self.shared.volume, move |volume, awaited| {
            let file = volume.read_growing(&key);
            match file.map_err(|fault| ReadError::file(&key, fault))? {
                Some(file) => filter::begin_of_last(&*file, &key, &filter, count, awaited),
                None => Ok(0),
            }
        })
        .await
    }

    /// Searches the log of a running or finished job. Reads the whole log on a thread for blocking work; dropping the
    /// future stops this.
    pub async fn search(&self, job: JobId, wanted: LogSearch) -> Result<LogMatches, ReadError> {
        let key = Layout::log(job);
        while_awaited(&self.shared.volume, move |volume, awaited| {
            let file = volume.read_growing(&key);
            match file.map_err(|fault| ReadError::file(&key, fault))? {
                Some(file) => search::search(&*file, &key, &wanted, SEARCH_BYTES, awaited),
                None => Ok(LogMatches::default()),
            }
        })
        .await
    }

    /// Makes the stream mark unreadable records. Only for logs of finished jobs.
    pub fn mark_damage(&self, stream: &mut LogStream) {
        stream.marking_damage(self.shared.warned.clone());
    }

    /// Syncs every log, and closes logs that can no longer grow. False while work remains: the disk had no space for
    /// all logs, or the log of a finished job may still grow.
    pub(crate) fn sync(&self, now: Instant) -> Result<bool, LogError> {
        let mut is_done = true;
        let slots: Vec<_> = lock(&self.shared.open)
            .iter()
            .map(|(job, slot)| (*job, slot.clone()))
            .collect();
        for (job, slot) in slots {
            let is_finished = self
                .shared
                .publication
                .read(|world| world.job(job).is_none());
            let mut may_grow = false;
            if let Some(log) = &mut *lock(&slot) {
                log.sync()?;
                is_done &= log.is_durable();
                // Do not close a log that may grow: opening it again would read all of it.
                may_grow = is_finished && log.may_still_grow(now);
            }
            drop(slot);
            if is_finished {
                if !may_grow {
                    self.close(job);
                }
                is_done &= !self.is_open(job);
            }
        }
        Ok(is_done)
    }

    /// Checks that the log has all of its records, and returns the data for a completion. If the file was lost, the
    /// result counts the records that remain.
    fn seal(&self, job: JobId, records: u64, now: Timestamp) -> Result<Sealed, LogError> {
        self.with(job, |log| {
            log.expect_whole(records)?;
            let mut tail = log.tail_for_commit()?;
            if log.is_lost()? {
                log.restart_after_loss(now)?;
                tail = log.tail_for_commit()?;
            }
            Ok(Sealed {
                records: log.records(),
                bytes: log.bytes(),
                tail,
            })
        })
    }

    /// Call this when a job was not ended by its worker. The worker may still append to the log for a while.
    pub fn ended(&self, job: JobId) {
        self.shared.growth.close(&job);
        self.shared.dirty.notify_one();
    }

    /// Closes the log of a finished job if all of it is durable.
    fn close(&self, job: JobId) {
        self.shared.growth.close(&job);
        let mut open = lock(&self.shared.open);
        if open.get(&job).is_some_and(is_done_with) {
            open.remove(&job);
        }
    }

    /// Closes the log of a job that was removed, without a sync.
    pub fn forget(&self, job: JobId) {
        self.shared.growth.close(&job);
        lock(&self.shared.open).remove(&job);
    }

    /// Closes the log of a job after the commit of its completion, which stored the end of the log.
    fn close_sealed(&self, job: JobId, records: u64) {
        if let Some(slot) = lock(&self.shared.open).get(&job).cloned()
            && let Ok(mut slot) = slot.try_lock()
            && let Some(log) = &mut *slot
        {
            log.committed(records);
        }
        self.close(job);
    }

    pub(crate) fn is_open(&self, job: JobId) -> bool {
        lock(&self.shared.open).contains_key(&job)
    }

    /// Works on a log; opens it first if needed. Blocks.
    fn with<T>(
        &self,
        job: JobId,
        work: impl FnOnce(&mut JobLog) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let slot = lock(&self.shared.open).entry(job).or_default().clone();
        self.shared.publication.silent().remove(&job);
        let mut slot = lock(&slot);
        let log = match &mut *slot {
            Some(log) => log,
            empty @ None => empty.insert(JobLog::open(
                self.shared.volume.clone(),
                Layout::log(job),
                self.shared.alarm.clone(),
            )?),
        };
        work(log)
    }
}

/// The state of a log at the completion of its job.
struct Sealed {
    records: u64,
    bytes: u64,
    /// The end of the log that is not durable yet.
    tail: Vec<Append>,
}

/// True if nobody uses a log and all of it is durable. The caller holds the lock of the map, so nobody can start to use
/// it.
fn is_done_with(slot: &Slot) -> bool {
    Arc::strong_count(slot) == 1 && lock(slot).as_ref().is_none_or(JobLog::is_durable)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a job was not completed.
#[derive(Debug, Error)]
pub enum CompleteError {
    /// The log does not have the records that the worker has sent.
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

impl State {
    /// Completes a job and commits the unsynced end of its log with it.
    pub async fn complete(
        &self,
        mut complete: Complete,
    ) -> Result<<Complete as Command>::Answer, CompleteError> {
        let (job, records, logs) = (complete.job, complete.log_records, self.logs().clone());
        let mut tail = Vec::new();
        // A job without output gets no log file.
        if records > 0 || logs.records(job).await? > 0 {
            let now = self.now();
            let seal = move |_: &dyn Volume| logs.seal(job, records, now);
            let sealed = on_volume(self.volume(), seal).await?;
            (complete.log_records, complete.log_bytes) = (sealed.records, sealed.bytes);
            tail = sealed.tail;
        }
        let records = complete.log_records;
        let copy = match complete.is_success() {
            true => None,
            false => self.copy_large_inputs(job).await,
        };
        if copy.is_some() {
            complete.large_inputs = LargeInputs::Copied;
        }
        let attach = move |decision: &Decision<_>, batch: &mut Batch| {
            batch.appends.extend(tail.clone());
            adopt_inputs(batch, &decision.changes, copy.clone());
        };
        let answer = self.submit_with(complete, None, attach).await?;
        self.logs().close_sealed(job, records);
        Ok(answer)
    }

    /// For a job that was not ended by its worker: makes its log durable once the worker has finished. Fails if records
    /// are missing after a power failure, so that the worker sends them again.
    pub async fn settle_log(&self, job: JobId, records: u64) -> Result<(), LogError> {
        let (now, logs) = (self.now(), self.logs().clone());
        // A job without output gets no log file.
        let has_log = records > 0 || logs.records(job).await? > 0;
        on_volume(self.volume(), move |_| {
            if has_log {
                logs.with(job, |log| log.settle(records, now))?;
            }
            logs.close(job);
            Ok(())
        })
        .await
    }

    /// Syncs logs after appends, at most once per second, while the daemon runs.
    pub async fn keep_logs_durable(&self) {
        loop {
            self.sync_appended().await;
        }
    }

    /// Waits until a log has grown, and syncs a second later.
    pub(crate) async fn sync_appended(&self) {
        self.logs().shared.dirty.notified().await;
        tokio::time::sleep(LOG_SYNC).await;
        let logs = self.logs().clone();
        let now = Instant::now();
        match on_volume(self.volume(), move |_| logs.sync(now)).await {
            Ok(true) => {}
            Ok(false) => self.logs().shared.dirty.notify_one(),
            Err(error) => tracing::error!(%error, "a log cannot be synced"),
        }
    }
}
