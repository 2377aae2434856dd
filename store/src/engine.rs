//! The contract of a store: one writer with one commit in flight, any number of readers, and a [`Volume`] for data
//! too large for a batch. One contract suite tests every engine. Engines know keys and bytes; callers give records
//! their meaning.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;

use crate::batch::{Batch, Epoch, InvalidBatch, Seq};
use crate::disk::DiskError;
use crate::fault::{Failure, Fault, FaultKind};
use crate::key::{Key, Prefix};
use crate::limits::{BATCH_BYTES, BATCH_OPERATIONS, GET_BYTES};
use crate::volume::Volume;

pub trait Engine: Send + 'static {
    type Reader: Reader;

    /// Recovers the store, takes the next epoch, passes all live records to `live` at once, and returns the epoch and
    /// the sequence number of the last commit. `live` also receives damaged records if it is unknown whether they are
    /// live. The epoch is durable when this returns. If the engine is already open, it is closed first.
    fn open(
        &mut self,
        live: &mut (dyn FnMut(&[LiveRecord<'_>]) + Send),
    ) -> impl Future<Output = Result<(Epoch, Seq), OpenError>> + Send;

    /// Makes `batch` durable and visible, completely or not at all. After `Fenced` or `Unknown` the caller stops and
    /// opens the store again. The other errors leave the engine usable and the store unchanged. An empty batch
    /// returns the last sequence number.
    fn commit(&mut self, batch: Batch) -> impl Future<Output = Result<Seq, CommitError>> + Send;

    /// A reader that sees every acknowledged batch, also those committed later.
    fn reader(&self) -> Self::Reader;

    /// The large objects and growing files of the open store, and the free space on its disk.
    fn volume(&self) -> Arc<dyn Volume>;

    /// Copies a damaged record to a place outside the keys and returns that place. The copy is durable when this
    /// returns; the record may then be replaced. `content` is what [`open`](Self::open) read.
    fn set_aside(
        &mut self,
        key: &Key,
        content: &[u8],
    ) -> impl Future<Output = Result<String, Fault>> + Send;

    /// True if a damaged record of this name or inside this folder was ever set aside.
    fn has_set_aside(&self, folder: &Prefix) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// True for a restored store until the work that ran during the backup is ended; see [`Volume::forget_restored`].
    fn is_restored(&self) -> bool;

    /// Stops the writer. The next open then has nothing to recover.
    fn close(self) -> impl Future<Output = Result<(), CloseError>> + Send;
}

/// Reads while the writer works. A reader sees every acknowledged batch as a whole. Only a list of names may show a
/// part of a concurrent batch. Engines whose reads block do them outside the async threads.
pub trait Reader: Clone + Send + Sync + 'static {
    fn get(&self, key: &Key) -> impl Future<Output = Result<Option<Bytes>, ReadError>> + Send;

    /// The contents of many files, in the order of `keys`.
    fn get_many(
        &self,
        keys: Vec<Key>,
    ) -> impl Future<Output = Result<Vec<Option<Bytes>>, ReadError>> + Send;

    /// A piece of at most `limit` bytes that ends at byte `before` or at the end of the file, whichever comes first.
    fn piece(
        &self,
        key: &Key,
        before: u64,
        limit: usize,
    ) -> impl Future<Output = Result<Option<Piece>, ReadError>> + Send;

    /// The lengths of many files in bytes, in the order of `keys`. An unreadable file does not affect the others.
    fn lengths(
        &self,
        keys: Vec<Key>,
    ) -> impl Future<Output = Result<Vec<Length>, ReadError>> + Send;

    /// The names directly inside `folder`, of files and of folders, in ascending order. Waits as [`settled`] does.
    ///
    /// [`settled`]: Self::settled
    fn children(
        &self,
        folder: &Prefix,
    ) -> impl Future<Output = Result<Vec<String>, ReadError>> + Send;

    /// Waits until everything acknowledged so far is visible to other programs: an engine on files waits for the tree.
    fn settled(&self) -> impl Future<Output = Result<(), ReadError>> + Send;
}

/// A live record and its content.
pub type LiveRecord<'a> = (&'a Key, &'a [u8]);

/// In bytes; `None` if there is no such file.
pub type Length = Result<Option<u64>, ReadError>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub at: u64,
    pub bytes: Bytes,
}

/// Why a store could not be opened.
pub type OpenError = Failure<OpenErrorKind>;

/// What an operator can do about a store that does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenErrorKind {
    /// Another process has it open.
    InUse,
    /// A newer program wrote it.
    NewerFormat,
    /// It is on a network file system, where locks and syncs may be unreliable. The operator can allow this.
    Network,
    /// It is not a store, it is damaged, or it cannot be written.
    Unusable,
    Full,
    Failed,
}

impl From<Fault> for OpenError {
    fn from(fault: Fault) -> Self {
        let kind = match fault.kind() {
            FaultKind::Full => OpenErrorKind::Full,
            FaultKind::Unsynced | FaultKind::PulledAway | FaultKind::Other => OpenErrorKind::Failed,
        };
        Self::new(kind, fault)
    }
}

/// Why a batch was not committed, or may not have been.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Another engine opened the store, or this engine is not open. Nothing was written.
    #[error("the batch belongs to epoch {batch}, and the store is at epoch {current}")]
    Fenced { batch: Epoch, current: Epoch },
    /// Only the next open shows whether the batch was stored. Every later commit of this engine returns the same
    /// error.
    #[error("the outcome of the commit is unknown; open the store again to see it")]
    Unknown {
        #[source]
        source: Fault,
    },
    /// Nothing was written.
    #[error(
        "a batch of {operations} operations and {bytes} bytes is more than one commit takes \
         ({BATCH_OPERATIONS} operations, {BATCH_BYTES} bytes)"
    )]
    TooLarge { operations: usize, bytes: usize },
    /// The disk is full. Nothing was written, and a later try may succeed.
    #[error("the disk of the store is full, or too many files are open; free some space")]
    Full,
    /// The batch contradicts itself or the files that exist. Nothing was written.
    #[error(transparent)]
    Invalid(#[from] InvalidBatch),
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("file `{key}` has {length} bytes; only files up to {GET_BYTES} bytes are read at once")]
    TooLarge { key: Key, length: u64 },
    #[error("the disk is full, so acknowledged changes are not in the files yet; free some space")]
    Unsettled,
    #[error("the read was interrupted because the process is stopping")]
    Interrupted,
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Errors of the checks before a write. Nothing is written, but after `Unknown` the store must be opened again.
impl From<DiskError> for CommitError {
    fn from(error: DiskError) -> Self {
        if error.is_full() {
            return Self::Full;
        }
        let source = error.into();
        Self::Unknown { source }
    }
}

impl From<DiskError> for ReadError {
    fn from(error: DiskError) -> Self {
        Self::Fault(error.into())
    }
}

/// Why a close was not clean. Nothing acknowledged is lost: the next open redoes it from the journal.
#[derive(Debug, thiserror::Error)]
pub enum CloseError {
    #[error(
        "the disk is full, so the files are behind the journal; the next start brings them up to date"
    )]
    Unfinished,
    #[error("the files are behind the journal; the next start brings them up to date")]
    Fault(#[source] Fault),
}
