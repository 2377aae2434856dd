//! The contract of a store. One writer with one commit in flight, any number of readers beside it; the same contract
//! suite runs over every engine. Engines know bytes and keys; what the records say is the caller's.

use std::future::Future;
use std::path::PathBuf;

use bytes::Bytes;

use crate::batch::{Batch, Epoch, InvalidBatch, Seq};
use crate::disk::DiskError;
use crate::key::{Key, Prefix};
use crate::limits::{BATCH_BYTES, BATCH_OPERATIONS, GET_BYTES};
use crate::lock::Owner;

/// The one writer of a store.
pub trait Engine: Send + 'static {
    type Reader: Reader;

    /// Recovers, takes the next epoch, gives every live record to `live`, and answers the epoch and the sequence
    /// number of the last commit. Records that do not say whether they are live, since they are damaged, are among
    /// those given. The epoch is durable when this returns. An engine that is open already is closed
    /// first.
    fn open(
        &mut self,
        live: &mut (dyn FnMut(Key, Bytes) + Send),
    ) -> impl Future<Output = Result<(Epoch, Seq), OpenError>> + Send;

    /// Makes `batch` durable and visible, all of it or nothing. After `Fenced` or `Unknown` the caller stops and
    /// opens again; the other errors leave the engine usable and the store unchanged. A batch without changes
    /// answers the last sequence number.
    fn commit(&mut self, batch: Batch) -> impl Future<Output = Result<Seq, CommitError>> + Send;

    /// A reader of everything acknowledged so far and from now on.
    fn reader(&self) -> Self::Reader;
}

/// Reads beside the writer. Sees every acknowledged batch, whole, and nothing else.
pub trait Reader: Clone + Send + Sync + 'static {
    /// The content of one file.
    fn get(&self, key: &Key) -> impl Future<Output = Result<Option<Bytes>, ReadError>> + Send;

    /// A piece of a file, at most `limit` bytes long, that ends before byte `before`, or where the file ends when that
    /// comes first.
    fn piece(
        &self,
        key: &Key,
        before: u64,
        limit: usize,
    ) -> impl Future<Output = Result<Option<Piece>, ReadError>> + Send;

    /// The last `limit` keys inside `prefix` that come before `before`, last first.
    fn list(
        &self,
        prefix: &Prefix,
        before: Option<&Key>,
        limit: usize,
    ) -> impl Future<Output = Result<Page, ReadError>> + Send;

    /// Waits until everything acknowledged so far is where other programs look for it: in the tree, for an engine on
    /// files.
    fn settled(&self) -> impl Future<Output = Result<(), ReadError>> + Send;
}

/// A piece of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins.
    pub at: u64,
    pub bytes: Bytes,
}

/// A part of a listing, in descending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub keys: Vec<Key>,
    /// Whether there are keys before the last one of this page.
    pub more: bool,
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "{root} holds files but no state; choose an empty or missing folder, or an existing state folder"
    )]
    NotAState { root: PathBuf },
    #[error(
        "{path} says format {found}, and this program knows formats up to {supported}; use the newer program that \
         wrote it, nothing was changed"
    )]
    NewerFormat {
        path: PathBuf,
        found: u64,
        supported: u64,
    },
    #[error("{root} is in use by {owner}; stop that process first, or choose another folder")]
    Locked { root: PathBuf, owner: Owner },
    #[error(
        "{path} is damaged at byte {offset}: {what}; acknowledged changes may be lost, so nothing was changed: \
         `everscand fsck` tells which, and a backup has them"
    )]
    Damaged {
        path: PathBuf,
        offset: u64,
        what: String,
    },
    #[error(
        "{root} is on the file system of another machine ({protocol}), where a lock may not keep a second daemon away \
         and a sync may not reach the disk; choose a folder on a disk of this machine"
    )]
    Network {
        root: PathBuf,
        protocol: &'static str,
    },
    #[error(
        "{path} cannot be written, since its file system is read-only; mount it for writing, and if nobody made it \
         read-only on purpose, look at the disk first: the kernel does so after an error"
    )]
    ReadOnly { path: PathBuf },
    #[error(transparent)]
    Disk(DiskError),
}

impl From<DiskError> for OpenError {
    fn from(error: DiskError) -> Self {
        if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem {
            return Self::ReadOnly {
                path: error.path().to_owned(),
            };
        }
        Self::Disk(error)
    }
}

/// Why a batch was not committed, or is not known to be.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Another opening of the store took over, or this engine is not open. Nothing was written.
    #[error("the batch belongs to epoch {batch}, and the store is at epoch {current}")]
    Fenced { batch: Epoch, current: Epoch },
    /// The batch may or may not be there after the next open. Every later commit of this opening answers the same.
    #[error("the outcome of the commit is unknown; open the store again to see it")]
    Unknown {
        #[source]
        source: DiskError,
    },
    /// Nothing was written.
    #[error(
        "a batch of {operations} operations and {bytes} bytes is more than one commit takes \
         ({BATCH_OPERATIONS} operations, {BATCH_BYTES} bytes)"
    )]
    TooLarge { operations: usize, bytes: usize },
    /// The disk has no room for this batch. Nothing was written, and a later try may succeed.
    #[error("the disk that holds {root} is full; free some space")]
    Full { root: PathBuf },
    /// The batch contradicts itself or the files that exist. Nothing was written.
    #[error(transparent)]
    Invalid(#[from] InvalidBatch),
}

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("file `{key}` has {length} bytes; only files up to {GET_BYTES} bytes are read at once")]
    TooLarge { key: Key, length: u64 },
    #[error("the disk is full, so the files are behind what is acknowledged; free some space")]
    Unsettled,
    #[error(transparent)]
    Disk(#[from] DiskError),
}
