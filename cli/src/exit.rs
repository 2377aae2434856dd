//! Exit codes, which are part of the contract with scripts.

use std::process::ExitCode;

use wire::JobState;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked; a job that was waited for succeeded.
    Succeeded,
    /// It did not, or the job failed.
    Failed,
    /// It was asked something that cannot be asked.
    Usage,
    /// The job that was waited for was cancelled.
    Cancelled,
    /// The job that was waited for never ran.
    Skipped,
    /// The job was not over in time.
    WaitTimedOut,
    /// The person at the terminal ended it.
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

/// The end of the help texts of commands that end as a job ends.
pub(crate) const CODES: &str = codes!();

/// The end of the first help text.
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
            Self::Cancelled => 4,
            Self::Skipped => 5,
            Self::WaitTimedOut => 6,
            // What shells report for a program that SIGINT ended.
            Self::Interrupted => 130,
        }
    }

    /// How waiting for a job ends: by the job's end. A job that is not over has not failed either, but nobody waits
    /// for less than the end.
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
