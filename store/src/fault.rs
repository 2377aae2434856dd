//! Storage errors, independent of the engine.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::disk::{Action, DiskError};

/// An error with a kind; its source says what failed and where. Cheap to clone, because one failure is returned to
/// many callers.
#[derive(Clone, Debug)]
pub struct Failure<K> {
    kind: K,
    source: Arc<dyn Error + Send + Sync>,
}

/// A failure of the disk or the server below a store. The source names the path or the server.
pub type Fault = Failure<FaultKind>;

/// What a caller can do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The disk is full, or too many files are open. A later try may succeed.
    Full,
    /// A sync failed. It is unknown which data is durable, and retrying does not help.
    Unsynced,
    /// Somebody removed, moved or replaced the store while it was in use.
    PulledAway,
    /// Anything else.
    Other,
}

impl<K: Copy> Failure<K> {
    pub fn new(kind: K, source: impl Error + Send + Sync + 'static) -> Self {
        let source = Arc::new(source);
        Self { kind, source }
    }

    pub fn kind(&self) -> K {
        self.kind
    }
}

impl Fault {
    pub fn is_full(&self) -> bool {
        self.kind == FaultKind::Full
    }
}

impl<K> fmt::Display for Failure<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl<K: fmt::Debug> Error for Failure<K> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}

impl From<DiskError> for Fault {
    fn from(error: DiskError) -> Self {
        let kind = match error.action() {
            _ if error.is_full() => FaultKind::Full,
            Action::SyncFile | Action::SyncFolder | Action::SyncFileSystem => FaultKind::Unsynced,
            Action::GoOn => FaultKind::PulledAway,
            Action::Allocate
            | Action::ChangeMode
            | Action::CreateFile
            | Action::CreateFolder
            | Action::Inspect
            | Action::Link
            | Action::ListFolder
            | Action::Lock
            | Action::MeasureSpace
            | Action::Open
            | Action::Read
            | Action::RemoveFile
            | Action::RemoveFolder
            | Action::Rename
            | Action::Thread
            | Action::Write => FaultKind::Other,
        };
        Self::new(kind, error)
    }
}
