//! Errors on the wire: `application/problem+json` (RFC 9457) with a stable code.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Diagnostic;

/// The body of every error answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The short, constant name of the class of error.
    pub title: String,
    /// The HTTP status, repeated from the status line.
    pub status: u16,
    /// What programs decide by.
    pub code: ErrorCode,
    /// What went wrong, for a person.
    pub detail: String,
    /// What to do next, when there is something to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Names this request in the daemon's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// One entry for each member of the request that was refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// What is wrong in a workflow text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// For [`ErrorCode::LogMismatch`]: the record number the daemon expects next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

impl Problem {
    /// What is wrong with each member of the request, on lines of their own.
    pub fn fields(&self) -> String {
        let line = |error: &FieldError| format!("\n  {}: {}", error.field, error.message);
        self.errors.iter().map(line).collect()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.detail, self.fields())
    }
}

/// One refused member of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// Path of the member, for example `inputs.domain`.
    pub field: String,
    /// Why it was refused.
    pub message: String,
}

/// The stable error codes of `/v0`. A code is never given a new meaning; a reader treats one it does not know as
/// [`ErrorCode::Unknown`] and goes by the HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// 401: no token, or one that is wrong, expired or revoked.
    Unauthorized,
    /// 403: a good token without the scope this route asks for.
    Forbidden,
    /// 404: no such route.
    NoSuchRoute,
    /// 404: no such thing, or not one this token may see.
    NotFound,
    /// 405: the path exists, the method does not.
    MethodNotAllowed,
    /// 400: a request that cannot be read as what the route takes.
    InvalidRequest,
    /// 408: the body did not arrive in time.
    RequestTimeout,
    /// 411 or 413: a body over the route's limit.
    BodyTooLarge,
    /// 415: a body of another media type than the route takes.
    UnsupportedMediaType,
    /// 422: inputs that do not fit the scan's declaration.
    InvalidInputs,
    /// 422: an idempotency key that was used for another request.
    IdempotencyMismatch,
    /// 409: a name that fits several workflows.
    AmbiguousName,
    /// 409: a scan that is not part of the active revision any more.
    Retired,
    /// 409: a workflow whose newest revision cannot be read; the hint says what ends it.
    WorkflowUnreadable,
    /// 409: the event is not legal in the job's state.
    IllegalTransition,
    /// 409: the job is over; the worker stops it.
    JobOver,
    /// 409: the offer lapsed or was claimed by another runner.
    OfferLapsed,
    /// 409: log records that leave a gap or differ from what is stored.
    LogMismatch,
    /// 409: an artifact of that name was stored with another content.
    ArtifactMismatch,
    /// 409: a runner of that name is registered already.
    NameTaken,
    /// 409: another process works as this runner; a second one needs a runner of its own.
    RunnerInUse,
    /// 409: a poll that another process's has replaced, for the same reason.
    PollReplaced,
    /// 409: as many tokens as may be exist already.
    TooManyTokens,
    /// 429: as many jobs as may be wait or run already.
    TooManyJobs,
    /// 409: the daemon has no key to seal secrets with.
    NoSecretKey,
    /// 410: the artifact was there; it has expired or was removed.
    Gone,
    /// 416: a byte range outside the object.
    RangeNotSatisfiable,
    /// 507: the disk of the state folder is full.
    DiskFull,
    /// 503: the daemon is stopping or cannot commit; the outcome is unknown.
    Unavailable,
    /// 500: a defect; the daemon's log has the details under the request id.
    Internal,
    /// A code from a newer daemon.
    #[serde(other)]
    Unknown,
}
