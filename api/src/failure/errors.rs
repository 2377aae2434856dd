//! The errors of commands, reads and writes as failures of their request.

use model::SealingError;
use reconciler::{
    BlobError, DispatchError, RemovalError, RunnerError, SecretError, SourceError, WhyError,
    WorkerError,
};
use state::{LogError, ReadError, SubmitError, WriteError};
use wire::ErrorCode;

use super::{Failure, unauthorized};

impl From<SubmitError> for Failure {
    fn from(error: SubmitError) -> Self {
        let text = error.to_string();
        match error {
            SubmitError::Refused(refusal) => refusal.into(),
            SubmitError::DiskLow | SubmitError::DiskFull => Self::new(ErrorCode::DiskFull, text),
            SubmitError::TooLarge => Self::new(ErrorCode::BodyTooLarge, text),
            SubmitError::Contradicted => Self::new(ErrorCode::Internal, text),
            SubmitError::Defect { .. } => Self::new(ErrorCode::Defect, text)
                .hint("report it with the panic; other requests are not affected"),
            SubmitError::OutcomeUnknown => Self::new(ErrorCode::Unavailable, text),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Interrupted => Self::new(ErrorCode::Unavailable, error.to_string()),
            ReadError::Removed { job } => Self::no_such_job(job),
            error if error.is_disk_full() => Self::new(ErrorCode::DiskFull, error.to_string()),
            ReadError::Store(_) | ReadError::File { .. } | ReadError::Damaged { .. } => {
                Self::internal(&error)
            }
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::DiskFull => Self::new(ErrorCode::DiskFull, error.to_string()),
            WriteError::Interrupted => Self::new(ErrorCode::Unavailable, error.to_string()),
            WriteError::File { .. } | WriteError::Missing { .. } => Self::internal(&error),
        }
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        let text = error.to_string();
        match error {
            LogError::Mismatch { next } => {
                let mut failure = Self::new(ErrorCode::LogMismatch, text);
                failure.more.next = Some(next);
                failure
            }
            LogError::TooLong { .. } => Self::new(ErrorCode::InvalidRequest, text),
            LogError::Unwritable(error) => Self::internal(&error),
            LogError::Read(error) => error.into(),
            LogError::Write(error) => error.into(),
        }
    }
}

impl From<DispatchError> for Failure {
    fn from(error: DispatchError) -> Self {
        let text = error.to_string();
        match error {
            DispatchError::Submit(error) => error.into(),
            DispatchError::Inputs(error) => error.into(),
            DispatchError::Read(error) => error.into(),
            DispatchError::KeepsChanging => Self::new(ErrorCode::Unavailable, text),
        }
    }
}

impl From<RunnerError> for Failure {
    fn from(error: RunnerError) -> Self {
        let text = error.to_string();
        let code = match error {
            RunnerError::InUse => ErrorCode::RunnerInUse,
            RunnerError::PollReplaced => ErrorCode::PollReplaced,
            RunnerError::Submit(error) => return error.into(),
        };
        Self::new(code, text).hint(
            "every process needs a runner of its own: `everscan-runner configure --name NAME`",
        )
    }
}

impl From<WhyError> for Failure {
    fn from(error: WhyError) -> Self {
        match error {
            WhyError::Submit(error) => error.into(),
            WhyError::Read(error) => error.into(),
        }
    }
}

impl From<WorkerError> for Failure {
    fn from(error: WorkerError) -> Self {
        let text = error.to_string();
        match error {
            WorkerError::Unauthorized { .. } => unauthorized(),
            WorkerError::OfferLapsed { .. } => Self::new(ErrorCode::OfferLapsed, text),
            WorkerError::Over { .. } => Self::new(ErrorCode::JobOver, text),
            WorkerError::Checkout { .. } => Self::new(ErrorCode::CheckoutFailed, text),
            WorkerError::Stopping => Self::new(ErrorCode::Unavailable, text),
            WorkerError::Submit(error) => error.into(),
            WorkerError::Log(error) => error.into(),
            WorkerError::Read(error) => error.into(),
            WorkerError::Write(error) => error.into(),
        }
    }
}

impl From<RemovalError> for Failure {
    fn from(error: RemovalError) -> Self {
        match error {
            RemovalError::NoSuchJob { job } => Self::no_such_job(job),
            RemovalError::Submit(error) => error.into(),
            RemovalError::Read(error) => error.into(),
        }
    }
}

impl From<BlobError> for Failure {
    fn from(error: BlobError) -> Self {
        let text = error.to_string();
        match error {
            BlobError::Digest { .. } => Self::new(ErrorCode::DigestMismatch, text)
                .hint("the content changed during the transfer; send it again"),
            BlobError::Submit(error) => error.into(),
            BlobError::Read(error) => error.into(),
            BlobError::Write(error) => error.into(),
        }
    }
}

impl From<SecretError> for Failure {
    fn from(error: SecretError) -> Self {
        let text = error.to_string();
        match error {
            SecretError::NoKey => Self::new(ErrorCode::NoSecretKey, text).hint(
                "make one with `everscand secret-key make PATH`, and start the daemon with `--secret-key-file PATH`",
            ),
            SecretError::Sealed(SealingError::OtherKey { .. }) => Self::new(ErrorCode::NoSecretKey, text)
                .hint("start the daemon with `--old-secret-key-file PATH`, or set the secret again"),
            SecretError::Sealed(SealingError::Damaged | SealingError::TooLong)
            | SecretError::Masker(_) => Self::new(ErrorCode::Internal, text).hint("set the secret again"),
            SecretError::Stopping => Self::new(ErrorCode::Unavailable, text),
            SecretError::Submit(error) => error.into(),
        }
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        let text = error.to_string();
        match error {
            SourceError::NoSuchSource { .. } => Self::new(ErrorCode::SourceNotFound, text)
                .hint("`everscan source list` shows the sources"),
            SourceError::Stopping => Self::new(ErrorCode::Unavailable, text),
        }
    }
}
