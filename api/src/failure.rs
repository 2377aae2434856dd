//! Every way a request can fail, and the problem body that answers it.
//!
//! A failure has a text for the caller. It may have another one, which only the log sees.

use std::time::Duration;

use http::StatusCode;
use http::header::{ETAG, HeaderName, RETRY_AFTER};
use model::decide::{Refusal, Remedy};
use model::{JobId, Made, Scope, SealingError, SuspendedPart, error_chain};
use reconciler::{
    BlobError, DispatchError, RemovalError, RunnerError, SecretError, SourceError, WhyError,
    WorkerError,
};
use state::{LogError, ReadError, SubmitError, WriteError};
use uuid::Uuid;
use wire::{ErrorCode, FieldError, Problem};

use crate::limits::ECHO_CHARS;
use crate::precondition::etag;

/// The hint for a record that cannot be read.
pub(crate) const RESTORE: &str =
    "the daemon's log names the file; restore it from a backup and restart the daemon";

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: ErrorCode,
    detail: String,
    /// Boxed, because nearly every function returns a failure in its result.
    more: Box<More>,
}

/// The parts that only some failures have.
#[derive(Debug, Default)]
struct More {
    hint: Option<String>,
    errors: Vec<FieldError>,
    next: Option<u64>,
    made: Option<Uuid>,
    inward: Option<String>,
    headers: Vec<(HeaderName, String)>,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            more: Box::default(),
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.more.hint = Some(hint.into());
        self
    }

    /// Headers beside the status.
    pub(crate) fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.more.headers.push((name, value.into()));
        self
    }

    pub(crate) fn not_found(what: &str, name: &str) -> Self {
        Self::new(
            ErrorCode::NotFound,
            format!("there is no {what} `{}`", shorten(name)),
        )
    }

    /// The caller's token lacks this scope.
    pub(crate) fn without_scope(scope: Scope) -> Self {
        Self::new(
            ErrorCode::Forbidden,
            format!("this needs a token with the scope `{scope}`"),
        )
        .hint(format!(
            "whoever may make tokens can make one with it: `everscan token create --name NAME --scope {scope}`"
        ))
    }

    /// Also the answer about a job that the caller may not see.
    pub(crate) fn no_such_job(job: JobId) -> Self {
        Self::not_found("job", &job.to_string()).hint(
            "it never existed, or retention has removed it with its log; `everscan job list` shows what there is",
        )
    }

    pub(crate) fn invalid(field: &str, message: impl Into<String>) -> Self {
        let mut failure = Self::new(ErrorCode::InvalidRequest, "the request is not valid");
        failure.more.errors.push(FieldError {
            field: field.to_owned(),
            message: message.into(),
        });
        failure
    }

    /// The same, said of one member of the request. It keeps its hint.
    pub(crate) fn of_field(self, field: &str) -> Self {
        let mut failure = Self::invalid(field, self.detail);
        failure.more.hint = self.more.hint;
        failure
    }

    /// The refused members of the request.
    pub(crate) fn errors(&self) -> &[FieldError] {
        &self.more.errors
    }

    /// The caller makes too many requests, and may make the next one after `wait`.
    pub(crate) fn rate_limited(what: &str, wait: Duration) -> Self {
        // A client that waits a whole number of seconds must not come too early.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Self::new(ErrorCode::RateLimited, what)
            .hint(format!("try again in {seconds} s"))
            .header(RETRY_AFTER, seconds.to_string())
    }

    /// A defect. The caller learns only where to look for details.
    pub(crate) fn defect() -> Self {
        Self::new(ErrorCode::Internal, "something went wrong in the daemon")
            .hint("its log has the details under the request id")
    }

    pub(crate) fn internal(error: &dyn std::error::Error) -> Self {
        let mut failure = Self::defect();
        failure.more.inward = Some(error_chain(error));
        failure
    }

    pub(crate) fn status(&self) -> StatusCode {
        status(self.code)
    }

    /// For the log only.
    pub(crate) fn inward(&self) -> Option<&str> {
        self.more.inward.as_deref()
    }

    /// The body and the headers to answer with.
    pub(crate) fn problem(self, request_id: &str) -> (Problem, Vec<(HeaderName, String)>) {
        let status = self.status();
        let More {
            hint,
            errors,
            next,
            made,
            inward: _,
            headers,
        } = *self.more;
        let problem = Problem {
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            code: self.code,
            detail: self.detail,
            hint,
            request_id: Some(request_id.to_owned()),
            errors,
            diagnostics: Vec::new(),
            next,
            made,
        };
        (problem, headers)
    }
}

