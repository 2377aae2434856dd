//! One job's log records on disk, until the daemon has made them durable. Records have numbers. They are appended at the end, can
//! be read from any number, and are removed from the front, one file at a time.
//!
//! A record is encoded once, as the JSON that is sent, and takes one line. The files are removed with the job or the runner: a
//! restarted runner holds no job, so nothing is synced and leftovers are removed. A job without output makes no file. A failed
//! append leaves earlier records intact.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use memchr::{memchr, memrchr};
use wire::RecordHead;

use crate::limits;
use crate::workdir;

/// The longest record: a text of control characters only, which take six bytes each, plus the other members.
const RECORD_BYTES: usize = 6 * limits::LINE_BYTES + 256;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SpoolError {
    #[error("cannot write to the log spool {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read the log spool {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("log record {number} is not in the spool")]
    Forgotten { number: u64 },
}

/// Records as the spool keeps them, one on each line.
#[derive(Debug, Default)]
pub(crate) struct Records {
    lines: Vec<u8>,
    count: u64,
}

impl Records {
    /// Adds a record with a text of at most [`limits::LINE_BYTES`].
    pub(crate) fn add(&mut self, head: &RecordHead, text: &str) {
        head.write(text, &mut self.lines);
        self.lines.push(b'\n');
        self.count += 1;
    }

    fn clear(&mut self) {
        self.lines.clear();
        self.count = 0;
    }
}

#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) json: Bytes,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

/// The records of one job that are not durable yet.
#[derive(Debug)]
pub(crate) struct Spool {
    folder: PathBuf,
    segment_bytes: u64,
    segments: VecDeque<Segment>,
    next: u64,
    cursor: Cursor,
    records: Records,
}

/// One file: the records from `first` up to the next segment.
#[derive(Debug)]
struct Segment {
    path: PathBuf,
    file: File,
    first: u64,
    bytes: u64,
}

/// The reader's position, so that sequential reads need no search.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    number: u64,
    segment_first: u64,
    offset: u64,
}

impl Spool {
    /// An empty spool. Its first record will have the number `next`, and makes the folder.
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
            records: Records::default(),
        }
    }

    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Appends the records that `add` adds: all of them, or none of them. Returns their size in bytes.
    pub(crate) fn append(&mut self, add: impl FnOnce(&mut Records)) -> Result<u64, SpoolError> {
        let mut records = std::mem::take(&mut self.records);
        records.clear();
        add(&mut records);
        let written = self.write(&records);
        self.records = records;
        written
    }

    fn write(&mut self, records: &Records) -> Result<u64, SpoolError> {
        if records.count == 0 {
            return Ok(0);
        }
        let segment = self.writable_segment()?;
        segment
            .file
            .write_all_at(&records.lines, segment.bytes)
            .map_err(|source| SpoolError::Write {
                path: segment.path.clone(),
                source,
            })?;
        let bytes = records.lines.len() as u64;
        segment.bytes += bytes;
        self.next += records.count;
        Ok(bytes)
    }

    /// Reads records from `from` on, as many as fit into a request of `max_bytes`, but at least one if there is one.
    pub(crate) fn read(&mut self, from: u64, max_bytes: usize) -> Result<Batch, SpoolError> {
        let mut cursor = self.seek(from)?;
        let mut json = vec![b'['];
        let (mut records, mut bytes) = (0, 0);
        while cursor.number < self.next {
            let begin = json.len();
            self.read_lines(&mut cursor, max_bytes.saturating_sub(begin), &mut json)?;
            if json.len() == begin {
                break;
            }
            let lines = &mut json[begin..];
            let length = lines.len();
            let (mut end, mut count) = (0, 0);
            while let Some(after) = memchr(b'\n', &lines[end..]) {
                end += after;
                lines[end] = b',';
                count += 1;
            }
            records += count;
            bytes += length as u64;
            cursor.advance(count, length);
            self.cursor = cursor;
        }
        // Replaces the last comma.
        json.truncate(json.len().saturating_sub(1).max(1));
        json.push(b']');
        Ok(Batch {
            json: json.into(),
            records,
            bytes,
        })
    }

    /// Drops the records from `from` on. Returns their number. After an error nothing is dropped.
    pub(crate) fn cut(&mut self, from: u64) -> Result<u64, SpoolError> {
        let records = self.next.saturating_sub(from);
        if records == 0 {
            return Ok(0);
        }
        let cursor = self.seek(from)?;
        while let Some(last) = self.segments.back_mut() {
            if last.first == cursor.segment_first {
                last.bytes = cursor.offset;
                break;
            }
            remove_file(&last.path);
            self.segments.pop_back();
        }
        self.cursor = cursor;
        self.next = from;
        Ok(records)
    }

    /// Removes the files in which every record is below `durable`.
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

    /// The position of a record. Searches from the start of its file, unless the reader is already there.
    fn seek(&self, number: u64) -> Result<Cursor, SpoolError> {
        // The file of the reader's position may have been removed.
        let is_there = self.place_of(self.cursor.segment_first).is_some();
        if number == self.next || number == self.cursor.number && is_there {
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
        let mut block = Vec::new();
        while cursor.number < number {
            block.clear();
            self.read_lines(&mut cursor, RECORD_BYTES, &mut block)?;
            for line in block.split_inclusive(|byte| *byte == b'\n') {
                if cursor.number < number {
                    cursor.advance(1, line.len());
                }
            }
        }
        Ok(cursor)
    }

    fn place_of(&self, first: u64) -> Option<usize> {
        let place = self
            .segments
            .binary_search_by_key(&first, |segment| segment.first);
        place.ok()
    }

    /// Adds whole lines to `out`, beginning at the cursor: at most `limit` bytes, but at least one line if `out` is empty
    /// except for its opening bracket. At the end of its file the cursor moves to the next.
    fn read_lines(
        &self,
        cursor: &mut Cursor,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), SpoolError> {
        let forgotten = SpoolError::Forgotten {
            number: cursor.number,
        };
        let Some(place) = self.place_of(cursor.segment_first) else {
            return Err(forgotten);
        };
        let mut segment = &self.segments[place];
        if segment.bytes <= cursor.offset {
            segment = self.segments.get(place + 1).ok_or(forgotten)?;
            cursor.segment_first = segment.first;
            cursor.offset = 0;
        }
        let begin = out.len();
        let is_first = begin <= 1;
        let left = usize::try_from(segment.bytes - cursor.offset).unwrap_or(usize::MAX);
        let length = if is_first {
            limit.max(RECORD_BYTES)
        } else {
            limit
        };
        out.resize(begin + length.min(left), 0);
        let read = segment.file.read_exact_at(&mut out[begin..], cursor.offset);
        let failed = |source| SpoolError::Read {
            path: segment.path.clone(),
            source,
        };
        read.map_err(failed)?;
        let within = &out[begin..begin.saturating_add(limit).min(out.len())];
        let length = match memrchr(b'\n', within) {
            Some(end) => end + 1,
            None if is_first => match memchr(b'\n', &out[begin..]) {
                Some(end) => end + 1,
                None => return Err(failed(damaged())),
            },
            None => 0,
        };
        out.truncate(begin + length);
        Ok(())
    }
}

impl Cursor {
    fn advance(&mut self, records: u64, bytes: usize) {
        self.number += records;
        self.offset += bytes as u64;
    }
}

fn remove_file(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "cannot remove a spool file");
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a log record is damaged")
}

pub(crate) fn folder_of(runner_folder: &Path, job: uuid::Uuid) -> PathBuf {
    runner_folder.join("spool").join(job.to_string())
}

#[cfg(test)]
mod tests;
