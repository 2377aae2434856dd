//! The file `journal/APPLIED`: the number of a commit that is durable in the journal. It is written
//! before that commit's files. A damaged last record of the journal looks like an unfinished write;
//! this number distinguishes the two. The file is written in place and not synced. After a power
//! cut its number may be too old, but never ahead of the journal.

use crate::batch::Seq;
use crate::control::StoreId;
use crate::disk::{Disk, DiskError, DiskFile};
use crate::limits::CONTROL_FILE_BYTES;
use crate::paths::Paths;

pub(crate) struct Applied {
    file: DiskFile,
    store: StoreId,
}

impl Applied {
    pub(crate) fn open(disk: &Disk, paths: &Paths, store: StoreId) -> Result<Self, DiskError> {
        let file = disk.open_or_create(&paths.applied)?;
        Ok(Self { file, store })
    }

    /// The commit must be durable in the journal.
    pub(crate) fn note(&self, seq: Seq) -> Result<(), DiskError> {
        self.file.write_at(line(self.store, seq).as_bytes(), 0)
    }
}

/// `None` if the file is missing or damaged.
pub(crate) fn read(disk: &Disk, paths: &Paths, store: StoreId) -> Result<Option<Seq>, DiskError> {
    match disk.read(&paths.applied, CONTROL_FILE_BYTES) {
        Ok(bytes) => Ok(parse(store, &bytes)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The message for a journal that ends before a commit that was applied.
pub(crate) fn ahead(end: Seq, applied: Seq) -> String {
    format!("it ends with record {end}, but record {applied} was applied")
}

/// Lines have a fixed length. The checksum covers the store id.
fn line(store: StoreId, seq: Seq) -> String {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&store.0);
    hasher.update(&seq.0.to_le_bytes());
    format!("{seq:020} {:08x}\n", hasher.finalize())
}

fn parse(store: StoreId, bytes: &[u8]) -> Option<Seq> {
    let text = std::str::from_utf8(bytes).ok()?;
    let seq = Seq(text.get(..20)?.parse().ok()?);
    (line(store, seq) == text).then_some(seq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noted_number_is_read_back_and_a_damaged_number_is_rejected() {
        let store = StoreId([7; 16]);
        let noted = line(store, Seq(41));
        assert_eq!(parse(store, noted.as_bytes()), Some(Seq(41)));
        assert_eq!(parse(StoreId([8; 16]), noted.as_bytes()), None);
        for at in 0..noted.len() {
            let mut changed = noted.clone().into_bytes();
            changed[at] ^= 1;
            assert_eq!(parse(store, &changed), None, "byte {at}");
            assert_eq!(parse(store, &noted.as_bytes()[..at]), None, "byte {at}");
        }
        assert_eq!(parse(store, &[0; 30]), None);
    }
}
