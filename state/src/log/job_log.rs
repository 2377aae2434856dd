//! One open log: where it ends, what of it is durable.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use store::append_file::AppendFile;
use store::{Append, DiskError, Key};

use super::stream::{LogStream, decode};
use super::{LogError, LogReceipt, LogRecord, NewLogRecord};
use crate::alarm::Alarm;
use crate::error::WriteError;
use crate::limits::{LOG_TAIL_BYTES, LOG_TEXT_BYTES};

pub(crate) struct JobLog {
    root: PathBuf,
    key: Key,
    file: AppendFile,
    alarm: Alarm,
    /// The sync that failed, after which nothing becomes durable any more.
    failed: Option<DiskError>,
    length: u64,
    received: u64,
    durable: u64,
    durable_length: u64,
    /// What lies between `durable_length` and `length`, while that is little.
    tail: Vec<u8>,
}

impl JobLog {
    /// Opens the log and finds its end. A last record that was cut off by a crash was never acknowledged and is
    /// overwritten by the next append.
    pub(crate) fn open(root: &Path, key: Key, alarm: Alarm) -> Result<Self, LogError> {
        let mut file = AppendFile::open(root, &key).map_err(|error| broken(&key, error))?;
        let mut stream = LogStream::new(root, key.clone(), 0);
        let (mut received, mut length) = (0, 0);
        while let Some(chunk) = stream.next_blocking()? {
            received = stream.position();
            length += chunk.len() as u64;
        }
        if length < file.len() {
            tracing::warn!(%key, records = received, bytes = file.len() - length, "the torn end of a log is cut off");
        }
        file.cut(length).map_err(|error| broken(&key, error))?;
        let mut log = Self {
            root: root.to_owned(),
            key,
            file,
            alarm,
            failed: None,
            length,
            received,
            durable: 0,
            durable_length: 0,
            tail: Vec::new(),
        };
        if received > 0 {
            // What survived the last process may still be in the page cache only.
            log.sync()?;
        }
        Ok(log)
    }

    pub(crate) fn receipt(&self) -> LogReceipt {
        LogReceipt {
            received: self.received,
            durable: self.durable,
        }
    }

    pub(crate) fn append(
        &mut self,
        from: u64,
        records: &[NewLogRecord],
    ) -> Result<LogReceipt, LogError> {
        let next = self.received;
        if from > next {
            return Err(LogError::Mismatch { next });
        }
        for (n, record) in (from..).zip(records) {
            if record.text.len() > LOG_TEXT_BYTES {
                return Err(LogError::TooLong { n });
            }
        }
        let known = usize::try_from(next - from)
            .unwrap_or(usize::MAX)
            .min(records.len());
        let (repeated, fresh) = records.split_at(known);
        if !self.has(from, repeated)? {
            return Err(LogError::Mismatch { next });
        }
        if fresh.is_empty() {
            return Ok(self.receipt());
        }
        let mut bytes = Vec::new();
        for (n, record) in (next..).zip(fresh) {
            let record = LogRecord {
                n,
                record: record.clone(),
            };
            bytes.extend(encode(&record));
        }
        self.file
            .append(&bytes)
            .map_err(|error| broken(&self.key, error))?;
        self.length += bytes.len() as u64;
        if self.length - self.durable_length <= LOG_TAIL_BYTES {
            self.tail.extend_from_slice(&bytes);
        } else {
            self.tail = Vec::new();
        }
        self.received = next + fresh.len() as u64;
        Ok(self.receipt())
    }

    /// Whether the stored records from `from` on are these.
    fn has(&self, from: u64, records: &[NewLogRecord]) -> Result<bool, LogError> {
        let mut stream = LogStream::new(&self.root, self.key.clone(), from);
        let mut wanted = records.iter();
        while wanted.len() > 0 {
            let Some(chunk) = stream.next_blocking()? else {
                return Ok(false);
            };
            let lines = chunk.split_inclusive(|byte| *byte == b'\n');
            for (line, wanted) in lines.zip(&mut wanted) {
                if decode(line).is_none_or(|stored| stored.record != *wanted) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.durable == self.received
    }

    /// A commit holds everything up to record `records`.
    pub(crate) fn committed(&mut self, records: u64) {
        if records == self.received {
            self.durable = self.received;
            self.durable_length = self.length;
            self.tail = Vec::new();
        }
    }

    pub(crate) fn sync(&mut self) -> Result<(), LogError> {
        if self.is_durable() {
            return Ok(());
        }
        if let Some(error) = &self.failed {
            return Err(broken(&self.key, error.clone()));
        }
        if let Err(error) = self.file.sync() {
            self.alarm.watch(&error);
            self.failed = Some(error.clone());
            return Err(broken(&self.key, error));
        }
        self.durable = self.received;
        self.durable_length = self.length;
        self.tail = Vec::new();
        Ok(())
    }

    /// The end that is not durable, to ride inside a commit; a long one is synced instead.
    pub(crate) fn tail_for_commit(&mut self) -> Result<Vec<Append>, LogError> {
        if self.length - self.durable_length > LOG_TAIL_BYTES {
            self.sync()?;
        }
        if self.length == self.durable_length {
            return Ok(Vec::new());
        }
        let bytes = Bytes::copy_from_slice(&self.tail);
        Ok(vec![Append {
            ledger: self.key.clone(),
            at: self.durable_length,
            bytes,
        }])
    }
}

/// A record as its line. Records consist of texts and numbers, which JSON can always hold.
fn encode(record: &LogRecord) -> Vec<u8> {
    let mut line = serde_json::to_vec(record).unwrap_or_default();
    line.push(b'\n');
    line
}

fn broken(key: &Key, error: DiskError) -> LogError {
    LogError::Write(WriteError::new(key, error))
}
