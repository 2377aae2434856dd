//! Exit codes. Scripts rely on them.

use std::process::ExitCode;

use wire::{ErrorCode, JobState};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command succeeded, and so did the job that it waited for.
    Succeeded,
    /// The command or the job failed.
    Failed,
    /// The command line was wrong.
    Usage,
    /// There is news, and a flag asked for this exit code.
    News,
    /// The job was cancelled.
    Cancelled,
    /// The job never ran.
    Skipped,
    /// The job did not end in time.
    WaitTimedOut,
    /// The token sees the project, and the thing is not there.
    Missing,
    /// The daemon refused the token, or shows it no such project, workflow or source.
    Refused,
    /// The daemon did not answer, was busy, or failed.
    NoAnswer,
    /// Ctrl-C ended it.
    Interrupted,
}

macro_rules! requests {
    () => {
        "  7  it does not exist, in a project that the token sees
  8  refused: the token, its rights, or no such project, workflow or source
  9  no answer, too many requests, or the daemon failed"
    };
}

macro_rules! codes {
    () => {
        concat!(
            "\
Exit codes:
  0  succeeded
  1  failed
  2  wrong usage
  4  the job was cancelled
  5  the job was skipped
  6  the job was not over in time
",
            requests!()
        )
    };
}

pub(crate) const CODES: &str = codes!();

pub(crate) const NEWS_CODES: &str = concat!(
    "\
Exit codes:
  0  succeeded; with --exit-code: and there is no news
  1  failed
  2  wrong usage, or no expression of the scan asks for news
  3  with --exit-code: there is news
",
    requests!()
);

pub(crate) const HELP: &str = concat!(
    codes!(),
    "

Every long flag --some-flag can be given in the environment as SERVICE_SOME_FLAG.
The access token is read from SERVICE_TOKEN, or from a file. Without one, commands use the login that
`everscan login` has saved."
);

impl Exit {
    const fn code(self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::News => 3,
            Self::Cancelled => 4,
            Self::Skipped => 5,
            Self::WaitTimedOut => 6,
            Self::Missing => 7,
            Self::Refused => 8,
            Self::NoAnswer => 9,
            // Shells report this code for a program that SIGINT ended.
            Self::Interrupted => 130,
        }
    }

    /// The exit code of a command that waited for a job. An unfinished job has timed out, because commands stop waiting early
    /// only on a timeout.
    pub(crate) const fn of_job(state: JobState) -> Self {
        match state {
            JobState::Succeeded => Self::Succeeded,
            JobState::Failed => Self::Failed,
            JobState::Cancelled => Self::Cancelled,
            JobState::Skipped => Self::Skipped,
            JobState::Scheduled | JobState::Running => Self::WaitTimedOut,
        }
    }
}

/// The exit of a command whose request failed. Only the daemon can say that a thing is missing: scripts then create it.
impl From<&client::Error> for Exit {
    fn from(error: &client::Error) -> Self {
        use client::Error as E;
        match error {
            E::BaseUrl { .. } | E::PlainHttp { .. } | E::Name { .. } => Self::Usage,
            E::CaFile { .. } | E::Connector { .. } | E::Unsendable { .. } => Self::Failed,
            // Something else may have answered.
            E::Protocol { .. } => Self::NoAnswer,
            E::Unreachable { .. } | E::Interrupted { .. } | E::TimedOut { .. } => Self::NoAnswer,
            E::Refused {
                status, problem, ..
            } => Self::of_refusal(problem.code, *status),
        }
    }
}

impl Exit {
    const fn of_refusal(code: ErrorCode, status: u16) -> Self {
        use ErrorCode as C;
        match code {
            C::NotFound | C::Gone => Self::Missing,
            C::ProjectNotFound | C::WorkflowNotFound | C::SourceNotFound => Self::Refused,
            C::Unauthorized | C::Forbidden | C::SignInAgain | C::QuotaExceeded => Self::Refused,
            C::RequestTimeout | C::RateLimited | C::TooManyJobs => Self::NoAnswer,
            C::DiskFull | C::Unavailable | C::Internal | C::Defect => Self::NoAnswer,
            C::NoSuchRoute | C::MethodNotAllowed | C::InvalidRequest | C::BodyTooLarge => {
                Self::Failed
            }
            C::UnsupportedMediaType | C::InvalidInputs | C::IdempotencyMismatch => Self::Failed,
            C::AlreadyDone | C::AmbiguousName | C::Retired | C::Suspended => Self::Failed,
            C::WorkflowUnreadable | C::IllegalTransition | C::JobOver | C::OfferLapsed => {
                Self::Failed
            }
            C::LogMismatch | C::ArtifactMismatch | C::ArtifactUnreadable => Self::Failed,
            C::CheckoutFailed | C::NameTaken | C::RunnerInUse | C::PollReplaced => Self::Failed,
            C::TooManyTokens | C::LastAdmin | C::LoginPending | C::NoSecretKey => Self::Failed,
            C::PreconditionFailed | C::CallbacksOff => Self::Failed,
            C::PathConflict | C::FolderFull | C::NotTheTip | C::DigestMismatch => Self::Failed,
            C::RangeNotSatisfiable => Self::Failed,
            // A newer daemon, or something between this program and the daemon.
            C::Unknown => match status {
                401 | 403 => Self::Refused,
                300..=399 | 408 | 429 | 500..=599 => Self::NoAnswer,
                _ => Self::Failed,
            },
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}
