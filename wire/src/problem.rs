//! Errors: `application/problem+json` (RFC 9457) with a stable code.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Diagnostic;

/// The body of every error answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// A short, constant name of the kind of error.
    pub title: String,
    /// The HTTP status, as in the status line.
    pub status: u16,
    /// For programs.
    pub code: ErrorCode,
    /// What went wrong, for people.
    pub detail: String,
    /// What to do next, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Identifies this request in the daemon's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// One entry for each refused member of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// The problems of a workflow text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// For [`ErrorCode::LogMismatch`]: the number of the record that the daemon expects next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// For [`ErrorCode::AlreadyDone`]: the id of the token or registration from the first request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Uuid>,
}

impl Problem {
    /// The errors of the members, each on its own line.
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldError {
    /// Path of the member, for example `inputs.domain`.
    pub field: String,
    /// Why it was refused.
    pub message: String,
}

/// The stable error codes of `/v0`. A code never changes its meaning. Clients treat an unknown code as
/// [`ErrorCode::Unknown`] and go by the HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// 401: the token is missing, wrong, expired or revoked.
    Unauthorized,
    /// 403: a valid token without the scope that this route needs.
    Forbidden,
    /// 403: this needs a sign-in of the last 10 minutes.
    SignInAgain,
    /// 404: no such route.
    NoSuchRoute,
    /// 404: it does not exist, or this token may not see it.
    NotFound,
    /// 404: no such project, or this token may not see it.
    ProjectNotFound,
    /// 404: no such workflow, or this token may not see its project.
    WorkflowNotFound,
    /// 404: no such source, or this token may not see it.
    SourceNotFound,
    /// 405: the path exists, the method does not.
    MethodNotAllowed,
    /// 400: the request is malformed.
    InvalidRequest,
    /// 408: the body did not arrive in time.
    RequestTimeout,
    /// 411 or 413: the body exceeds the route's limit.
    BodyTooLarge,
    /// 415: the route does not accept the media type of the body.
    UnsupportedMediaType,
    /// 422: the inputs do not fit the scan's declaration, or the values those of a payload group.
    InvalidInputs,
    /// 422: the idempotency key was used for another request.
    IdempotencyMismatch,
    /// 409: an earlier request with this idempotency key has made a secret, which is not shown again.
    AlreadyDone,
    /// 409: several workflows have this name.
    AmbiguousName,
    /// 409: the active revision no longer has the scan.
    Retired,
    /// 409: the scan or its workflow is suspended.
    Suspended,
    /// 409: the workflow's newest revision cannot be read; the hint says what to do.
    WorkflowUnreadable,
    /// 409: the job's state does not allow the event.
    IllegalTransition,
    /// 409: the job has ended; the worker stops it.
    JobOver,
    /// 409: the offer expired, or another runner claimed the job.
    OfferLapsed,
    /// 409: the log records leave a gap or differ from the stored ones.
    LogMismatch,
    /// 409: an artifact of that name is stored with other content.
    ArtifactMismatch,
    /// 409: the files of an artifact cannot be listed.
    ArtifactUnreadable,
    /// 409: the job cannot get the files of the repository; the detail names the commit and the reason.
    CheckoutFailed,
    /// 409: the name belongs to a runner or callback server, or to a present or former user.
    NameTaken,
    /// 409: another process uses this registration; each process needs its own registration.
    RunnerInUse,
    /// 409: a poll of another process of this runner replaced this one.
    PollReplaced,
    /// 409: the number of tokens has reached its limit.
    TooManyTokens,
    /// 409: without this token or user nobody could manage the daemon.
    LastAdmin,
    /// 409: no zone for callback servers is configured.
    CallbacksOff,
    /// 409: nobody has confirmed the sign-in of the device yet; ask again.
    LoginPending,
    /// 429: the number of unfinished jobs has reached its limit.
    TooManyJobs,
    /// 429: too many requests of one caller, or too many failed authentications. Nothing was done; `Retry-After` has
    /// the seconds to wait.
    RateLimited,
    /// 409: the daemon has no key for secrets, or not the key of this secret.
    NoSecretKey,
    /// 412: `If-Match` or `If-None-Match` does not hold.
    PreconditionFailed,
    /// 409: the name is taken by a folder or a blob.
    PathConflict,
    /// 409: the folder has the most entries that are allowed.
    FolderFull,
    /// 409: the source has a tip that is newer than the approved tip.
    NotTheTip,
    /// 403: a quota of the project, or the number of such records that may exist, is exhausted.
    QuotaExceeded,
    /// 400: the body does not have the digest in the request.
    DigestMismatch,
    /// 410: the artifact has expired or was removed.
    Gone,
    /// 416: the byte range is outside of the object.
    RangeNotSatisfiable,
    /// 507: the disk of the state folder is full.
    DiskFull,
    /// 503: the daemon is stopping or cannot commit. The outcome is unknown.
    Unavailable,
    /// 500: a defect. The daemon's log has the details under the request id.
    Internal,
    /// 500: the daemon cannot decide on the request, because of a defect. Nothing has changed; the daemon's log has
    /// the panic.
    Defect,
    /// A code from a newer daemon.
    #[serde(other)]
    Unknown,
}
