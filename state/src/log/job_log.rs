//! An open log: its end, how much of it is durable, and the records that wait in memory for space on the disk.

use std::sync::Arc;

use bytes::Bytes;
use model::Timestamp;
use model::limits::WORKER_LAST_WORDS;
use store::volume::{GrowingFile, Volume};
use store::{Append, Fault, Key};
use tokio::time::Instant;

use super::cut::Cut;
use super::records::EncodedRecord;
use super::stream::{LogStream, decode};
use super::{LogError, LogReceipt, NewLogRecord, Stream, length};
use crate::alarm::Alarm;
use crate::error::{ReadError, WriteError};
use crate::limits::LOG_TAIL_BYTES;

pub(crate) struct JobLog {
    pub(super) volume: Arc<dyn Volume>,
    pub(super) key: Key,
    /// `None` while the disk is too full to create the file.
    file: Option<Box<dyn GrowingFile>>,
    alarm: Alarm,
    /// A failed sync. After it nothing becomes durable any more.
    failed: Option<Fault>,
    /// Whether the end was committed. Then no records are added.
    pub(super) is_sealed: bool,
    /// Set once the log has reached its limit.
    pub(super) cut: Option<Cut>,
    /// When this log was first found to belong to a finished job.
    finished_since: Option<Instant>,
    pub(super) received: Reach,
    /// How much is in the file. The rest waits in `tail` until the disk has space.
    written: Reach,
    durable: Reach,
    /// The bytes between `durable` and `received`, if they are few.
    tail: Vec<u8>,
}

/// A position in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Reach {
    pub(super) records: u64,
    pub(super) bytes: u64,
}

impl JobLog {
    /// Opens the log and finds its end. A crash can leave half a record there, which was never acknowledged and is cut
    /// off.
    pub(crate) fn open(volume: Arc<dyn Volume>, key: Key, alarm: Alarm) -> Result<Self, LogError> {
        let mut stream = LogStream::new(volume.clone(), key.clone(), 0);
        let mut found = Reach::default();
        while let Some(chunk) = stream.next_blocking()? {
            found.records = stream.position();
            found.bytes += chunk.len() as u64;
        }
        let broken = |error| LogError::Write(WriteError::new(&key, error));
        let file = match volume.open_growing(&key) {
            Ok(mut file) => {
                if found.bytes < file.size() {
                    let torn = file.size() - found.bytes;
                    tracing::warn!(%key, records = found.records, bytes = torn, "the torn end of a log is cut off");
                }
                file.cut(found.bytes).map_err(broken)?;
                Some(file)
            }
            // Only creating a new file needs space on the disk.
            Err(error) if error.is_full() => None,
            Err(error) => return Err(broken(error)),
        };
        let mut log = Self {
            volume,
            key,
            file,
            alarm,
            failed: None,
            is_sealed: false,
            cut: None,
            finished_since: None,
            received: found,
            written: found,
            durable: Reach::default(),
            tail: Vec::new(),
        };
        if found.records > 0 {
            log.cut = log.find_cut()?;
            // Data of an earlier process may only be in the page cache.
            log.sync()?;
        }
        Ok(log)
    }

    pub(crate) fn receipt(&self) -> LogReceipt {
        match &self.cut {
            None => LogReceipt {
                received: self.received.records,
                durable: self.durable.records,
                cut: None,
            },
            Some(cut) => cut.receipt(self.durable.records, self.is_durable()),
        }
    }

    pub(crate) const fn records(&self) -> u64 {
        self.received.records
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.received.bytes
    }

