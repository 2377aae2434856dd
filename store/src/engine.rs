//! The contract of a store: one writer with one commit in flight, and beside it any number of readers and a
//! [`Volume`] for what is too large for a batch. The same contract suite runs over every engine. Engines know bytes and
//! keys; what the records say is the caller's.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;

use crate::batch::{Batch, Epoch, InvalidBatch, Seq};
use crate::disk::DiskError;
use crate::fault::{Failure, Fault, FaultKind};
use crate::key::{Key, Prefix};
use crate::limits::{BATCH_BYTES, BATCH_OPERATIONS, GET_BYTES};
use crate::volume::Volume;

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

    /// The large objects and growing files of the open store, and the room it has.
    fn volume(&self) -> Arc<dyn Volume>;

    /// Keeps a copy of a damaged record where no reader finds it, and answers where. The copy is durable when this
    /// returns; the record may then be replaced. `content` is what [`open`](Self::open) gave of it.
    fn set_aside(
        &mut self,
        key: &Key,
        content: &[u8],
    ) -> impl Future<Output = Result<String, Fault>> + Send;

    /// Whether a damaged record of this name, or inside this folder, was ever set aside.
    fn has_set_aside(&self, folder: &Prefix) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// Whether this store was restored from a backup, and what went on in it then has not been settled yet; see
    /// [`Volume::forget_restored`].
    fn is_restored(&self) -> bool;

    /// Ends the one writer and leaves everything in order for the next one.
    fn close(self) -> impl Future<Output = Result<(), CloseError>> + Send;
}

/// Reads beside the writer. It sees every acknowledged batch, whole, and nothing else; only a list of names may show a part of a
/// batch that comes meanwhile. An engine whose reads block
/// does them off the async threads.
pub trait Reader: Clone + Send + Sync + 'static {
    /// The content of one file.
    fn get(&self, key: &Key) -> impl Future<Output = Result<Option<Bytes>, ReadError>> + Send;

    /// The contents of many files, in the order of `keys`.
    fn get_many(
        &self,
        keys: Vec<Key>,
    ) -> impl Future<Output = Result<Vec<Option<Bytes>>, ReadError>> + Send;

    /// A piece of a file, at most `limit` bytes long, that ends before byte `before`, or where the file ends when that
    /// comes first.
    fn piece(
        &self,
        key: &Key,
        before: u64,
        limit: usize,
    ) -> impl Future<Output = Result<Option<Piece>, ReadError>> + Send;

    /// The lengths of many files in bytes, in the order of `keys`. One that cannot be read does not hide the others.
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

    /// Waits until everything acknowledged so far is where other programs look for it: in the tree, for an engine on
    /// files.
    fn settled(&self) -> impl Future<Output = Result<(), ReadError>> + Send;
}

/// The length of a file in bytes. None: there is no such file.
pub type Length = Result<Option<u64>, ReadError>;

/// A piece of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins.
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
    /// It is on a file system on which locks and syncs may mean nothing. The operator may allow that.
    Network,
    /// It is no store, it is damaged, or it cannot be written.
    Unusable,
    /// There is no room to open it.
    Full,
    /// Something failed that should have worked.
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
        source: Fault,
    },
    /// Nothing was written.
    #[error(
        "a batch of {operations} operations and {bytes} bytes is more than one commit takes \
         ({BATCH_OPERATIONS} operations, {BATCH_BYTES} bytes)"
    )]
    TooLarge { operations: usize, bytes: usize },
    /// There is no room for this batch. Nothing was written, and a later try may succeed.
    #[error("the disk of the store is full, or too many files are open; free some space")]
    Full,
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
    #[error("the read was interrupted because the process is stopping")]
    Interrupted,
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// For the checks before a batch is written.
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
