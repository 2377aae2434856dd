//! The small files `FORMAT` and `CHECKPOINT`. Each holds one line of JSON, is replaced whole and is durable once written.
//! A newer format is recognised before anything is written.

use std::fmt;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::batch::{Epoch, Seq};
use crate::disk::{Disk, DiskError};
use crate::limits::CONTROL_FILE_BYTES;
use crate::open_error::OpenError;
use crate::paths::Paths;
use crate::replace::replace_durably;

/// The format this program reads and writes.
pub const FORMAT: u64 = 1;

/// Identifies the store that a file belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct StoreId(pub(crate) [u8; 16]);

/// The tree is durable up to `seq`; `epoch` is the latest epoch used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub(crate) seq: Seq,
    pub(crate) epoch: Epoch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Condition {
    /// A segment is being written. If it is missing, acknowledged changes may be lost.
    Open,
    /// The tree alone holds everything.
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: Checkpoint,
    /// `None` if an older program wrote it.
    pub(crate) condition: Option<Condition>,
}

impl Mark {
    /// The minimum epoch of the newest segment. `None` when no segment is needed, or when it is unknown.
    pub(crate) fn min_segment_epoch(mark: Option<Self>) -> Option<Epoch> {
        match mark {
            Some(Self { at, condition }) => match condition {
                Some(Condition::Open) => Some(at.epoch),
                Some(Condition::Stopped) | None => None,
            },
            // A folder without `CHECKPOINT` may have lost its journal too.
            None => Some(Epoch(0)),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct FormatFile {
    format: u64,
    store: StoreId,
}

/// The part of `FORMAT` that every format keeps.
#[derive(Deserialize)]
struct AnyFormatFile {
    format: u64,
}

#[derive(Serialize, Deserialize)]
struct CheckpointFile {
    store: StoreId,
    seq: Seq,
    epoch: Epoch,
    /// Outside the checksum, so that older programs can read the file. A few flipped bits cannot turn `open` into
    /// `stopped`.
    #[serde(default)]
    state: Option<Condition>,
    sum: u32,
}

pub(crate) fn store_at(disk: &Disk, paths: &Paths) -> Result<StoreId, OpenError> {
    read_format(disk, &paths.format)?.ok_or_else(|| OpenError::NotAState {
        root: paths.root.clone(),
    })
}

/// `None` if `path` is missing.
pub(crate) fn read_format(disk: &Disk, path: &Path) -> Result<Option<StoreId>, OpenError> {
    let Some(bytes) = read(disk, path)? else {
        return Ok(None);
    };
    let AnyFormatFile { format } = parse(path, &bytes)?;
    if format > FORMAT {
        return Err(OpenError::NewerFormat {
            path: path.to_owned(),
            found: format,
            supported: FORMAT,
        });
    }
    let file: FormatFile = parse(path, &bytes)?;
    Ok(Some(file.store))
}

pub(crate) fn write_format(disk: &Disk, path: &Path, store: StoreId) -> Result<(), DiskError> {
    let content = serde_json::json!(FormatFile {
        format: FORMAT,
        store
    });
    replace_durably(disk, path, format!("{content}\n").as_bytes())
}

pub(crate) fn read_checkpoint(
    disk: &Disk,
    path: &Path,
    store: StoreId,
) -> Result<Option<Checkpoint>, OpenError> {
    Ok(read_mark(disk, path, store)?.map(|mark| mark.at))
}

pub(crate) fn read_mark(
    disk: &Disk,
    path: &Path,
    store: StoreId,
) -> Result<Option<Mark>, OpenError> {
    let Some(bytes) = read(disk, path)? else {
        return Ok(None);
    };
    let file: CheckpointFile = parse(path, &bytes)?;
    let checkpoint = Checkpoint {
        seq: file.seq,
        epoch: file.epoch,
    };
    if file.store != store {
        let what = format!("it belongs to store {}, not {store}", file.store);
        return Err(OpenError::damaged(path, 0, what));
    }
    if file.sum != checkpoint.sum(store) {
        return Err(OpenError::damaged(path, 0, "its checksum is wrong"));
    }
    Ok(Some(Mark {
        at: checkpoint,
        condition: file.state,
    }))
}

pub(crate) fn write_checkpoint(
    disk: &Disk,
    path: &Path,
    store: StoreId,
    checkpoint: Checkpoint,
    condition: Condition,
) -> Result<(), DiskError> {
    let Checkpoint { seq, epoch } = checkpoint;
    let content = serde_json::json!(CheckpointFile {
        store,
        seq,
        epoch,
        state: Some(condition),
        sum: checkpoint.sum(store)
    });
    replace_durably(disk, path, format!("{content}\n").as_bytes())
}

impl Checkpoint {
    fn sum(self, store: StoreId) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&store.0);
        hasher.update(&self.seq.0.to_le_bytes());
        hasher.update(&self.epoch.0.to_le_bytes());
        hasher.finalize()
    }
}

fn read(disk: &Disk, path: &Path) -> Result<Option<Vec<u8>>, OpenError> {
    match disk.read(path, CONTROL_FILE_BYTES) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, OpenError> {
    serde_json::from_slice(bytes)
        .map_err(|error| OpenError::damaged(path, 0, format!("it is not understood: {error}")))
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreId({self})")
    }
}

impl From<StoreId> for String {
    fn from(id: StoreId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for StoreId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        u128::from_str_radix(&text, 16)
            .ok()
            .filter(|_| text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .map(|number| Self(number.to_be_bytes()))
            .ok_or_else(|| format!("`{text}` is no store id of 32 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: StoreId = StoreId([7; 16]);

    #[test]
    fn a_checkpoint_of_an_older_program_has_no_condition() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new();
        let path = folder.path().join("CHECKPOINT");
        let at = Checkpoint {
            seq: Seq(7),
            epoch: Epoch(3),
        };
        write_checkpoint(&disk, &path, STORE, at, Condition::Open).unwrap();
        let text = String::from_utf8(disk.read(&path, 1000).unwrap()).unwrap();
        let older = text.replace(r#","state":"open""#, "");
        assert_ne!(older, text);
        replace_durably(&disk, &path, older.as_bytes()).unwrap();
        let mark = read_mark(&disk, &path, STORE).unwrap();
        let condition = None;
        assert_eq!(mark, Some(Mark { at, condition }));
        assert_eq!(Mark::min_segment_epoch(mark), None);
    }

    #[test]
    fn a_modified_checkpoint_is_reported_as_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new();
        let path = folder.path().join("CHECKPOINT");
        write_checkpoint(
            &disk,
            &path,
            STORE,
            Checkpoint {
                seq: Seq(41),
                epoch: Epoch(3),
            },
            Condition::Open,
        )
        .unwrap();
        let text = String::from_utf8(disk.read(&path, 1000).unwrap()).unwrap();
        for changed in [
            text.replace("41", "40"),
            text.replace("07", "08"),
            text.replace("open", "oqen"),
            String::new(),
        ] {
            replace_durably(&disk, &path, changed.as_bytes()).unwrap();
            let result = read_checkpoint(&disk, &path, STORE);
            assert!(
                matches!(result, Err(OpenError::Damaged { .. })),
                "{changed}"
            );
        }
    }
}
