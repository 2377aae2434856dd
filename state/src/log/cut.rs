//! Logs that have reached their limit. The log is *cut*: a record in the stream `runner` marks the place, and later
//! records are accepted and dropped. A few of the runner's own records are still stored, because they explain how the
//! job ended. They get the numbers after the mark.
//!
//! Only the mark in the file shows that a log is cut, so a restarted daemon finds it again. After the cut the worker's
//! numbers differ from the stored numbers. They are not checked, because repeats do not depend on them.

use workflow::format_size;

use super::job_log::JobLog;
use super::records::{EncodedRecord, line};
use super::stream::decode;
use super::{LogError, LogReceipt, NewLogRecord, Stream};
use crate::error::ReadError;
use crate::limits::AFTER_CUT_BYTES;

/// The beginning of the record at the cut.
const MARK: &str = "the log is cut here: ";

pub(super) struct Cut {
    /// The number of the record that marks the cut.
    at: u64,
    /// The number that the worker uses next.
    next: u64,
    /// The runner's records after the cut.
    records: Vec<NewLogRecord>,
    /// Their length in the file.
    bytes: u64,
}

impl Cut {
    /// Dropped records count as durable once the stored records are durable.
    pub(super) fn receipt(&self, durable: u64, is_durable: bool) -> LogReceipt {
        LogReceipt {
            received: self.next,
            durable: if is_durable {
                self.next
            } else {
                durable.min(self.at)
            },
            cut: Some(self.at),
        }
    }
}

impl JobLog {
    /// Fails unless the log has as many records as the worker says.
    pub(super) fn expect_whole(&self, records: u64) -> Result<(), LogError> {
        let is_whole = match &self.cut {
            None => records == self.received.records,
            Some(cut) => records >= cut.at,
        };
        if is_whole {
            Ok(())
        } else {
            let next = self.receipt().received;
            Err(LogError::Mismatch { next })
        }
    }

    /// Finds the cut of a log that was just opened. It is near the end, because little is stored after it.
    pub(super) fn find_cut(&self) -> Result<Option<Cut>, LogError> {
        let failed = |source| LogError::Read(ReadError::file(&self.key, source));
        let Some(file) = self.volume.read_growing(&self.key).map_err(failed)? else {
            return Ok(None);
        };
        let start = self.received.bytes.saturating_sub(2 * AFTER_CUT_BYTES);
        let wanted = usize::try_from(self.received.bytes - start).unwrap_or(usize::MAX);
        let end = file.read_at(start, wanted).map_err(failed)?;
        let mut cut: Option<Cut> = None;
        for line in end.split_inclusive(|byte| *byte == b'\n') {
            // The first line may be incomplete.
            let Some(stored) = decode(line) else {
                continue;
            };
            match &mut cut {
                Some(cut) => {
                    cut.bytes += line.len() as u64;
                    cut.records.push(stored.record);
                }
                None if is_mark(&stored.record) => {
                    cut = Some(Cut {
                        at: stored.n,
                        next: stored.n,
                        records: Vec::new(),
                        bytes: 0,
                    });
                }
                None => {}
            }
        }
        Ok(cut)
    }

    /// Marks the cut in place of the next record, and handles the rest of the records.
    pub(super) fn cut_off(
        &mut self,
        limit: u64,
        rest: &[EncodedRecord],
    ) -> Result<LogReceipt, LogError> {
        let at = self.received.records;
        let first = EncodedRecord::decode_all(rest.get(..1).unwrap_or_default())?;
        let Some(first) = first.first() else {
            return Ok(self.receipt());
        };
        let mark = NewLogRecord {
            at: first.at,
            step: None,
            stream: Stream::Runner,
            text: format!(
                "{MARK}it has reached its limit of {}; the step goes on, and what it prints is not kept",
                format_size(limit)
            ),
        };
        let line = self.next_line(&mark)?;
        self.keep(&line, 1)?;
        tracing::warn!(key = %self.key, record = at, limit, "a log has reached its limit and is cut");
        let cut = Cut {
            at,
            next: at,
            records: Vec::new(),
            bytes: 0,
        };
        self.append_behind(cut, at, rest)
    }

    /// Handles records after the cut. The stored records are synced at once, so that the worker may drop all of them.
    pub(super) fn append_behind(
        &mut self,
        mut cut: Cut,
        from: u64,
        records: &[EncodedRecord],
    ) -> Result<LogReceipt, LogError> {
        let taken = self.take_behind(&mut cut, from, records);
        self.cut = Some(cut);
        taken?;
        self.sync()?;
        Ok(self.receipt())
    }

    fn take_behind(
        &mut self,
        cut: &mut Cut,
        from: u64,
        records: &[EncodedRecord],
    ) -> Result<(), LogError> {
        let records = EncodedRecord::decode_all(records)?;
        let stored = usize::try_from(cut.at.saturating_sub(from)).unwrap_or(usize::MAX);
        let (repeated, behind) = records.split_at(stored.min(records.len()));
        if !self.has(from, repeated)? {
            return Err(LogError::Mismatch { next: cut.next });
        }
        for record in behind {
            // A repeated record has the same text.
            if record.stream != Stream::Runner || cut.records.contains(record) {
                continue;
            }
            let line = self.next_line(record)?;
            let bytes = cut.bytes + line.len() as u64;
            if !self.is_sealed && bytes <= AFTER_CUT_BYTES {
                self.keep(&line, 1)?;
                cut.bytes = bytes;
                cut.records.push(record.clone());
            }
        }
        cut.next = cut.next.max(from.saturating_add(records.len() as u64));
        Ok(())
    }

    fn next_line(&self, record: &NewLogRecord) -> Result<Vec<u8>, LogError> {
        line(self.received.records, record)
    }
}

fn is_mark(record: &NewLogRecord) -> bool {
    record.stream == Stream::Runner && record.step.is_none() && record.text.starts_with(MARK)
}
