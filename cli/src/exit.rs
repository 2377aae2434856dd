//! Exit codes. Scripts rely on them.

use std::process::ExitCode;

use wire::JobState;

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
    /// Ctrl-C ended it.
    Interrupted,
}

macro_rules! codes {
    () => {
        "\
Exit codes:
  0  succeeded
  1  failed
  2  wrong usage
  4  the job was cancelled
  5  the job was skipped
  6  the job was not over in time"
    };
}

pub(crate) const CODES: &str = codes!();

pub(crate) const NEWS_CODES: &str = "\
Exit codes:
  0  succeeded; with --exit-code: and there is no news
  1  failed
  2  wrong usage, or no expression of the scan asks for news
  3  with --exit-code: there is news";

pub(crate) const HELP: &str = concat!(
    codes!(),
    "

Every long flag --some-flag can be given in the environment as SERVICE_SOME_FLAG.
The access token is read from SERVICE_TOKEN, or from a file."
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

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}