/// The HTTP status of each code.
const fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden | ErrorCode::QuotaExceeded => StatusCode::FORBIDDEN,
        ErrorCode::NoSuchRoute | ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::InvalidRequest | ErrorCode::DigestMismatch => StatusCode::BAD_REQUEST,
        ErrorCode::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        ErrorCode::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::InvalidInputs | ErrorCode::IdempotencyMismatch => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        ErrorCode::AmbiguousName
        | ErrorCode::AlreadyDone
        | ErrorCode::Retired
        | ErrorCode::Suspended
        | ErrorCode::WorkflowUnreadable
        | ErrorCode::IllegalTransition
        | ErrorCode::JobOver
        | ErrorCode::OfferLapsed
        | ErrorCode::LogMismatch
        | ErrorCode::ArtifactMismatch
        | ErrorCode::ArtifactUnreadable
        | ErrorCode::CheckoutFailed
        | ErrorCode::NameTaken
        | ErrorCode::RunnerInUse
        | ErrorCode::PollReplaced
        | ErrorCode::TooManyTokens
        | ErrorCode::LastAdmin
        | ErrorCode::PathConflict
        | ErrorCode::FolderFull
        | ErrorCode::NotTheTip
        | ErrorCode::NoSecretKey => StatusCode::CONFLICT,
        ErrorCode::TooManyJobs | ErrorCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        ErrorCode::Gone => StatusCode::GONE,
        ErrorCode::RangeNotSatisfiable => StatusCode::RANGE_NOT_SATISFIABLE,
        ErrorCode::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        ErrorCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Internal | ErrorCode::Defect | ErrorCode::Unknown => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let text = refusal.to_string();
        match refusal {
            Refusal::NoSuchWorkflow { .. } => Self::new(ErrorCode::NotFound, text)
                .hint("`everscan workflow list` shows what there is"),
            Refusal::NoSuchScan { .. }
            | Refusal::NoSuchRunner
            | Refusal::NoSuchSession
            | Refusal::NoSuchSource { .. }
            | Refusal::NoSuchProject { .. }
            | Refusal::NoSuchVar { .. }
            | Refusal::NoSuchSecret { .. } => Self::new(ErrorCode::NotFound, text),
            Refusal::NoSuchBlob { .. } => Self::new(ErrorCode::NotFound, text)
                .hint("`everscan blob ls` shows what there is; `everscan blob sync` fetches a folder"),
            Refusal::NoSuchBlobLink => Self::new(ErrorCode::NotFound, text)
                .hint("`everscan blob links` shows what there is"),
            Refusal::TooManyBlobLinks { .. } => Self::new(ErrorCode::Unavailable, text)
                .hint("revoke some with `everscan blob unlink`; each ends after 7 days"),
            Refusal::BlobChanged { .. } => Self::new(ErrorCode::PreconditionFailed, text)
                .hint("look at the blob again and repeat the change for that version, or without a condition (`--no-replace` is one)"),
            Refusal::BlobIsFolder { .. } => Self::new(ErrorCode::PathConflict, text)
                .hint("give the blob another name, or one in that folder"),
            Refusal::BlobIsNoFolder { .. } => Self::new(ErrorCode::PathConflict, text)
                .hint("choose another folder, or move that blob away"),
            Refusal::BlobFolderFull { .. } => Self::new(ErrorCode::FolderFull, text)
                .hint("make folders in it, by date or by the first letters of a name for example"),
            Refusal::QuotaExceeded { .. } => Self::new(ErrorCode::QuotaExceeded, text)
                .hint("remove blobs that are not needed with `everscan blob rm`; the operator sets `blob_quota`"),
            Refusal::PreconditionFailed { present, .. } => {
                let failure = Self::new(ErrorCode::PreconditionFailed, text);
                match present {
                    Some(version) => failure
                        .hint(format!(
                            "somebody changed it: look at version {version}, then repeat the edit for that version"
                        ))
                        .header(ETAG, etag(version)),
                    None => failure.hint("repeat the edit without a version, which makes it"),
                }
            }
            Refusal::NotTheTip { source_name, .. } => Self::new(ErrorCode::NotTheTip, text).hint(
                format!("look at the newest one with `everscan source show {source_name}`, and approve that"),
            ),
            Refusal::NoSuchToken => Self::new(ErrorCode::NotFound, text)
                .hint("`everscan token list` shows those that you may manage"),
            Refusal::LastAdmin => Self::new(ErrorCode::LastAdmin, text)
                .hint("`everscan token create --scope admin` makes one"),
            Refusal::Retired { .. } => Self::new(ErrorCode::Retired, text)
                .hint("push the file again to bring the workflow back"),
            Refusal::SourceDropped { .. } => Self::new(ErrorCode::Retired, text)
                .hint("name the source in the daemon's configuration again and restart the daemon"),
            Refusal::Suspended { part, workflow, scan, .. } => {
                Self::new(ErrorCode::Suspended, text).hint(match part {
                    SuspendedPart::Workflow => {
                        format!("`everscan workflow resume {}` lets it start jobs again", shorten(&workflow))
                    }
                    SuspendedPart::Scan => format!(
                        "`everscan scan resume {} {}` lets it start jobs again",
                        shorten(&workflow),
                        shorten(&scan)
                    ),
                })
            }
            Refusal::JobHeld { .. } => Self::new(ErrorCode::OfferLapsed, text),
            Refusal::WorkflowUnreadable { remedy, .. } => {
                Self::new(ErrorCode::WorkflowUnreadable, text).hint(match remedy {
                    Remedy::ValidFile { source_name } => format!(
                        "`everscan source show {source_name}` says what is wrong with its file; a valid one makes the next revision"
                    ),
                    Remedy::File => format!("push its file again, which makes the next revision; or: {RESTORE}"),
                    Remedy::Source => format!(
                        "name its source in the daemon's configuration again, which makes the next revision; or: {RESTORE}"
                    ),
                    Remedy::Backup => RESTORE.to_owned(),
                })
            }
            Refusal::RevisionChanged { .. } => {
                Self::new(ErrorCode::Unavailable, text).hint("try again")
            }
            Refusal::InvalidInputs { errors, .. } => {
                let mut failure = Self::new(ErrorCode::InvalidInputs, text);
                failure.more.errors = errors
                    .into_iter()
                    .map(|error| FieldError {
                        field: format!("inputs.{}", error.input),
                        message: error.problem.to_string(),
                    })
                    .collect();
                failure
            }
            Refusal::IdempotencyMismatch => Self::new(ErrorCode::IdempotencyMismatch, text)
                .hint("use a fresh key for a new request"),
            Refusal::AlreadyDone { made } => {
                let mut failure = Self::new(ErrorCode::AlreadyDone, text).hint(match made {
                    Made::Job(_) => "use a fresh key for a new request".to_owned(),
                    Made::Token(id) => format!(
                        "if that answer is lost, `everscan token regenerate {id}` gives it another secret, and \
                         `everscan token revoke {id}` removes it"
                    ),
                    Made::Registration(_) => {
                        "if that answer is lost, make another one with a fresh key; this one ends by itself"
                            .to_owned()
                    }
                    Made::BlobLink(_) => {
                        "if that answer is lost, make another one with a fresh key; DELETE ends this one".to_owned()
                    }
                });
                failure.more.made = Some(made.uuid());
                failure
            }
            Refusal::JobOver { .. } => Self::new(ErrorCode::JobOver, text),
            Refusal::IllegalTransition(_) => Self::new(ErrorCode::IllegalTransition, text),
            Refusal::JobNotOver { .. } => {
                Self::new(ErrorCode::IllegalTransition, text).hint("`everscan job cancel` ends it")
            }
            Refusal::RerunNotOver { .. } => Self::new(ErrorCode::IllegalTransition, text)
                .hint("`everscan job wait` waits for its end; `everscan scan dispatch` starts another one beside it"),
            Refusal::RetryNotOver { retry, .. } => {
                Self::new(ErrorCode::IllegalTransition, text).hint(format!(
                    "`everscan job wait {retry}` waits for its end; `everscan job cancel {retry}` ends it"
                ))
            }
            Refusal::ScanRetired { renamed_to, .. } => {
                let hint = match renamed_to {
                    Some(heir) => format!("its name is `{heir}` now; `everscan scan dispatch` starts that"),
                    None => "push a file that has the scan to bring it back".to_owned(),
                };
                Self::new(ErrorCode::Retired, text).hint(hint)
            }
            Refusal::JobNotSilent { .. } => {
                Self::new(ErrorCode::IllegalTransition, text).hint("try again after that")
            }
            Refusal::NotYourJob { .. } => Self::new(ErrorCode::OfferLapsed, text),
            Refusal::BadReport { .. } | Refusal::UndeclaredArtifact { .. } => {
                Self::new(ErrorCode::InvalidRequest, text)
            }
            Refusal::ArtifactMismatch { .. } => Self::new(ErrorCode::ArtifactMismatch, text),
            Refusal::BadRegistration => Self::new(ErrorCode::Unauthorized, text)
                .hint("make a new one with `everscan runner register-token`"),
            Refusal::TooManyRegistrations { .. } => {
                Self::new(ErrorCode::Unavailable, text).hint("they run out after 15 minutes")
            }
            Refusal::HistoryUnreadable { .. } => Self::new(ErrorCode::Internal, text)
                .hint("the daemon's log says why; it is tried again with the next request"),
            Refusal::RevisionUnreadable { .. } => {
                Self::new(ErrorCode::Internal, text).hint(RESTORE)
            }
            Refusal::TooManyJobs { .. } => Self::new(ErrorCode::TooManyJobs, text)
                .hint("try again when some have ended, or cancel what is not needed"),
            Refusal::TooManyTokens { .. } => Self::new(ErrorCode::TooManyTokens, text)
                .hint("use one token for many calls instead of one for each"),
            Refusal::Unwritable { .. } => Self::internal(&refusal),
            Refusal::NameTaken { .. } => Self::new(ErrorCode::NameTaken, text)
                .hint("give another name, or replace that runner with `--replace`"),
            Refusal::InvalidField { field, problem } => Self::invalid(field, problem),
            Refusal::TooStrong => Self::new(ErrorCode::Forbidden, text),
        }
    }
}

