//! Failures of requests, and the problem documents that report them.
//!
//! A failure has a text for the caller. It may have a second text, only for the log.

mod errors;
mod refusal;

use std::time::Duration;

use http::StatusCode;
use http::header::{HeaderName, RETRY_AFTER};
use model::decide::Refusal;
use model::{JobId, Role, Scope, Scopes, error_chain};
use uuid::Uuid;
use wire::{ErrorCode, FieldError, Problem};

use crate::limits::ECHO_CHARS;

/// The hint for a record that cannot be read.
pub(crate) const RESTORE: &str =
    "the daemon's log names the file; restore it from a backup and restart the daemon";

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: ErrorCode,
    detail: String,
    /// Boxed, because nearly every function returns a `Result` with a failure.
    more: Box<More>,
}

/// The parts that only some failures have.
#[derive(Debug, Default)]
struct More {
    hint: Option<String>,
    /// A better hint, for callers with this scope.
    names: Option<(Scope, String)>,
    errors: Vec<FieldError>,
    next: Option<u64>,
    made: Option<Uuid>,
    log_text: Option<String>,
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

    /// Lists names in the hint, for callers that may read them.
    pub(crate) fn names(mut self, scope: Scope, hint: String) -> Self {
        self.more.names = Some((scope, hint));
        self
    }

    /// The failure as a caller with these scopes may see it.
    pub(crate) fn seen_with(mut self, scopes: &Scopes) -> Self {
        if let Some((_, hint)) = self.more.names.take_if(|(scope, _)| scopes.allow(*scope)) {
            self.more.hint = Some(hint);
        }
        self
    }

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

    pub(crate) fn coded(mut self, code: ErrorCode) -> Self {
        self.code = code;
        self
    }

    pub(crate) fn without_scope(scope: Scope) -> Self {
        Self::new(
            ErrorCode::Forbidden,
            format!("this needs a token with the scope `{scope}`"),
        )
        .hint(format!(
            "somebody with the scope `token:write` can make one: `everscan token create --name NAME --scope {scope}`"
        ))
    }

    /// The caller's user has no role with the scope: in the project, or in any.
    pub(crate) fn without_role(scope: Scope) -> Self {
        match Role::least_with(scope) {
            Some(role) => Self::new(
                ErrorCode::Forbidden,
                format!("this needs the role `{role}` in the project"),
            )
            .hint("a maintainer of the project or an administrator gives roles"),
            None => Self::new(ErrorCode::Forbidden, "this is for administrators")
                .hint("an administrator makes others: `everscan user administrator NAME`"),
        }
    }

    pub(crate) fn without_permission(scope: Scope) -> Self {
        let failure = Self::new(
            ErrorCode::Forbidden,
            format!("the token of this job does not have the scope `{scope}`"),
        );
        failure.hint(if workflow::PERMISSIONS.contains(&scope.name()) {
            format!("add `{scope}` to the `permissions` of its scan")
        } else {
            "no job can have it; the step needs the token of a person, as a secret".to_owned()
        })
    }

    /// Also the answer about a job that the caller may not see.
    pub(crate) fn no_such_job(job: JobId) -> Self {
        Self::not_found("job", &job.to_string()).hint(
            "it never existed, or retention has removed it with its log; `everscan job list` shows the jobs",
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

    /// A value does not fit the variables of a payload group.
    pub(crate) fn unfit_value(name: &str, problem: &str) -> Self {
        let mut failure = Self::new(ErrorCode::InvalidInputs, format!("`{name}` {problem}"));
        failure.more.errors.push(FieldError {
            field: format!("values.{name}"),
            message: problem.to_owned(),
        });
        failure
    }

    /// The same failure, reported for one field of the request.
    pub(crate) fn of_field(self, field: &str) -> Self {
        let mut failure = Self::invalid(field, self.detail);
        failure.more.hint = self.more.hint;
        failure.more.names = self.more.names;
        failure
    }

    /// Removes the errors of fields, which quote values of the request.
    pub(crate) fn without_errors(mut self) -> Self {
        self.more.errors.clear();
        self
    }

    pub(crate) fn errors(&self) -> &[FieldError] {
        &self.more.errors
    }

    /// The caller makes too many requests and must wait for `wait`.
    pub(crate) fn rate_limited(what: &str, wait: Duration) -> Self {
        // Round up, so that the client does not retry too early.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Self::new(ErrorCode::RateLimited, what)
            .hint(format!("try again in {seconds} s"))
            .header(RETRY_AFTER, seconds.to_string())
    }

    /// A defect. The caller only learns where the details are.
    pub(crate) fn defect() -> Self {
        Self::new(ErrorCode::Internal, "something went wrong in the daemon")
            .hint("its log has the details under the request id")
    }

    pub(crate) fn internal(error: &dyn std::error::Error) -> Self {
        let mut failure = Self::defect();
        failure.more.log_text = Some(error_chain(error));
        failure
    }

    pub(crate) fn status(&self) -> StatusCode {
        status(self.code)
    }

    /// For the log only.
    pub(crate) fn inward(&self) -> Option<&str> {
        self.more.log_text.as_deref()
    }

    pub(crate) fn problem(self, request_id: &str) -> (Problem, Vec<(HeaderName, String)>) {
        let status = self.status();
        let More {
            hint,
            names: _,
            errors,
            next,
            made,
            log_text: _,
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

const fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden | ErrorCode::SignInAgain | ErrorCode::QuotaExceeded => {
            StatusCode::FORBIDDEN
        }
        ErrorCode::NoSuchRoute
        | ErrorCode::NotFound
        | ErrorCode::ProjectNotFound
        | ErrorCode::WorkflowNotFound
        | ErrorCode::SourceNotFound => StatusCode::NOT_FOUND,
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
        | ErrorCode::LoginPending
        | ErrorCode::CallbacksOff
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

/// The answer to every invalid token. It does not name the reason.
pub(crate) fn unauthorized() -> Failure {
    Failure::new(ErrorCode::Unauthorized, "this needs a valid token")
        .hint(
            "send `Authorization: Bearer …`; the command line reads SERVICE_TOKEN, or the file that SERVICE_TOKEN_FILE \
             names; the daemon's first token is in `initial-admin-token` in its state folder",
        )
}

/// The answer to the token of a job that is over.
pub(crate) fn job_token_over() -> Failure {
    Failure::new(
        ErrorCode::Unauthorized,
        "this is not the token of a running job",
    )
    .hint("the token that a step gets ends with its job; after a cancel it is valid for two minutes at most, for steps that clean up")
}

/// The answer to the token of a job at a route about the credentials of a person.
pub(crate) fn not_for_jobs() -> Failure {
    Failure::new(
        ErrorCode::Forbidden,
        "the token of a job is not sufficient for this",
    )
    .hint("tokens, sessions and sign-ins need the token of a person")
}

/// The answer to every invalid link to a blob. It does not name the reason.
pub(crate) fn no_such_link() -> Failure {
    Failure::new(
        ErrorCode::NotFound,
        "this link does not exist or has expired",
    )
    .hint("ask the person who sent the link for a new link")
}

/// The answer to every invalid invitation or reset. It does not name the reason.
pub(crate) fn no_such_user_link() -> Failure {
    Refusal::NoSuchUserLink.into()
}

/// Shortens a caller's text, so that a message can repeat it.
pub(crate) fn shorten(given: &str) -> String {
    given.chars().take(ECHO_CHARS).collect()
}
