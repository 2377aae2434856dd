//! Errors of commands.

use model::decide::Refusal;
use model::{JobId, MaskerError, SealingError, SourceName};
use state::{CompleteError, LogError, PayloadError, ReadError, SubmitError, WriteError};
use thiserror::Error;

/// Why a job was not dispatched.
#[derive(Debug, Error)]
pub enum DispatchError {
    /// The decision refused it.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The inputs are large and could not be stored.
    #[error("the inputs could not be stored")]
    Inputs(#[from] WriteError),
    /// The new job could not be read back.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The workflow changed at every try.
    #[error("the workflow keeps changing while the dispatch is read; try again")]
    KeepsChanging,
}

impl From<PayloadError> for DispatchError {
    fn from(error: PayloadError) -> Self {
        match error {
            PayloadError::Submit(error) => Self::Submit(error),
            PayloadError::Write(error) => Self::Inputs(error),
        }
    }
}

impl From<Refusal> for DispatchError {
    fn from(refusal: Refusal) -> Self {
        Self::Submit(SubmitError::Refused(refusal))
    }
}

/// Why a runner's request was refused.
#[derive(Debug, Error)]
pub enum RunnerError {
    /// Another process is this runner.
    #[error("another process works as this runner, or did and may come back")]
    InUse,
    /// A poll of another process has replaced this poll.
    #[error("another process works as this runner now")]
    PollReplaced,
    /// The decision refused it.
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

/// Why a worker's call was refused.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// There is no such job, or the token does not belong to its worker.
    #[error("job {job} does not exist or the token is not its worker's")]
    Unauthorized { job: JobId },
    /// The offer is older than ten seconds, or somebody else has claimed the job.
    #[error("the offer of job {job} has lapsed")]
    OfferLapsed { job: JobId },
    /// The job has ended.
    #[error("job {job} is {state}")]
    Over {
        job: JobId,
        /// The name of its state.
        state: &'static str,
    },
    /// The files of the repository cannot be brought. The message names the commit.
    #[error("{message}")]
    Checkout { message: String },
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
    /// The decision refused it.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Log(#[from] LogError),
    /// Reading the state.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Writing an artifact.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<CompleteError> for WorkerError {
    fn from(error: CompleteError) -> Self {
        match error {
            CompleteError::Log(error) => Self::Log(error),
            CompleteError::Submit(error) => Self::Submit(error),
        }
    }
}

/// Why something was not removed.
#[derive(Debug, Error)]
pub enum RemovalError {
    /// There is no such job.
    #[error("there is no job `{job}`")]
    NoSuchJob { job: JobId },
    /// The decision refused it.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why a blob was not stored, copied, moved or removed.
#[derive(Debug, Error)]
pub enum BlobError {
    /// The content is not what the caller says it is. Nothing was stored.
    #[error("the content has the SHA-256 {sha256}, and not {wanted}")]
    Digest { sha256: String, wanted: String },
    /// It was refused.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl BlobError {
    pub(crate) fn refused(refusal: Refusal) -> Self {
        Self::Submit(SubmitError::Refused(refusal))
    }
}

/// Why a secret was not set.
#[derive(Debug, Error)]
pub enum SecretError {
    /// The daemon has no key for secrets.
    #[error("the daemon has no key to seal secrets with")]
    NoKey,
    /// It cannot be opened.
    #[error("the secret cannot be opened: {0}")]
    Sealed(#[from] SealingError),
    /// The masker refuses it.
    #[error(transparent)]
    Masker(#[from] MaskerError),
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
    /// The decision refused it.
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

/// Why there was no look at a source.
#[derive(Debug, Error)]
pub enum SourceError {
    /// No source of that name is configured.
    #[error("there is no source `{name}`")]
    NoSuchSource {
        /// What was asked for.
        name: SourceName,
    },
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
}
