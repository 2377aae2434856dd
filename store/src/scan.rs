//! Reads a whole journal at recovery: which records follow the checkpoint, and whether any acknowledged one is
//! missing. Changes nothing on disk; damage is reported with segment and offset and left as it is.

use std::path::{Path, PathBuf};

use crate::batch::{Epoch, Seq};
use crate::control::StoreId;
use crate::disk::Disk;
use crate::engine::OpenError;
use crate::limits::SEGMENT_FILE_BYTES;
use crate::record::Record;
use crate::segment::{self, Contents, Damage, Header};

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

/// Everything after the checkpoint; where something is missing or unreadable it is an error.
pub(crate) fn scan(
    disk: &Disk,
    folder: &Path,
    store: StoreId,
    checkpoint: Seq,
) -> Result<Scan, OpenError> {
    let (scan, damage) = read_journal(disk, folder, store, checkpoint)?;
    damage.map_or(Ok(scan), Err)
}

/// What can be read after the checkpoint, up to the first record that is missing or unreadable. For a journal that is
/// written while it is read or copied: there the end may look like damage, since a reader can pass a place before it
/// is written and come to the next one after that was.
pub(crate) fn readable(
    disk: &Disk,
    folder: &Path,
    store: StoreId,
    checkpoint: Seq,
) -> Result<Scan, OpenError> {
    let (scan, damage) = read_journal(disk, folder, store, checkpoint)?;
    if let Some(damage) = damage {
        tracing::debug!(%damage, last = %scan.last, "the journal is read up to its first gap");
    }
    Ok(scan)
}

/// The records up to the first problem, and that.
fn read_journal(
    disk: &Disk,
    folder: &Path,
    store: StoreId,
    checkpoint: Seq,
) -> Result<(Scan, Option<OpenError>), OpenError> {
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
    let mut damage = None;
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
            damage = Some(damaged(path, Damage { offset: 0, what }));
            break;
        }
        let bytes = disk.read(&path, SEGMENT_FILE_BYTES)?;
        let header = match header(&bytes, *first, store) {
            Ok(header) => header,
            Err(problem) => {
                damage = Some(damaged(path, problem));
                break;
            }
        };
        if header.epoch < scan.epoch {
            let what = format!(
                "its epoch {} is older than the one before it, {}",
                header.epoch, scan.epoch
            );
            damage = Some(damaged(path, Damage { offset: 0, what }));
            break;
        }
        let Contents {
            records,
            damage: problem,
            ..
        } = segment::read(&header, &bytes);
        scan.epoch = header.epoch;
        previous = Some(
            records
                .last()
                .map_or(Seq(first.0.saturating_sub(1)), |record| record.seq),
        );
        scan.records
            .extend(records.into_iter().filter(|record| record.seq > checkpoint));
        if let Some(problem) = problem {
            damage = Some(damaged(path, problem));
            break;
        }
    }
    if let Some(record) = scan.records.last() {
        scan.last = record.seq;
    }
    Ok((scan, damage))
}

fn header(bytes: &[u8], first: Seq, store: StoreId) -> Result<Header, Damage> {
    let header = Header::decode(bytes)?;
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
    Ok(header)
}

fn damaged(path: PathBuf, Damage { offset, what }: Damage) -> OpenError {
    OpenError::Damaged {
        path,
        offset: offset as u64,
        what,
    }
}
