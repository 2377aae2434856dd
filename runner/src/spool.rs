//! One job's log records on disk until the daemon has made them durable. Records are numbered, appended, read again from
//! any number that was not forgotten, and forgotten from the front, a file at a time.
//!
//! The files outlive neither the job nor the runner: a runner that starts anew holds no job, so nothing is synced and
//! leftovers are removed. A job that writes nothing makes no file. A failed append leaves the records before it intact.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use chrono::DateTime;
use wire::{NewLogRecord, Stream};

use crate::limits;
use crate::workdir;

/// Length of the text, time in microseconds, step, stream.
const HEADER_BYTES: usize = 4 + 8 + 4 + 1;

/// Stands for "no step" in a header.
const NO_STEP: u32 = u32::MAX;

/// Read from a file at once: several records, and more than the longest.
const BLOCK_BYTES: usize = 4 * limits::LINE_BYTES;

/// What a record takes in a request beside its text, generously.
const JSON_FRAME_BYTES: usize = 112;

/// A spool that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpoolError {
    /// The disk refused a record.
    #[error("cannot write to the log spool {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The disk refused to give a record back.
    #[error("cannot read the log spool {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A record that was removed because the daemon had said it was durable, or one that never was.
    #[error("log record {number} is not in the spool any more")]
    Forgotten {
        /// The record.
        number: u64,
    },
}

/// The records of one job that are not durable yet.
#[derive(Debug)]
pub(crate) struct Spool {
    folder: PathBuf,
    segment_bytes: u64,
    segments: VecDeque<Segment>,
    next: u64,
    cursor: Cursor,
    encoded: Vec<u8>,
}

/// One file: the records from `first` to the next segment's.
#[derive(Debug)]
struct Segment {
    path: PathBuf,
    file: File,
    first: u64,
    bytes: u64,
}

/// Where the reader stands, so that reading on does not search.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    number: u64,
    segment_first: u64,
    offset: u64,
}

impl Spool {
    /// An empty spool whose first record will have the number `next`. Its folder is made with the first record.
    pub(crate) fn new(folder: PathBuf, next: u64) -> Self {
        Self::with_segments_of(folder, next, limits::SPOOL_SEGMENT_BYTES)
    }

    fn with_segments_of(folder: PathBuf, next: u64, segment_bytes: u64) -> Self {
        Self {
            folder,
            segment_bytes,
            segments: VecDeque::new(),
            next,
            cursor: Cursor {
                number: next,
                segment_first: next,
                offset: 0,
            },
            encoded: Vec::new(),
        }
    }

    /// The number of the next record.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Bytes on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Appends records, whose texts are at most [`limits::LINE_BYTES`] long; all of them or none.
    ///
    /// # Errors
    /// [`SpoolError::Write`].
    pub(crate) fn append(&mut self, records: &[NewLogRecord]) -> Result<(), SpoolError> {
        if records.is_empty() {
            return Ok(());
        }
        let mut encoded = std::mem::take(&mut self.encoded);
        encoded.clear();
        for record in records {
            encode(record, &mut encoded);
        }
        let segment = self.writable_segment()?;
        let written = segment
            .file
            .write_all_at(&encoded, segment.bytes)
            .map_err(|source| SpoolError::Write {
                path: segment.path.clone(),
                source,
            });
        if written.is_ok() {
            segment.bytes += encoded.len() as u64;
            self.next += records.len() as u64;
        }
        self.encoded = encoded;
        written
    }

