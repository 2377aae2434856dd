//! Errors of commands.

use model::decide::Refusal;
use model::{JobId, MaskerError, SealingError, SourceName};
use state::{CompleteError, LogError, PayloadError, ReadError, SubmitError, WriteError};
use thiserror::Error;

#[derive(Debug, Error)]
pub enum DispatchError {
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error("the inputs could not be stored")]
    Inputs(#[from] WriteError),
    /// The new job could not be read back.
    #[error(transparent)]
    Read(#[from] ReadError),
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

#[derive(Debug, Error)]
pub enum RunnerError {
    #[error("another process works as this runner, or did and may come back")]
    InUse,
    #[error("another process works as this runner now")]
    PollReplaced,
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

#[derive(Debug, Error)]
pub enum WorkerError {
    /// There is no such job, or the token does not belong to its worker.
    #[error("job {job} does not exist or the token is not its worker's")]
    Unauthorized { job: JobId },
    /// The offer is older than ten seconds, or another worker has claimed the job.
    #[error("the offer of job {job} has lapsed")]
    OfferLapsed { job: JobId },
    #[error("job {job} is {state}")]
    Over { job: JobId, state: &'static str },
    /// The files of the repository cannot be sent. The message names the commit.
    #[error("{message}")]
    Checkout { message: String },
    #[error("the daemon is stopping")]
    Stopping,
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Read(#[from] ReadError),
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

#[derive(Debug, Error)]
pub enum RemovalError {
    #[error("there is no job `{job}`")]
    NoSuchJob { job: JobId },
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

#[derive(Debug, Error)]
pub enum BlobError {
    /// The content does not have the expected digest. Nothing was stored.
    #[error("the content has the SHA-256 {sha256}, and not {wanted}")]
    Digest { sha256: String, wanted: String },
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

#[derive(Debug, Error)]
pub enum SecretError {
    #[error("the daemon has no key to seal secrets with")]
    NoKey,
    #[error("the secret cannot be opened: {0}")]
    Sealed(#[from] SealingError),
    #[error(transparent)]
    Masker(#[from] MaskerError),
    #[error("the daemon is stopping")]
    Stopping,
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

#[derive(Debug, Error)]
pub enum SourceError {
    #[error("there is no source `{name}`")]
    NoSuchSource { name: SourceName },
    #[error("the daemon is stopping")]
    Stopping,
}
