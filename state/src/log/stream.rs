//! Reads a log from a record number on, in pieces of whole lines.

use std::sync::Arc;

use bytes::Bytes;
use memchr::memchr_iter;
use model::Timestamp;
use store::volume::{ReadAt, Volume};
use store::{Fault, Key};

use super::records::line;
use super::{LogFilter, LogRecord, NewLogRecord, Stream};
use crate::blocking::on_volume;
use crate::error::ReadError;
use crate::limits::{LEAST_LINE_BYTES, LOG_PIECE, READ_BYTES};
use crate::warned::Warned;

/// A reader of a log. It returns JSON lines exactly as they are stored.
pub struct LogStream {
    volume: Arc<dyn Volume>,
    key: Key,
    file: Option<Box<dyn ReadAt>>,
    /// The number of the next record.
    next: u64,
    /// The offset of the next record, once it is known.
    offset: Option<u64>,
    /// Selects stored records. Marks are always returned.
    filter: LogFilter,
    /// How many records may still be returned.
    left: u64,
    /// Set if damaged lines are marked. Otherwise the log ends before the first damaged line.
    damage: Option<Damage>,
}

/// For readers that mark damaged lines.
struct Damage {
    warned: Warned,
    /// How many damaged lines follow the last record.
    at_end: u64,
}

impl LogStream {
    pub(crate) fn new(volume: Arc<dyn Volume>, key: Key, from: u64) -> Self {
        Self {
            volume,
            key,
            file: None,
            next: from,
            offset: None,
            filter: LogFilter::default(),
            left: u64::MAX,
            damage: None,
        }
    }

    /// Leaves out records that do not match the filter. Marks for unreadable records stay.
    #[must_use]
    pub fn filtered(mut self, filter: LogFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Returns at most this many records.
    #[must_use]
    pub fn limited(mut self, limit: u64) -> Self {
        self.left = limit;
        self
    }

    /// Whether the limit of records is reached.
    pub fn has_given_all(&self) -> bool {
        self.left == 0
    }

    /// Marks unreadable records, in the log of a finished job. While a log grows, its end may look damaged until it is
    /// written again.
    pub(crate) fn marking_damage(&mut self, warned: Warned) {
        self.damage = Some(Damage { warned, at_end: 0 });
    }

    /// A mark in place of missing records at the end. The job ended at `at`. `records` is the number of records, or 0
    /// if the job was not ended by its worker.
    pub fn missing_end(&self, records: u64, at: Timestamp) -> Option<Bytes> {
        let end = match (&self.damage, records) {
            (Some(damage), 0) => self.next.saturating_add(damage.at_end),
            (_, records) => records,
        };
        (self.next < end).then(|| unreadable(self.next, end, at))
    }

    /// The number of the next record.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// How many records the log has: one more than the number of the last whole record.
    pub(crate) async fn count(self) -> Result<u64, ReadError> {
        on_volume(&self.volume.clone(), move |volume| {
            let opened = volume.read_growing(&self.key);
            let Some(file) = opened.map_err(|error| self.failed(error))? else {
                return Ok(0);
            };
            last_number(&*file)
                .map_err(|error| self.failed(error))
                .map(|last| last.map_or(0, |last| last.saturating_add(1)))
        })
        .await
    }

    /// The next whole lines, or `None` if there are no more yet. If the filter leaves out all lines, the piece is
    /// empty.
    pub async fn next(self) -> (Self, Result<Option<Bytes>, ReadError>) {
        let (volume, key, next) = (self.volume.clone(), self.key.clone(), self.next);
        let read = on_volume(&volume, move |_| {
            let mut stream = self;
            let chunk = stream.next_blocking();
            Ok((stream, chunk))
        });
        match read.await {
            Ok((stream, chunk)) => (stream, chunk),
            Err(error) => (Self::new(volume, key, next), Err(error)),
        }
    }

    pub(crate) fn next_blocking(&mut self) -> Result<Option<Bytes>, ReadError> {
        let lines = self.next_lines()?;
        Ok(lines.map(|lines| self.within_limit(lines)))
    }

    fn within_limit(&mut self, mut lines: Bytes) -> Bytes {
        if self.left == u64::MAX {
            return lines;
        }
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX);
        let (mut given, mut length) = (0, 0);
        for end in memchr_iter(b'\n', &lines).take(wanted) {
            given += 1;
            length = end + 1;
        }
        self.left -= given;
        lines.truncate(length);
        lines
    }

    fn next_lines(&mut self) -> Result<Option<Bytes>, ReadError> {
        if self.file.is_none() {
            let opened = self.volume.read_growing(&self.key);
            self.file = opened.map_err(|error| self.failed(error))?;
        }
        let Some(file) = self.file.as_deref() else {
            return Ok(None);
        };
        let mut offset = match self.offset {
            Some(offset) => offset,
            None => find(file, self.next).map_err(|error| self.failed(error))?,
        };
        loop {
            let lines = read_lines(file, offset, LOG_PIECE).map_err(|error| self.failed(error))?;
            let Span { skipped, length } = span(&lines, self.next);
            offset += (skipped + length) as u64;
            self.offset = Some(offset);
            if length > 0 {
                let lines = Bytes::from(lines).slice(skipped..skipped + length);
                self.next += lines.iter().filter(|byte| **byte == b'\n').count() as u64;
                return Ok(Some(self.filter.sift(lines)));
            }
            if skipped == 0 {
                let Some(damage) = self.damage.as_mut().filter(|_| !lines.is_empty()) else {
                    return Ok(None);
                };
                let found = next_readable(file, offset, self.next);
                let failed = |error| failed(&self.key, error);
                let (readable, lines) = found.map_err(failed)?;
                let problem = format!("{lines} lines cannot be read");
                damage.warned.warn(&self.key, offset, problem);
                let Some((at, record)) = readable else {
                    damage.at_end = lines;
                    return Ok(None);
                };
                self.offset = Some(at);
                offset = at;
                if record.n > self.next {
                    let mark = unreadable(self.next, record.n, record.record.at);
                    self.next = record.n;
                    return Ok(Some(mark));
                }
            }
        }
    }

