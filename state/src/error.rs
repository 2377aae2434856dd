//! Errors of the state. Paths are relative to the state folder.

use model::JobId;
use model::decide::Refusal;
use store::{Fault, FaultKind};
use thiserror::Error;

use crate::alarm::Alarm;

/// Why the state was not closed cleanly. Nothing acknowledged is lost.
#[derive(Debug, Error)]
pub enum CloseError {
    #[error(transparent)]
    Store(#[from] store::CloseError),
    /// After a failure, files other than the journal may be incomplete until the next start.
    #[error(transparent)]
    Failed(Fatal),
    #[error("the committer thread panicked")]
    Panicked,
}

#[derive(Debug, Error)]
pub enum OpenError {
    #[error(transparent)]
    Store(#[from] store::OpenError),
    #[error("cannot read the state")]
    Read(#[from] ReadError),
    /// A record that a newer program wrote.
    #[error(
        "{path} has version {version}, which is newer than this program knows; use the newer program that wrote it"
    )]
    Newer { path: String, version: u32 },
    /// A damaged record could not be copied. Nothing was changed.
    #[error("cannot keep a copy of the damaged record {path} in quarantine/")]
    Keep { path: String, source: Fault },
    /// A damaged record could not be replaced. A copy is in `quarantine/`.
    #[error("cannot replace the damaged record {path}")]
    Replace {
        path: String,
        source: store::CommitError,
    },
    #[error("cannot start the committer thread")]
    Thread(#[source] std::io::Error),
    /// The jobs and sessions of a restored state could not be ended.
    #[error("cannot end the jobs that ran when the backup was taken")]
    Restored(#[source] SubmitError),
    /// The mark that a state was restored could not be removed.
    #[error("cannot remove the mark that this state was restored")]
    Mark(#[source] Fault),
}

#[derive(Debug, Error)]
pub enum ReadError {
    #[error(transparent)]
    Store(#[from] store::ReadError),
    #[error("cannot read {path}")]
    File { path: String, source: Fault },
    /// The content of a file is damaged or belongs elsewhere.
    #[error("{path} is damaged: {problem}; restore it from a backup")]
    Damaged { path: String, problem: String },
    /// The job was removed while it was read.
    #[error("there is no job `{job}` any more")]
    Removed { job: JobId },
    #[error("the read was interrupted because the daemon is stopping")]
    Interrupted,
}

impl ReadError {
    /// True if the read fails only because the disk is full.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Store(store::ReadError::Unsettled))
    }

    pub(crate) fn file(path: impl ToString, source: Fault) -> Self {
        Self::File {
            path: path.to_string(),
            source,
        }
    }

    pub(crate) fn damaged(path: impl ToString, problem: impl ToString) -> Self {
        Self::Damaged {
            path: path.to_string(),
            problem: problem.to_string(),
        }
    }
}

/// Why a command had no effect, or why its effect is unknown.
#[derive(Debug, Error)]
pub enum SubmitError {
    /// The command was refused; nothing has changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The disk is getting full; nothing has changed.
    #[error(
        "the disk of the state folder is almost full, so new jobs are refused; free some space (accepted jobs still run)"
    )]
    DiskLow,
    /// The disk is full, or no file can be opened now; nothing has changed.
    #[error(
        "the disk of the state folder is full, or too many files are open; free some space or close files (running \
         jobs can still end)"
    )]
    DiskFull,
    /// The changes do not fit into one commit; nothing has changed.
    #[error("the change is too large for one commit")]
    TooLarge,
    /// The changes contradict the files of the state folder: somebody removed or changed one. Nothing has changed.
    #[error(
        "the change contradicts a file of the state folder that was removed or changed; the daemon's log names the file"
    )]
    Contradicted,
    /// The decision panicked; nothing has changed.
    #[error(
        "{command} cannot be decided: this is a defect of Everscan; nothing has changed, and the daemon's log has the panic"
    )]
    Defect { command: String },
    /// The daemon is stopping or its disk failed. Whether the command took effect is known after the next start.
    #[error("the daemon is stopping; whether this took effect is known after its next start")]
    OutcomeUnknown,
}

/// Why a command with a large payload had no effect.
#[derive(Debug, Error)]
pub enum PayloadError {
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The payload could not be written; nothing has changed.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The daemon is stopping, so the work was not done.
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

/// Why the process must end: it is unknown what is on disk.
#[derive(Debug, Clone, Error)]
#[error("the state could not be committed: {message}")]
pub struct Fatal {
    /// The error with its causes.
    pub message: String,
    /// Whether a file or folder of the state was removed, moved or replaced under the daemon.
    pub is_pulled_away: bool,
}

/// Why a log, an artifact or a payload was not written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The disk is full, or no file can be opened now; nothing was kept.
    #[error("the disk of the state folder is full, or too many files are open; free some space")]
    DiskFull,
    #[error("cannot write {path}")]
    File { path: String, source: Fault },
    /// Somebody removed the file that should be copied.
    #[error("{path} is missing; restore it from a backup")]
    Missing { path: String },
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

    /// Like `new`, for a write that ends in a sync. A failed sync also rings the alarm.
    pub(crate) fn watched(alarm: &Alarm, path: impl ToString, source: Fault) -> Self {
        alarm.watch(&source);
        Self::new(path, source)
    }
}
