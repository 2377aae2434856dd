//! Reads the journal: the records after the checkpoint, and whether an acknowledged record is missing. Writes
//! nothing. Damage is reported with segment and offset.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::batch::{Epoch, Seq};
use crate::control::{Checkpoint, StoreId};
use crate::disk::{Action, Disk, DiskError};
use crate::limits::{COPY_BYTES, GIVEN_BACK_BYTES, SEGMENT_FILE_BYTES};
use crate::record::{HEADER_BYTES, Record};
use crate::segment::{self, Damage, Header};

#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// The last sequence number used, at least that of the checkpoint.
    pub(crate) last: Seq,
    pub(crate) epoch: Epoch,
    pub(crate) segments: Vec<PathBuf>,
    /// The damage that ends the records, if any.
    pub(crate) broken: Option<(PathBuf, Damage)>,
    /// Where the next record goes.
    pub(crate) end: End,
}

/// The end of the last segment, and the bytes that follow. Changes with every commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) offset: u64,
    behind: Vec<u8>,
}

/// Reads the journal up to the first damage, and passes the records after the checkpoint to `take`, in order and
/// without a gap. Their contents keep the segment in memory. With `min_segment_epoch` no segment may be short or
/// missing, and the last one must have at least that epoch.
pub(crate) fn read(
    disk: &Disk,
    folder: &Path,
    store: StoreId,
    checkpoint: Seq,
    min_segment_epoch: Option<Epoch>,
    take: &mut dyn FnMut(Record),
) -> Result<Scan, DiskError> {
    let firsts = firsts(disk, folder)?;
    let path = |first: Seq| folder.join(segment::file_name(first));
    let mut scan = Scan {
        last: checkpoint,
        segments: firsts.iter().map(|first| path(*first)).collect(),
        ..Scan::default()
    };
    // A segment is not needed if the next one begins at the checkpoint or before.
    let needed = firsts
        .partition_point(|first| *first <= checkpoint.next())
        .saturating_sub(1);
    let mut previous: Option<Seq> = None;
    let mut is_followed = false;
    let mut shortened = None;
    for first in &firsts[needed..] {
        let path = path(*first);
        let expected = previous.unwrap_or(checkpoint).next();
        let bytes = read_segment(disk, &path)?;
        let mut take_needed = |record: Record| {
            if record.seq > checkpoint {
                scan.last = record.seq;
                take(record);
            }
        };
        let found = follows(*first, expected, previous.is_some())
            .and_then(|()| header_of(&bytes, *first, store, scan.epoch))
            .map(|header| (header, segment::read(&header, &bytes, &mut take_needed)));
        let (header, contents) = match found {
            Ok(found) => found,
            Err(damage) => {
                scan.broken = Some((path, damage));
                break;
            }
        };
        scan.epoch = header.epoch;
        previous = Some(Seq(contents.next.0.saturating_sub(1)));
        scan.end = End::of(&bytes, contents.end);
        is_followed = contents.is_followed;
        if min_segment_epoch.is_some()
            && let Some(damage) = header.shortened(bytes.len())
        {
            // The records may still be complete, if only unused space is missing.
            shortened.get_or_insert((path.clone(), damage));
        }
        if let Some(damage) = contents.damage {
            scan.broken = Some((path, damage));
            break;
        }
    }
    scan.broken = shortened.or(scan.broken);
    if let Some(least) = min_segment_epoch.filter(|_| scan.broken.is_none()) {
        let next = previous.map(Seq::next).filter(|_| is_followed);
        let is_older = scan.segments.is_empty() || scan.epoch < least;
        scan.broken = match next {
            Some(next) => {
                let what = "it is missing, although the mark of the previous segment announces it";
                Some((path(next), Damage::new(0, what)))
            }
            None if is_older => {
                let what = "the segment that was being written is missing";
                Some((folder.to_owned(), Damage::new(0, what)))
            }
            None => None,
        };
    }
    if scan.broken.is_some() {
        scan.end = end_at(disk, &scan.segments, 0)?;
    }
    Ok(scan)
}

