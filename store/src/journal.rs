//! Writes the journal: one write and one sync per batch, into a segment that was allocated and filled in advance.
//! Name and header of a new segment are durable before its first record. After each sync the journal checks that the
//! lock file and the segment still have their names. Otherwise another process could write the store, or the next
//! start would not find the record.

use std::sync::Arc;

use crate::batch::{Batch, Epoch, Seq};
use crate::disk::{DiskError, DiskFile, Identity};
use crate::failpoint;
use crate::lock::Lock;
use crate::pending::Refused;
use crate::record;
use crate::segment::{self, DATA_START, Header};
use crate::segments::Segments;

pub(crate) struct Journal {
    segments: Arc<Segments>,
    epoch: Epoch,
    current: Current,
    /// Last field: dropped after all others.
    lock: Arc<Lock>,
}

/// Bytes reserved for the mark at the end of a segment.
const MARK_BYTES: u64 = record::HEADER_BYTES as u64;

/// The segment being written.
struct Current {
    file: DiskFile,
    identity: Identity,
    salt: u64,
    size: u64,
    end: u64,
    /// The last record written. In an empty segment: the last one before it.
    last: Seq,
}

impl Journal {
    /// Begins a segment for the records after `last`. If there is no spare, creates a file of `fresh` bytes.
    pub(crate) fn start(
        segments: Arc<Segments>,
        lock: Arc<Lock>,
        epoch: Epoch,
        last: Seq,
        fresh: u64,
    ) -> Result<Self, DiskError> {
        let file = segments.take(DATA_START as u64, fresh)?;
        let salt = salt(&segments)?;
        let current = Current::begin(&segments, file, salt, epoch, last)?;
        Ok(Self {
            segments,
            epoch,
            current,
            lock,
        })
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn last(&self) -> Seq {
        self.current.last
    }

    /// The record is durable when this returns.
    pub(crate) fn append(&mut self, seq: Seq, batch: &Batch) -> Result<(), Refused> {
        let mut bytes = record::encode(self.current.salt, seq, batch);
        if self.current.end + bytes.len() as u64 + MARK_BYTES > self.current.size {
            self.rotate(bytes.len() as u64)?;
            bytes = record::encode(self.current.salt, seq, batch);
        }
        self.current.append(seq, &bytes)?;
        Ok(self.verify()?)
    }

    /// Fails when the next start would not find the record, or when another process may have the lock. Called after
    /// the sync: a process that takes the lock later reads the record.
    pub(crate) fn verify(&self) -> Result<(), DiskError> {
        let disk = &self.segments.disk;
        self.lock.verify(disk)?;
        disk.verify(self.current.file.path(), self.current.identity)
    }

    /// Retires all segments, including the current one. The tree must hold all records durably.
    pub(crate) fn finish(self) -> Result<(), DiskError> {
        let path = self.current.file.path().to_owned();
        self.segments.seal(path, self.last());
        self.segments.retire(self.last())
    }

    fn rotate(&mut self, record: u64) -> Result<(), Refused> {
        let needed = DATA_START as u64 + record + MARK_BYTES;
        let no_room = |error: DiskError| match error.is_full() {
            true => Refused::Full,
            false => error.into(),
        };
        let salt = salt(&self.segments).map_err(no_room)?;
        let next = self.segments.take(needed, self.segments.size());
        let next = next.map_err(no_room)?;
        let last = self.current.last;
        let next = Current::begin(&self.segments, next, salt, self.epoch, last)?;
        // If the current segment is empty, the next one has the same first record and has just replaced it.
        if !self.current.is_empty() {
            self.current.mark(self.epoch)?;
            let path = self.current.file.path().to_owned();
            self.segments.seal(path, last);
        }
        self.current = next;
        Ok(())
    }
}

/// Call this before a segment is changed: the source of randomness is also a file, and may fail.
fn salt(segments: &Segments) -> Result<u64, DiskError> {
    Ok(u64::from_le_bytes(segments.disk.random()?))
}

impl Current {
    fn begin(
        segments: &Segments,
        mut file: DiskFile,
        salt: u64,
        epoch: Epoch,
        last: Seq,
    ) -> Result<Self, DiskError> {
        failpoint::reach("segment-taken");
        let first = last.next();
        let size = file.len()?;
        let header = Header {
            store: segments.store,
            epoch,
            first,
            salt,
            length: size,
        };
        file.write_at(&header.encode(), 0)?;
        file.sync_data()?;
        failpoint::reach("segment-headed");
        file.rename(&segments.folder().join(segment::file_name(first)))?;
        // While a hold exists, an earlier opening may have left an empty segment of this name.
        segments.renamed_over(file.path());
        failpoint::reach("segment-named");
        segments.disk.sync_folder(segments.folder())?;
        failpoint::reach("segment-begun");
        Ok(Self {
            identity: file.inspect()?.identity,
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

    /// Marks a full segment. The next segment already has its name, so a start notices if it is missing.
    fn mark(&self, epoch: Epoch) -> Result<(), DiskError> {
        let mark = segment::mark(self.salt, epoch, self.last.next());
        self.file.write_at(&mark, self.end)?;
        self.file.sync_data()
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