    /// Reads records from `from` on, as many as fit into a request of `max_bytes`, but at least one when there is one.
    ///
    /// # Errors
    /// [`SpoolError::Read`] and, for a number outside the spool, [`SpoolError::Forgotten`].
    pub(crate) fn read(
        &mut self,
        from: u64,
        max_bytes: usize,
    ) -> Result<Vec<NewLogRecord>, SpoolError> {
        let mut cursor = self.seek(from)?;
        let mut records = Vec::new();
        let mut bytes = 0;
        'blocks: while cursor.number < self.next {
            let block = self.block_at(&mut cursor)?;
            let mut rest = &*block.bytes;
            while let Some((record, length)) = decode(rest).map_err(|source| block.error(source))? {
                bytes += JSON_FRAME_BYTES + json_bytes(&record.text);
                if bytes > max_bytes && !records.is_empty() {
                    break 'blocks;
                }
                records.push(record);
                rest = &rest[length..];
                cursor.advance(length);
            }
        }
        self.cursor = cursor;
        Ok(records)
    }

    /// Drops the records from `from` on, and tells how many they were and the bytes of their text.
    ///
    /// # Errors
    /// As for [`Self::read`]; none is dropped then.
    pub(crate) fn cut(&mut self, from: u64) -> Result<(u64, u64), SpoolError> {
        let records = self.next.saturating_sub(from);
        if records == 0 {
            return Ok((0, 0));
        }
        let cursor = self.seek(from)?;
        let mut bytes = 0;
        while let Some(last) = self.segments.back_mut() {
            if last.first == cursor.segment_first {
                bytes += last.bytes - cursor.offset;
                last.bytes = cursor.offset;
                break;
            }
            bytes += last.bytes;
            remove_file(&last.path);
            self.segments.pop_back();
        }
        self.cursor = cursor;
        self.next = from;
        Ok((records, bytes - records * HEADER_BYTES as u64))
    }

    /// Removes the files all of whose records are below `durable`.
    pub(crate) fn forget_below(&mut self, durable: u64) {
        while let Some(oldest) = self.segments.front() {
            let end = self
                .segments
                .get(1)
                .map_or(self.next, |segment| segment.first);
            let is_full = oldest.bytes >= self.segment_bytes;
            if end > durable || !is_full {
                return;
            }
            remove_file(&oldest.path);
            self.segments.pop_front();
        }
    }

    /// Removes everything.
    pub(crate) fn remove(&mut self) {
        let was_made = !self.segments.is_empty() || self.folder.exists();
        self.segments.clear();
        if was_made && let Err(error) = std::fs::remove_dir_all(&self.folder) {
            tracing::warn!(path = %self.folder.display(), %error, "cannot remove a log spool");
        }
    }

    fn writable_segment(&mut self) -> Result<&mut Segment, SpoolError> {
        let has_room = self
            .segments
            .back()
            .is_some_and(|segment| segment.bytes < self.segment_bytes);
        if !has_room {
            let path = self.folder.join(format!("{:020}", self.next));
            let made = workdir::make_private_folder(&self.folder)
                .and_then(|()| workdir::make_private_file(&path));
            let file = made.map_err(|source| SpoolError::Write {
                path: path.clone(),
                source,
            })?;
            self.segments.push_back(Segment {
                path,
                file,
                first: self.next,
                bytes: 0,
            });
        }
        match self.segments.back_mut() {
            Some(segment) => Ok(segment),
            None => Err(SpoolError::Forgotten { number: self.next }),
        }
    }

    /// The place of a record, found from the start of its file unless the reader stands there already.
    fn seek(&self, number: u64) -> Result<Cursor, SpoolError> {
        if number == self.cursor.number || number == self.next {
            return Ok(Cursor {
                number,
                ..self.cursor
            });
        }
        let holder = self
            .segments
            .iter()
            .rfind(|segment| segment.first <= number)
            .filter(|_| number < self.next)
            .ok_or(SpoolError::Forgotten { number })?;
        let mut cursor = Cursor {
            number: holder.first,
            segment_first: holder.first,
            offset: 0,
        };
        while cursor.number < number {
            let block = self.block_at(&mut cursor)?;
            let mut rest = &*block.bytes;
            while cursor.number < number
                && let Some(length) = record_length(rest)
            {
                rest = &rest[length..];
                cursor.advance(length);
            }
        }
        Ok(cursor)
    }

    /// Reads a block that begins with the cursor's record and holds it whole. Moves the cursor into the next file when
    /// its own is read to the end.
    fn block_at(&self, cursor: &mut Cursor) -> Result<Block<'_>, SpoolError> {
        let forgotten = SpoolError::Forgotten {
            number: cursor.number,
        };
        let Ok(place) = self
            .segments
            .binary_search_by_key(&cursor.segment_first, |segment| segment.first)
        else {
            return Err(forgotten);
        };
        let mut segment = &self.segments[place];
        if segment.bytes <= cursor.offset {
            segment = self.segments.get(place + 1).ok_or(forgotten)?;
            cursor.segment_first = segment.first;
            cursor.offset = 0;
        }
        let left = usize::try_from(segment.bytes - cursor.offset).unwrap_or(usize::MAX);
        let mut block = Block {
            path: &segment.path,
            bytes: vec![0; left.min(BLOCK_BYTES)],
        };
        match segment.file.read_exact_at(&mut block.bytes, cursor.offset) {
            Ok(()) if record_length(&block.bytes).is_some() => Ok(block),
            Ok(()) => Err(block.error(damaged())),
            Err(source) => Err(block.error(source)),
        }
    }
}

