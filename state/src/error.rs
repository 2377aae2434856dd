//! What can go wrong with the state.

use model::JobId;
use model::decide::Refusal;
use store::{Fault, FaultKind};
use thiserror::Error;

use crate::alarm::Alarm;

/// Why the state was not closed cleanly. Nothing acknowledged is lost.
#[derive(Debug, Error)]
pub enum CloseError {
    /// The store itself.
    #[error(transparent)]
    Store(#[from] store::CloseError),
    /// What is durable beside the journal is not known.
    #[error(transparent)]
    Failed(Fatal),
    /// A mistake in this program.
    #[error("the committer thread panicked")]
    Panicked,
}

/// Why the state could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The store itself.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// A record of the store.
    #[error("cannot read the state")]
    Read(#[from] ReadError),
    /// A record that a newer program wrote.
    #[error(
        "{path} has version {version}, which is newer than this program knows; use the newer program that wrote it"
    )]
    Newer {
        /// Path below the state folder.
        path: String,
        /// What it says.
        version: u32,
    },
    /// A damaged record of which no copy can be kept; it is as it was.
    #[error("cannot keep a copy of the damaged record {path} in quarantine/")]
    Keep {
        /// Path below the state folder.
        path: String,
        /// Why.
        source: Fault,
    },
    /// A damaged record that cannot be replaced; a copy is in quarantine.
    #[error("cannot replace the damaged record {path}")]
    Replace {
        /// Path below the state folder.
        path: String,
        /// Why.
        source: store::CommitError,
    },
    /// The committer's thread.
    #[error("cannot start the committer thread")]
    Thread(#[source] std::io::Error),
    /// What a restored state begins with could not be committed.
    #[error("cannot end what ran when the backup was made")]
    Restored(#[source] SubmitError),
    /// The mark that a state was restored could not be removed.
    #[error("cannot remove the mark that this state was restored")]
    Mark(#[source] Fault),
}

/// Why a record could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The store.
    #[error(transparent)]
    Store(#[from] store::ReadError),
    /// A file outside the journal: log, object.
    #[error("cannot read {path}")]
    File {
        /// Path below the state folder.
        path: String,
        /// Why.
        source: Fault,
    },
    /// A file that is not what its place says.
    #[error("{path} is damaged: {problem}; restore it from a backup")]
    Damaged {
        /// Path below the state folder.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// A job that was removed while it was read.
    #[error("there is no job `{job}` any more")]
    Removed {
        /// The job.
        job: JobId,
    },
    /// The reader's thread ended.
    #[error("the read was interrupted because the daemon is stopping")]
    Interrupted,
}

/// Why a command did not come true.
#[derive(Debug, Error)]
pub enum SubmitError {
    /// It was refused; nothing has changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The disk is getting full; nothing has changed.
    #[error(
        "the disk of the state folder is getting full and no new jobs are taken; free some space, jobs that were taken \
         still run"
    )]
    DiskLow,
    /// The disk is full; nothing has changed.
    #[error("the disk of the state folder is full; free some space, running jobs can still end")]
    DiskFull,
    /// Its changes are more than one commit takes; nothing has changed.
    #[error("the change is too large for one commit")]
    TooLarge,
    /// The changes do not fit the files of the state folder, one of which somebody removed or changed; nothing has
    /// changed.
    #[error(
        "the change does not fit the files of the state folder; was one of them removed? the daemon's log names it"
    )]
    Contradicted,
    /// The daemon is stopping or its disk failed. Whether the command came true is known after the next start.
    #[error("the daemon is stopping; whether this took effect is known after its next start")]
    OutcomeUnknown,
}

/// Why a command with something large did not come true.
#[derive(Debug, Error)]
pub enum PayloadError {
    /// The decision or its commit.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The payload could not be written; nothing has changed.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The thread that was to do some work ended before it did, because the daemon is stopping.
pub(crate) struct Interrupted;

impl From<Interrupted> for ReadError {
    fn from(Interrupted: Interrupted) -> Self {
        Self::Interrupted
    }
}

impl From<Interrupted> for WriteError {
    fn from(Interrupted: Interrupted) -> Self {
        Self::Interrupted
    }
}

/// Why the process must end: what is on disk is not known any more.
#[derive(Debug, Clone, Error)]
#[error("the state could not be committed: {message}")]
pub struct Fatal {
    /// The chain of what happened.
    pub message: String,
    /// Whether a file or folder of the state was removed, moved or replaced under the daemon.
    pub is_pulled_away: bool,
}

/// Why something large was not written: a log, an artifact, a payload.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The disk is full; nothing was kept.
    #[error("the disk of the state folder is full; free some space")]
    DiskFull,
    /// The file.
    #[error("cannot write {path}")]
    File {
        /// Path below the state folder.
        path: String,
        /// Why.
        source: Fault,
    },
    /// The writer's thread ended.
    #[error("the write was interrupted because the daemon is stopping")]
    Interrupted,
}

impl WriteError {
    pub(crate) fn new(path: impl ToString, source: Fault) -> Self {
        match source.kind() {
            FaultKind::Full => Self::DiskFull,
            FaultKind::Unsynced | FaultKind::PulledAway | FaultKind::Other => Self::File {
                path: path.to_string(),
                source,
            },
        }
    }

    /// The same for a write that ends in a sync: a sync that failed is more than a failed write.
    pub(crate) fn watched(alarm: &Alarm, path: impl ToString, source: Fault) -> Self {
        alarm.watch(&source);
        Self::new(path, source)
    }
}