    pub(crate) fn append(
        &mut self,
        from: u64,
        records: &[EncodedRecord],
        limit: u64,
    ) -> Result<LogReceipt, LogError> {
        if let Some(cut) = self.cut.take() {
            return self.append_behind(cut, from, records);
        }
        let next = self.received.records;
        if from > next {
            return Err(LogError::Mismatch { next });
        }
        let known = usize::try_from(next - from)
            .unwrap_or(usize::MAX)
            .min(records.len());
        let (repeated, fresh) = records.split_at(known);
        if !self.has(from, &EncodedRecord::decode_all(repeated)?)? {
            return Err(LogError::Mismatch { next });
        }
        if fresh.is_empty() {
            return Ok(self.receipt());
        }
        if self.is_sealed {
            return Err(LogError::Mismatch { next });
        }
        let mut bytes = Vec::with_capacity(fresh.iter().map(EncodedRecord::line_bytes).sum());
        for (n, record) in (next..).zip(fresh) {
            let whole = bytes.len();
            record.write(n, &mut bytes)?;
            if self.received.bytes + bytes.len() as u64 > limit {
                bytes.truncate(whole);
                let (kept, rest) = fresh.split_at(usize::try_from(n - next).unwrap_or(0));
                self.keep(&bytes, kept.len() as u64)?;
                return self.cut_off(limit, rest);
            }
        }
        self.keep(&bytes, fresh.len() as u64)?;
        Ok(self.receipt())
    }

    /// Whether the received records from number `from` on equal `records`.
    pub(super) fn has(&self, from: u64, records: &[NewLogRecord]) -> Result<bool, LogError> {
        let mut stream = LogStream::new(self.volume.clone(), self.key.clone(), from);
        let mut wanted = records.iter();
        while wanted.len() > 0 {
            let Some(chunk) = stream.next_blocking()? else {
                break;
            };
            let lines = chunk.split_inclusive(|byte| *byte == b'\n');
            for (line, wanted) in lines.zip(&mut wanted) {
                if decode(line).is_none_or(|stored| stored.record != *wanted) {
                    return Ok(false);
                }
            }
        }
        let next = from + (records.len() - wanted.len()) as u64;
        let waiting = self.waiting().split_inclusive(|byte| *byte == b'\n');
        let mut waiting = waiting
            .filter_map(decode)
            .skip_while(|record| record.n < next);
        Ok(wanted.all(|wanted| waiting.next().is_some_and(|kept| kept.record == *wanted)))
    }

    /// Stores whole lines in the file. While the disk is full it keeps them in memory, up to what a commit can carry.
    pub(super) fn keep(&mut self, bytes: &[u8], records: u64) -> Result<(), LogError> {
        let reach = Reach {
            records: self.received.records + records,
            bytes: self.received.bytes + bytes.len() as u64,
        };
        match self.write_waiting().and_then(|()| self.write(bytes)) {
            Ok(()) => self.written = reach,
            Err(error) if error.is_full() => {
                if reach.bytes - self.durable.bytes > LOG_TAIL_BYTES {
                    // A sync frees memory: durable bytes are not kept.
                    self.sync_written()?;
                }
                if reach.bytes - self.durable.bytes > LOG_TAIL_BYTES {
                    return Err(self.broken(error));
                }
            }
            Err(error) => return Err(self.broken(error)),
        }
        if reach.bytes - self.durable.bytes <= LOG_TAIL_BYTES {
            self.tail.extend_from_slice(bytes);
        } else {
            self.tail = Vec::new();
        }
        self.received = reach;
        Ok(())
    }

    /// The received bytes that are not in the file yet.
    fn waiting(&self) -> &[u8] {
        let written = usize::try_from(self.written.bytes - self.durable.bytes);
        match written {
            Ok(written) if self.written != self.received => {
                self.tail.get(written..).unwrap_or_default()
            }
            Ok(_) | Err(_) => &[],
        }
    }

