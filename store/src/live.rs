//! The live records, which the caller keeps in memory. The set follows every batch. Each checkpoint writes the set to
//! one file, the live index, so that a start need not read the tree. The set can be rebuilt from the tree. A rebuilt
//! set also contains damaged records until a batch changes them, so that every start reports them to the caller.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::batch::{Batch, Epoch, Liveness, Seq, liveness};
use crate::control::{Checkpoint, StoreId};
use crate::disk::{Disk, DiskError, Kind};
use crate::engine::LiveRecord;
use crate::key::{Key, Prefix};
use crate::limits::{BATCH_BYTES, FOLDERS_AT_ONCE, GET_BYTES, READING_THREADS};
use crate::parallel;
use crate::record::{self, Cursor, Record};
use crate::replace::replace_with;
use crate::tree::Tree;

const MAGIC: [u8; 8] = *b"EVSLIVE\n";
const FORMAT: u64 = 1;
const PREFIX: &str = "live-";
/// Bytes collected before a write.
const CHUNK: usize = 1024 * 1024;

type Owned = (Key, Box<[u8]>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LiveSet {
    /// Copies, so that no small record keeps a segment or an index in memory.
    records: BTreeMap<Key, Box<[u8]>>,
}

/// The live set at commit `at`, plus later records of the journal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) at: Checkpoint,
    pub(crate) live: LiveSet,
}

impl Index {
    /// Applies a record of the journal. Ignores records that the index already contains.
    pub(crate) fn follow(&mut self, record: &Record) {
        if record.seq > self.at.seq {
            self.live.apply(&record.batch);
        }
    }
}