/// Reads a segment into memory. The allocation is large enough for the allocator to return it to the system.
fn read_segment(disk: &Disk, path: &Path) -> Result<Bytes, DiskError> {
    let file = disk.open_to_read(path)?;
    let length = file.len()?;
    if length > SEGMENT_FILE_BYTES {
        return Err(DiskError::new(
            Action::Read,
            path,
            io::ErrorKind::FileTooLarge.into(),
        ));
    }
    // At most `SEGMENT_FILE_BYTES`, so it fits.
    let mut bytes = Vec::with_capacity(GIVEN_BACK_BYTES.max(length as usize));
    file.each_piece(COPY_BYTES, |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(bytes.into())
}

/// The bytes at `offset` of the last segment.
pub(crate) fn end_at(disk: &Disk, segments: &[PathBuf], offset: u64) -> Result<End, DiskError> {
    let behind = match segments.last() {
        Some(path) => disk.open_to_read(path)?.read_at(offset, HEADER_BYTES)?,
        None => Vec::new(),
    };
    Ok(End { offset, behind })
}

/// The paths of the segments, oldest first.
pub(crate) fn segments(disk: &Disk, folder: &Path) -> Result<Vec<PathBuf>, DiskError> {
    let firsts = firsts(disk, folder)?.into_iter();
    Ok(firsts
        .map(|first| folder.join(segment::file_name(first)))
        .collect())
}

fn firsts(disk: &Disk, folder: &Path) -> Result<Vec<Seq>, DiskError> {
    let names = match disk.list(folder) {
        Err(error) if error.is_missing() => Vec::new(),
        names => names?,
    };
    let mut firsts: Vec<Seq> = names
        .iter()
        .filter_map(|(name, _)| segment::first_of_file_name(name))
        .collect();
    firsts.sort_unstable();
    Ok(firsts)
}

/// The position just before the first record of the journal, for use without a checkpoint.
pub(crate) fn beginning(disk: &Disk, folder: &Path) -> Result<Checkpoint, DiskError> {
    let first = firsts(disk, folder)?.first().copied();
    Ok(Checkpoint {
        seq: Seq(first.map_or(0, |first| first.0.saturating_sub(1))),
        epoch: Epoch(0),
    })
}

/// The highest recognisable record number behind the damage.
pub(crate) fn last_cut_off(
    disk: &Disk,
    scan: &Scan,
    store: StoreId,
) -> Result<Option<Seq>, DiskError> {
    let Some((broken, _)) = &scan.broken else {
        return Ok(None);
    };
    let mut last = None;
    for path in scan.segments.iter().filter(|path| *path >= broken) {
        let bytes = read_segment(disk, path)?;
        let Ok(header) = Header::decode(&bytes) else {
            continue;
        };
        if header.store != store {
            continue;
        }
        let contents = segment::read(&header, &bytes, &mut drop);
        let behind = segment::last_cut_off(&header, &bytes, &contents);
        // Even without records, the header shows that everything before its first record had been written.
        let before = contents.next.0.checked_sub(1).map(Seq);
        last = last.max(behind).max(before);
    }
    Ok(last.filter(|last| *last > scan.last))
}

impl End {
    fn of(bytes: &[u8], offset: usize) -> Self {
        let behind = bytes.get(offset..).unwrap_or_default();
        Self {
            offset: offset as u64,
            behind: behind[..behind.len().min(HEADER_BYTES)].to_vec(),
        }
    }
}

/// Checks that a segment which begins with `first` may follow if the record `expected` is next.
fn follows(first: Seq, expected: Seq, has_previous: bool) -> Result<(), Damage> {
    let continues = if has_previous {
        first == expected
    } else {
        first <= expected
    };
    if continues {
        return Ok(());
    }
    let what = format!("the segment begins with record {first} instead of {expected}");
    Err(Damage::new(0, what))
}

/// Reads the header and checks that it belongs to this place.
fn header_of(bytes: &[u8], first: Seq, store: StoreId, epoch: Epoch) -> Result<Header, Damage> {
    let header = Header::decode(bytes)?;
    let problem = if header.store != store {
        format!("the segment belongs to store {}", header.store)
    } else if header.first != first {
        format!("the segment begins with record {}", header.first)
    } else if header.epoch < epoch {
        format!(
            "its epoch {} is older than the epoch {epoch} of the previous segment",
            header.epoch
        )
    } else {
        return Ok(header);
    };
    Err(Damage::new(0, problem))
}