    fn write_waiting(&mut self) -> Result<(), Fault> {
        if self.written != self.received {
            let waiting = self.waiting().to_vec();
            self.write(&waiting)?;
            self.written = self.received;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.writer()?.append(bytes).map(drop)
    }

    fn writer(&mut self) -> Result<&mut dyn GrowingFile, Fault> {
        let file = match self.file.take() {
            Some(file) => file,
            None => self.volume.open_growing(&self.key)?,
        };
        Ok(&mut **self.file.insert(file))
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.durable == self.received
    }

    /// Call this after a commit has stored all records below number `records`.
    pub(crate) fn committed(&mut self, records: u64) {
        if records == self.received.records {
            self.is_sealed = true;
            self.written = self.received;
            self.durable = self.received;
            self.tail = Vec::new();
        }
    }

    /// True while the worker of a finished job may still append.
    pub(crate) fn may_still_grow(&mut self, now: Instant) -> bool {
        let finished_since = *self.finished_since.get_or_insert(now);
        let last_words = WORKER_LAST_WORDS.to_std().unwrap_or_default();
        now.saturating_duration_since(finished_since) < last_words
    }

    /// Makes the log durable and checks that it has all records. If the file was lost, a record about the loss is
    /// enough.
    pub(crate) fn settle(&mut self, records: u64, now: Timestamp) -> Result<(), LogError> {
        if records > self.received.records {
            self.expect_whole(records)?;
        }
        if self.is_lost()? {
            self.restart_after_loss(now)?;
        }
        self.sync()?;
        if self.is_durable() {
            Ok(())
        } else {
            Err(LogError::Write(WriteError::DiskFull))
        }
    }

    /// Makes everything durable that fits on the disk.
    pub(crate) fn sync(&mut self) -> Result<(), LogError> {
        if self.is_durable() {
            return Ok(());
        }
        match self.write_waiting() {
            Ok(()) => {}
            Err(error) if error.is_full() => {}
            Err(error) => return Err(self.broken(error)),
        }
        self.sync_written()
    }

    fn sync_written(&mut self) -> Result<(), LogError> {
        if let Some(error) = &self.failed {
            return Err(self.broken(error.clone()));
        }
        if self.durable == self.written {
            return Ok(());
        }
        let synced = self.writer().and_then(GrowingFile::sync);
        if let Err(error) = synced {
            self.alarm.watch(&error);
            self.failed = Some(error.clone());
            return Err(self.broken(error));
        }
        self.tail = self.waiting().to_vec();
        self.durable = self.written;
        Ok(())
    }

    /// The end of the log that is not durable yet, for a commit to store. A long end is synced instead.
    pub(crate) fn tail_for_commit(&mut self) -> Result<Vec<Append>, LogError> {
        if self.received.bytes - self.durable.bytes > LOG_TAIL_BYTES {
            self.sync()?;
        }
        if self.is_durable() {
            return Ok(Vec::new());
        }
        let bytes = Bytes::copy_from_slice(&self.tail);
        Ok(vec![Append {
            ledger: self.key.clone(),
            at: self.durable.bytes,
            bytes,
        }])
    }

    /// True if somebody removed or shortened the file. Then the end of the log cannot be appended.
    pub(crate) fn is_lost(&self) -> Result<bool, LogError> {
        match length(&*self.volume, &self.key) {
            Ok(length) => Ok(length < self.durable.bytes),
            Err(source) => Err(LogError::Read(ReadError::file(&self.key, source))),
        }
    }

    /// Continues after the remaining whole lines, and appends a record about the loss. A job must be able to end
    /// without its log.
    pub(crate) fn restart_after_loss(&mut self, now: Timestamp) -> Result<(), LogError> {
        let lost = self.received.records;
        *self = Self::open(self.volume.clone(), self.key.clone(), self.alarm.clone())?;
        let next = self.received.records;
        tracing::error!(key = %self.key, from = next, to = lost, "records of a log are lost: its file was removed or cut while the job ran");
        let text = format!(
            "log records {next} to {} are lost: the file of this log was removed or cut while the job ran",
            lost.saturating_sub(1)
        );
        let word = NewLogRecord {
            at: now,
            step: None,
            stream: Stream::Runner,
            text,
        };
        let word = EncodedRecord::all(next, &[word])?;
        self.append(next, &word, u64::MAX).map(drop)
    }

    fn broken(&self, error: Fault) -> LogError {
        LogError::Write(WriteError::new(&self.key, error))
    }
}
