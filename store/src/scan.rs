//! Reads a whole journal at recovery: which records follow the checkpoint, and whether any acknowledged one is
//! missing. Changes nothing on disk; damage is reported with segment and offset and left as it is.

use std::path::{Path, PathBuf};

use crate::batch::{Epoch, Seq};
use crate::control::StoreId;
use crate::disk::Disk;
use crate::engine::OpenError;
use crate::limits::SEGMENT_FILE_BYTES;
use crate::record::Record;
use crate::segment::{self, Damage, Header};

/// What the journal says.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// The records after the checkpoint, in order and without a gap.
    pub(crate) records: Vec<Record>,
    /// The last sequence number that was given out, at least the checkpoint's.
    pub(crate) last: Seq,
    /// The latest epoch of any segment.
    pub(crate) epoch: Epoch,
    /// The segments, oldest first.
    pub(crate) segments: Vec<PathBuf>,
}

pub(crate) fn scan(
    disk: &Disk,
    folder: &Path,
    store: StoreId,
    checkpoint: Seq,
) -> Result<Scan, OpenError> {
    let mut firsts: Vec<Seq> = disk
        .list(folder)?
        .iter()
        .filter_map(|(name, _)| segment::first_of_file_name(name))
        .collect();
    firsts.sort_unstable();
    let path = |first: Seq| folder.join(segment::file_name(first));
    let mut scan = Scan {
        last: checkpoint,
        segments: firsts.iter().map(|first| path(*first)).collect(),
        ..Scan::default()
    };
    // A segment whose successor begins at the checkpoint or before holds nothing that is needed.
    let needed = firsts
        .partition_point(|first| *first <= checkpoint.next())
        .saturating_sub(1);
    let mut previous: Option<Seq> = None;
    for first in &firsts[needed..] {
        let path = path(*first);
        let expected = previous.unwrap_or(checkpoint).next();
        let continues = if previous.is_some() {
            *first == expected
        } else {
            *first <= expected
        };
        if !continues {
            let what =
                format!("the segment begins with record {first}, and the next one is {expected}");
            return Err(OpenError::Damaged {
                path,
                offset: 0,
                what,
            });
        }
        let (header, records) = read(disk, &path, *first, store)?;
        if header.epoch < scan.epoch {
            let what = format!(
                "its epoch {} is older than the one before it, {}",
                header.epoch, scan.epoch
            );
            return Err(OpenError::Damaged {
                path,
                offset: 0,
                what,
            });
        }
        scan.epoch = header.epoch;
        previous = Some(
            records
                .last()
                .map_or(Seq(first.0.saturating_sub(1)), |record| record.seq),
        );
        scan.records
            .extend(records.into_iter().filter(|record| record.seq > checkpoint));
    }
    if let Some(record) = scan.records.last() {
        scan.last = record.seq;
    }
    Ok(scan)
}

fn read(
    disk: &Disk,
    path: &Path,
    first: Seq,
    store: StoreId,
) -> Result<(Header, Vec<Record>), OpenError> {
    let bytes = disk.read(path, SEGMENT_FILE_BYTES)?;
    let read = || {
        let header = Header::decode(&bytes)?;
        if header.store != store {
            return Err(Damage {
                offset: 0,
                what: format!("the segment belongs to store {}", header.store),
            });
        }
        if header.first != first {
            return Err(Damage {
                offset: 0,
                what: format!("the segment begins with record {}", header.first),
            });
        }
        Ok((header, segment::read(&header, &bytes)?.records))
    };
    read().map_err(|Damage { offset, what }| OpenError::Damaged {
        path: path.to_owned(),
        offset: offset as u64,
        what,
    })
}