impl Cursor {
    fn advance(&mut self, length: usize) {
        self.number += 1;
        self.offset += length as u64;
    }
}

/// A piece of a segment.
struct Block<'a> {
    path: &'a Path,
    bytes: Vec<u8>,
}

impl Block<'_> {
    fn error(&self, source: io::Error) -> SpoolError {
        SpoolError::Read {
            path: self.path.to_owned(),
            source,
        }
    }
}

fn remove_file(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "cannot remove a spool file");
    }
}

fn encode(record: &NewLogRecord, out: &mut Vec<u8>) {
    let length = u32::try_from(record.text.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&record.at.timestamp_micros().to_le_bytes());
    out.extend_from_slice(&record.step.unwrap_or(NO_STEP).to_le_bytes());
    out.push(match record.stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
        Stream::Runner => 2,
    });
    out.extend_from_slice(&record.text.as_bytes()[..length as usize]);
}

/// Reads the first record and its length, unless it is cut off.
fn decode(bytes: &[u8]) -> io::Result<Option<(NewLogRecord, usize)>> {
    let Some(length) = record_length(bytes) else {
        return Ok(None);
    };
    let Some((header, text)) = bytes[..length].split_first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let [
        _,
        _,
        _,
        _,
        a0,
        a1,
        a2,
        a3,
        a4,
        a5,
        a6,
        a7,
        s0,
        s1,
        s2,
        s3,
        stream,
    ] = *header;
    let at = i64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]);
    let step = u32::from_le_bytes([s0, s1, s2, s3]);
    let record = NewLogRecord {
        at: DateTime::from_timestamp_micros(at).ok_or_else(damaged)?,
        step: (step != NO_STEP).then_some(step),
        stream: match stream {
            0 => Stream::Stdout,
            1 => Stream::Stderr,
            2 => Stream::Runner,
            _ => return Err(damaged()),
        },
        text: str::from_utf8(text).map_err(|_| damaged())?.to_owned(),
    };
    Ok(Some((record, length)))
}

/// The length of the first record, when it is there as a whole.
fn record_length(bytes: &[u8]) -> Option<usize> {
    let (length, _) = bytes.split_first_chunk()?;
    let length = HEADER_BYTES + u32::from_le_bytes(*length) as usize;
    (length <= bytes.len()).then_some(length)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a log record is damaged")
}

/// The length of a text inside a JSON string.
fn json_bytes(text: &str) -> usize {
    let escapes: usize = text
        .bytes()
        .map(|byte| match byte {
            b'"' | b'\\' => 1,
            0..=0x1f => 5,
            _ => 0,
        })
        .sum();
    text.len() + escapes
}

/// Where a job's spool lies below the runner's folder.
pub(crate) fn folder_of(runner_folder: &Path, job: uuid::Uuid) -> PathBuf {
    runner_folder.join("spool").join(job.to_string())
}

#[cfg(test)]
mod tests;