    fn failed(&self, error: Fault) -> ReadError {
        failed(&self.key, error)
    }
}

fn failed(key: &Key, source: Fault) -> ReadError {
    ReadError::file(key, source)
}

/// A mark in place of the records from `from` to `end` (exclusive). It has the number of the last missing record, so a
/// reader continues with the following record.
fn unreadable(from: u64, end: u64, at: Timestamp) -> Bytes {
    let last = end.saturating_sub(1);
    let which = if from == last {
        format!("record {from} of this log")
    } else {
        format!("records {from} to {last} of this log")
    };
    let record = NewLogRecord {
        at,
        step: None,
        stream: Stream::Runner,
        text: format!("{which} cannot be read from its file; `everscand fsck` tells more"),
    };
    // This record can always be written as JSON.
    line(last, &record).unwrap_or_default().into()
}

/// Finds the first record from `offset` on whose number is at least `next`. Returns it with its offset, and how many
/// lines before it are not records. A number that is too high for the bytes before it counts as damage, unless the next
/// record has the following number.
fn next_readable(
    file: &dyn ReadAt,
    offset: u64,
    next: u64,
) -> Result<(Option<(u64, LogRecord)>, u64), Fault> {
    let (mut at, mut passed) = (offset, 0);
    loop {
        let lines = read_lines(file, at, READ_BYTES)?;
        if lines.is_empty() {
            return Ok((None, passed));
        }
        let mut lines = lines.split_inclusive(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            let record = decode(line);
            passed += u64::from(record.is_none());
            if let Some(record) = record.filter(|record| record.n >= next) {
                let fits = record.n - next <= (at - offset) / LEAST_LINE_BYTES;
                let following = lines.peek().and_then(|line| decode(line));
                let goes_on =
                    following.is_some_and(|following| Some(following.n) == record.n.checked_add(1));
                if fits || goes_on {
                    return Ok((Some((at, record)), passed));
                }
            }
            at += line.len() as u64;
        }
    }
}

/// The byte range of the wanted lines in a piece.
struct Span {
    skipped: usize,
    length: usize,
}

/// The lines from record `next` on, up to a gap in the numbers or half a line left by a crash.
fn span(lines: &[u8], mut next: u64) -> Span {
    let mut span = Span {
        skipped: 0,
        length: 0,
    };
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        match decode(line) {
            Some(record) if record.n < next && span.length == 0 => span.skipped += line.len(),
            Some(record) if record.n == next => {
                next += 1;
                span.length += line.len();
            }
            Some(_) | None => break,
        }
    }
    span
}

/// Decodes a record from its line, if the line is whole.
pub(crate) fn decode(line: &[u8]) -> Option<LogRecord> {
    if line.ends_with(b"\n") {
        serde_json::from_slice(line).ok()
    } else {
        None
    }
}

/// The number of the last whole record. Half a record after it, left by a crash, does not count.
pub(super) fn last_number(file: &dyn ReadAt) -> Result<Option<u64>, Fault> {
    let length = file.size()?;
    let mut wanted = READ_BYTES as u64;
    loop {
        let start = length.saturating_sub(wanted);
        let piece = file.read_at(start, usize::try_from(length - start).unwrap_or(usize::MAX))?;
        let whole = piece.split_inclusive(|byte| *byte == b'\n');
        // A piece usually begins within a line, except at the start of the file.
        let whole = whole.skip(usize::from(start > 0));
        if let Some(last) = whole.filter_map(decode).last() {
            return Ok(Some(last.n));
        }
        if start == 0 {
            return Ok(None);
        }
        wanted *= 2;
    }
}

/// An offset at or before record `n`, at the start of a line. Numbers increase through the file, so this is a binary
/// search.
fn find(file: &dyn ReadAt, n: u64) -> Result<u64, Fault> {
    let (mut low, mut high) = (0, file.size()?);
    // The log may grow meanwhile, so the record may be after the end that was read first.
    while n > 0 && high.saturating_sub(low) > READ_BYTES as u64 {
        let middle = low + (high - low) / 2;
        let piece = file.read_at(middle, READ_BYTES)?;
        let start = piece
            .iter()
            .position(|byte| *byte == b'\n')
            .map(|at| at + 1);
        let record = start.and_then(|start| {
            let end = piece[start..].iter().position(|byte| *byte == b'\n')?;
            decode(&piece[start..=start + end]).map(|record| (start, record.n))
        });
        match record {
            Some((start, found)) if found <= n => low = middle + start as u64,
            Some(_) => high = middle,
            None => break,
        }
    }
    Ok(low)
}

/// About `wanted` bytes of whole lines from `offset` on: at least one line, if there is one.
pub(super) fn read_lines(
    file: &dyn ReadAt,
    offset: u64,
    mut wanted: usize,
) -> Result<Vec<u8>, Fault> {
    loop {
        let mut piece = file.read_at(offset, wanted)?;
        let all = piece.len() < wanted;
        match piece.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => {
                piece.truncate(end + 1);
                return Ok(piece);
            }
            None if all => return Ok(Vec::new()),
            None => wanted *= 2,
        }
    }
}
