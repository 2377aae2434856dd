//! The writing end of the journal: one write and one sync per batch, into a segment that was reserved and filled
//! before. When a segment is full the next one is durable, name and header, before its first record. Says nothing
//! about the tree.

use std::sync::Arc;

use crate::batch::{Batch, Epoch, Seq};
use crate::disk::{DiskError, DiskFile};
use crate::failpoint;
use crate::record;
use crate::segment::{self, DATA_START, Header};
use crate::segments::Segments;

pub(crate) struct Journal {
    segments: Arc<Segments>,
    epoch: Epoch,
    current: Current,
}

/// The segment being written.
struct Current {
    file: DiskFile,
    salt: u64,
    size: u64,
    end: u64,
    /// The last record written, or the one before the segment.
    last: Seq,
}

#[derive(Debug)]
pub(crate) enum JournalError {
    /// No room for another segment; nothing was written.
    Full,
    /// What the disk holds is unknown.
    Broken(DiskError),
}

impl Journal {
    /// Begins a segment for the records after `last`. Without a spare a new file of `fresh` bytes is made.
    pub(crate) fn start(
        segments: Arc<Segments>,
        epoch: Epoch,
        last: Seq,
        fresh: u64,
    ) -> Result<Self, DiskError> {
        let file = segments.take(DATA_START as u64, fresh)?;
        let current = Current::begin(&segments, file, epoch, last)?;
        Ok(Self {
            segments,
            epoch,
            current,
        })
    }

    /// Writes one record; it is durable when this returns.
    pub(crate) fn append(&mut self, seq: Seq, batch: &Batch) -> Result<(), JournalError> {
        let mut bytes = record::encode(self.current.salt, seq, batch);
        if self.current.end + bytes.len() as u64 > self.current.size {
            self.rotate(bytes.len() as u64)?;
            bytes = record::encode(self.current.salt, seq, batch);
        }
        self.current
            .append(seq, &bytes)
            .map_err(JournalError::Broken)
    }

    /// Ends the segment being written; it is retired like any other.
    pub(crate) fn finish(self) {
        self.segments
            .seal(self.current.file.path().to_owned(), self.current.last);
    }

    fn rotate(&mut self, record: u64) -> Result<(), JournalError> {
        let needed = DATA_START as u64 + record;
        let next = self
            .segments
            .take(needed, self.segments.size())
            .map_err(|error| {
                if error.is_full() {
                    JournalError::Full
                } else {
                    JournalError::Broken(error)
                }
            })?;
        let last = self.current.last;
        let next =
            Current::begin(&self.segments, next, self.epoch, last).map_err(JournalError::Broken)?;
        let full = std::mem::replace(&mut self.current, next);
        // A segment without records has just lost its name to the next one, which begins with the same record.
        if !full.is_empty() {
            self.segments.seal(full.file.path().to_owned(), last);
        }
        Ok(())
    }
}

impl Current {
    fn begin(
        segments: &Segments,
        mut file: DiskFile,
        epoch: Epoch,
        last: Seq,
    ) -> Result<Self, DiskError> {
        failpoint::reach("segment-taken");
        let salt = u64::from_le_bytes(segments.disk.random()?);
        let first = last.next();
        let header = Header {
            store: segments.store,
            epoch,
            first,
            salt,
        };
        file.write_at(&header.encode(), 0)?;
        file.sync_data()?;
        failpoint::reach("segment-headed");
        file.rename(&segments.folder().join(segment::file_name(first)))?;
        // With a hold there may be an empty one of an earlier opening.
        segments.renamed_over(file.path());
        failpoint::reach("segment-named");
        segments.disk.sync_folder(segments.folder())?;
        failpoint::reach("segment-begun");
        let size = file.len()?;
        Ok(Self {
            file,
            salt,
            size,
            end: DATA_START as u64,
            last,
        })
    }

    fn is_empty(&self) -> bool {
        self.end == DATA_START as u64
    }

    fn append(&mut self, seq: Seq, bytes: &[u8]) -> Result<(), DiskError> {
        self.file.write_at(bytes, self.end)?;
        failpoint::reach("journal-written");
        if failpoint::is_journal_synced() {
            self.file.sync_data()?;
        }
        failpoint::reach("journal-synced");
        self.end += bytes.len() as u64;
        self.last = seq;
        Ok(())
    }
}