impl From<SubmitError> for Failure {
    fn from(error: SubmitError) -> Self {
        let text = error.to_string();
        match error {
            SubmitError::Refused(refusal) => refusal.into(),
            SubmitError::DiskLow | SubmitError::DiskFull => Self::new(ErrorCode::DiskFull, text),
            SubmitError::TooLarge => Self::new(ErrorCode::BodyTooLarge, text),
            SubmitError::Contradicted => Self::new(ErrorCode::Internal, text),
            SubmitError::Defect { .. } => Self::new(ErrorCode::Defect, text)
                .hint("report it with the panic; other requests are not concerned"),
            SubmitError::OutcomeUnknown => Self::new(ErrorCode::Unavailable, text),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Interrupted => Self::new(ErrorCode::Unavailable, error.to_string()),
            ReadError::Removed { job } => Self::no_such_job(job),
            error if error.is_for_room() => Self::new(ErrorCode::DiskFull, error.to_string()),
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
                .hint("the content changed on its way; send it again"),
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
            SourceError::NoSuchSource { .. } => Self::new(ErrorCode::NotFound, text)
                .hint("`everscan source list` shows what there is"),
            SourceError::Stopping => Self::new(ErrorCode::Unavailable, text),
        }
    }
}

/// The one answer to every bad token, whatever is wrong with it.
pub(crate) fn unauthorized() -> Failure {
    Failure::new(ErrorCode::Unauthorized, "this needs a valid token")
        .hint(
            "send `Authorization: Bearer …`; the command line reads SERVICE_TOKEN, or the file that SERVICE_TOKEN_FILE \
             names; the daemon's first token is in `initial-admin-token` in its state folder",
        )
}

/// Shortens a caller's text, so that a message can repeat it.
pub(crate) fn shorten(given: &str) -> String {
    given.chars().take(ECHO_CHARS).collect()
}