impl LiveSet {
    pub(crate) fn apply(&mut self, batch: &Batch) {
        for (key, put) in &batch.puts {
            if put.live {
                self.records.insert(key.clone(), put.bytes[..].into());
            } else {
                self.records.remove(key);
            }
        }
        for key in &batch.deletes {
            self.records.remove(key);
        }
        // An adopted object is never a record.
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&[u8]> {
        self.records.get(key).map(|content| &**content)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = LiveRecord<'_>> {
        self.records.iter().map(|(key, content)| (key, &**content))
    }

    /// Reads every record of the tree. Several threads read a limited number of folders at a time. Depth first, so
    /// that the queue of folders stays short.
    pub(crate) fn rebuild(tree: &Tree) -> Result<Self, DiskError> {
        let mut records = BTreeMap::new();
        let mut folders = vec![Prefix::root()];
        while !folders.is_empty() {
            let some = folders.split_off(folders.len().saturating_sub(FOLDERS_AT_ONCE));
            let read = |folder: &Prefix| Level::read(tree, folder);
            for level in parallel::try_map(READING_THREADS, &some, read)? {
                records.extend(level.records);
                folders.extend(level.folders);
            }
        }
        Ok(Self { records })
    }
}

#[derive(Default)]
struct Level {
    records: Vec<Owned>,
    folders: Vec<Prefix>,
}

impl Level {
    fn read(tree: &Tree, folder: &Prefix) -> Result<Self, DiskError> {
        let mut level = Self::default();
        for (key, kind) in tree.entries(folder)? {
            match kind {
                Kind::File => level.records.extend(read_live(tree, key)?),
                Kind::Folder => level.folders.push(Prefix::of(&key)),
                Kind::Nothing | Kind::BelowFile => {}
            }
        }
        Ok(level)
    }
}

/// `None` if the file is not a live or damaged record.
fn read_live(tree: &Tree, key: Key) -> Result<Option<Owned>, DiskError> {
    if !key.is_record() {
        return Ok(None);
    }
    let found = match tree.read(&key, GET_BYTES) {
        Ok(Some(bytes)) => match liveness(&key, &bytes) {
            Liveness::Live => Some(bytes[..].into()),
            Liveness::Settled => None,
            // The file is larger than any batch, so its beginning is enough.
            Liveness::Unknown => Some(bytes[..bytes.len().min(BATCH_BYTES)].into()),
        },
        Ok(None) => None,
        Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => Some(Box::default()),
        Err(error) => return Err(error),
    };
    Ok(found.map(|bytes| (key, bytes)))
}

/// Writes the set as of the commit `at.seq`. Not durable without a sync.
pub(crate) fn write(
    disk: &Disk,
    folder: &Path,
    store: StoreId,
    at: Checkpoint,
    live: &LiveSet,
) -> Result<(), DiskError> {
    replace_with(disk, &folder.join(file_name(at.seq)), |file| {
        let (mut written, mut sum) = (0, crc32fast::Hasher::new());
        let mut flush = |chunk: &mut Vec<u8>| {
            sum.update(chunk);
            file.write_at(chunk, written)?;
            written += chunk.len() as u64;
            chunk.clear();
            Ok::<_, DiskError>(())
        };
        let mut chunk = MAGIC.to_vec();
        chunk.extend(FORMAT.to_le_bytes());
        chunk.extend(store.0);
        chunk.extend(at.seq.0.to_le_bytes());
        chunk.extend(at.epoch.0.to_le_bytes());
        chunk.extend((live.records.len() as u64).to_le_bytes());
        for (key, bytes) in live.iter() {
            record::push_text(&mut chunk, key.as_str());
            record::push_content(&mut chunk, bytes);
            if chunk.len() >= CHUNK {
                flush(&mut chunk)?;
            }
        }
        flush(&mut chunk)?;
        file.write_at(&sum.finalize().to_le_bytes(), written)
    })
}

/// The indexes in a folder.
pub(crate) struct Survey {
    pub(crate) newest: Option<Index>,
    /// Skipped indexes, with the commit of each.
    pub(crate) unreadable: Vec<(Seq, PathBuf)>,
}

/// Finds the newest readable index of the commit `least` or later. Skips damaged ones: an index can be rebuilt.
pub(crate) fn survey(
    disk: &Disk,
    folder: &Path,
    store: StoreId,
    least: Seq,
) -> Result<Survey, DiskError> {
    let mut found = list(disk, folder)?;
    found.sort_unstable_by_key(|(seq, _)| std::cmp::Reverse(*seq));
    let mut survey = Survey {
        newest: None,
        unreadable: Vec::new(),
    };
    for (seq, path) in found.into_iter().filter(|(seq, _)| *seq >= least) {
        let bytes = disk.read(&path, u64::MAX)?;
        match decode(store, &bytes) {
            Some(index) if index.at.seq == seq => {
                survey.newest = Some(index);
                break;
            }
            Some(_) | None => survey.unreadable.push((seq, path)),
        }
    }
    Ok(survey)
}

/// Removes the indexes of commits before `seq`.
pub(crate) fn remove_older(disk: &Disk, folder: &Path, seq: Seq) -> Result<(), DiskError> {
    let old = list(disk, folder)?.into_iter().filter(|(at, _)| *at < seq);
    old.map(|(_, path)| path)
        .try_for_each(|path| disk.remove_file(&path))
}

/// The indexes in a folder.
pub(crate) fn paths(disk: &Disk, folder: &Path) -> Result<Vec<PathBuf>, DiskError> {
    let found = list(disk, folder)?.into_iter();
    Ok(found.map(|(_, path)| path).collect())
}

fn list(disk: &Disk, folder: &Path) -> Result<Vec<(Seq, PathBuf)>, DiskError> {
    let seq = |name: &str| {
        name.strip_prefix(PREFIX)?
            .parse()
            .ok()
            .map(Seq)
            .filter(|seq| file_name(*seq) == name)
    };
    let names = match disk.list(folder) {
        // If somebody removed the folder, the tree is read instead.
        Err(error) if error.is_missing() => Vec::new(),
        names => names?,
    };
    Ok(names
        .iter()
        .filter_map(|(name, _)| Some((seq(name)?, folder.join(name))))
        .collect())
}

fn file_name(seq: Seq) -> String {
    format!("{PREFIX}{seq:020}")
}

fn decode(store: StoreId, bytes: &[u8]) -> Option<Index> {
    let (content, sum) = bytes.split_last_chunk::<4>()?;
    if crc32fast::hash(content) != u32::from_le_bytes(*sum) {
        return None;
    }
    let mut fields = Cursor { rest: content };
    if fields.array()? != MAGIC || fields.u64()? != FORMAT || fields.array()? != store.0 {
        return None;
    }
    let at = Checkpoint {
        seq: Seq(fields.u64()?),
        epoch: Epoch(fields.u64()?),
    };
    let count = fields.u64()?;
    let record = |_| Some((fields.key()?, fields.content()?.into()));
    let records = (0..count).map(record).collect::<Option<_>>()?;
    let live = LiveSet { records };
    fields.rest.is_empty().then_some(Index { at, live })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: StoreId = StoreId([3; 16]);

    fn sample(count: usize) -> LiveSet {
        let record = |n: usize| {
            (
                Key::new(format!("k/{n}.json")).unwrap(),
                vec![b'x'; n * 7].into(),
            )
        };
        LiveSet {
            records: (0..count).map(record).collect(),
        }
    }

    #[test]
    fn the_newest_readable_index_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new();
        let at = |seq| Checkpoint {
            seq: Seq(seq),
            epoch: Epoch(1),
        };
        for seq in [4, 5, 6] {
            write(&disk, folder.path(), STORE, at(seq), &sample(seq as usize)).unwrap();
        }
        let newest = |least| {
            let survey = survey(&disk, folder.path(), STORE, Seq(least));
            survey.unwrap().newest
        };
        assert_eq!(
            newest(0),
            Some(Index {
                at: at(6),
                live: sample(6)
            })
        );
        assert_eq!(newest(7), None);

        let path = folder.path().join(file_name(Seq(6)));
        let mut bytes = disk.read(&path, u64::MAX).unwrap();
        for at in [0, 8, 50, bytes.len() - 1] {
            bytes[at] ^= 1;
            disk.open_to_write(&path)
                .unwrap()
                .write_at(&bytes, 0)
                .unwrap();
            assert_eq!(newest(0).unwrap().live, sample(5), "byte {at}");
            bytes[at] ^= 1;
        }
        remove_older(&disk, folder.path(), Seq(6)).unwrap();
        assert_eq!(newest(0), None, "only the damaged index is left");
    }

    #[test]
    fn an_index_of_another_store_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let at = Checkpoint {
            seq: Seq(1),
            epoch: Epoch(1),
        };
        write(&Disk::new(), folder.path(), STORE, at, &sample(2)).unwrap();
        let other = survey(&Disk::new(), folder.path(), StoreId([4; 16]), Seq(0));
        assert_eq!(other.unwrap().newest, None);
    }
}
