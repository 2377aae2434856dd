//! Every way a command can fail, with its message, hint and exit code.

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;
use wire::JobState;

use crate::clock::format_duration;
use crate::connection::Connection;
use crate::exit::Exit;
use crate::table::bytes;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Client(#[from] client::Error),
    /// The daemon did not accept the credential.
    #[error("{refusal}")]
    NotAccepted {
        refusal: Box<client::Error>,
        hint: &'static str,
    },
    #[error("the saved login {} is damaged", path.display())]
    BadLogin {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("the sign-in was not confirmed in time")]
    NotConfirmed,
    #[error("cannot write to standard output")]
    Output { source: io::Error },
    #[error("cannot start")]
    Runtime { source: io::Error },
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// An unreadable input. Its exit code differs from the code for an invalid input.
    #[error(transparent)]
    Unreadable(Box<Error>),
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} is longer than the {limit} bytes that it may have", path.display())]
    FileTooLong { path: PathBuf, limit: u64 },
    #[error("{} is not UTF-8 text", path.display())]
    NotText {
        path: PathBuf,
        /// The text, with a mark for each byte that is not part of a character.
        shown: String,
        source: workflow::NotUtf8,
    },
    #[error("cannot show the answer as {format}")]
    Render {
        format: &'static str,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A text in the workflow language is invalid. The excerpts show the places.
    #[error("{}", excerpts.trim_end())]
    Refused { excerpts: String },
    #[error("{} is not the context of an expression", path.display())]
    NoContext {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error(transparent)]
    Evaluation(#[from] workflow::EvaluationError),
    #[error("the value has an infinite or undefined number, and JSON has no such number")]
    NoJson,
    #[error("cannot evaluate expressions")]
    Engine {
        source: workflow::expression::EngineError,
    },
    #[error("{what}")]
    Usage { what: String, hint: &'static str },
    #[error("the token file {} is empty", path.display())]
    EmptyToken { path: PathBuf },
    #[error("{artifact} arrived damaged: its SHA-256 is {found}, not {expected}")]
    Damaged {
        artifact: String,
        expected: String,
        found: String,
    },
    #[error("{artifact} cannot be unpacked")]
    NotUnpacked {
        artifact: String,
        source: zip::result::ZipError,
    },
    #[error("{artifact} has more than {} unpacked; nothing was kept", bytes(*limit))]
    TooMuchUnpacked { artifact: String, limit: u64 },
    #[error("the lines of {artifact} cannot be compared: {why}")]
    NotCompared { artifact: String, why: String },
    /// The daemon answered, and the thing is not there.
    #[error("{what}")]
    Missing { what: String, hint: String },
    /// The token is not printed, and expires unused.
    #[error("this daemon does not limit runners to {ignored}; update it")]
    LimitIgnored { ignored: &'static str },
    /// No expression of the job's scan calls `has_news()`, so its context has no data about news.
    #[error(
        "no expression of the job's scan asks for news of the scan {scan}, so the job does not know what is new"
    )]
    NotAsked { scan: String, expression: String },
    #[error("cannot make sense of the job's context: {reason}")]
    StrangeContext { reason: String },
    #[error("job {job} is started, but this token may not watch it: it lacks job:read")]
    Unwatched { job: Uuid },
    #[error("job {job} is not over after {}", format_duration(*after))]
    WaitTimedOut { job: Uuid, after: Duration },
    #[error(
        "job {} failed, and its retry {}{} is not over after {}",
        retry.of,
        retry.id,
        retry.due_clause(),
        format_duration(*after)
    )]
    RetryTimedOut { retry: Retry, after: Duration },
}

/// The retry that a command waits for after a job failed.
#[derive(Debug, Clone)]
pub(crate) struct Retry {
    pub(crate) of: Uuid,
    pub(crate) id: Uuid,
    /// When it becomes due, if it was still scheduled when last read.
    pub(crate) due: Option<String>,
}

impl Retry {
    fn due_clause(&self) -> String {
        let due = self.due.as_ref();
        due.map(|at| format!(", due at {at},")).unwrap_or_default()
    }
}

impl Error {
    pub(crate) fn reading(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        |source| Self::Read {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn writing(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        |source| Self::Write {
            path: path.to_owned(),
            source,
        }
    }

    /// Says what to do about a credential that the daemon does not accept.
    pub(crate) fn with_hint_of(self, connection: &Connection) -> Self {
        match self {
            // A proxy asks for its own password.
            Self::Client(refusal) if refusal.status() == Some(401) && !refusal.is_foreign() => {
                Self::NotAccepted {
                    refusal: Box::new(refusal),
                    hint: connection.hint(),
                }
            }
            other => other,
        }
    }

    pub(crate) fn report(&self) -> String {
        if let Self::Refused { excerpts } = self {
            return excerpts.trim_end().to_owned();
        }
        let mut text = format!("error: {self}");
        if let Some(cause) = self.cause() {
            text.push_str(&format!("\n  because: {cause}"));
        }
        if let Some(id) = self.request_id() {
            text.push_str(&format!("\n  request: {id}"));
        }
        if let Some(hint) = self.hint() {
            text.push_str(&format!("\nhint: {hint}"));
        }
        text
    }

    pub(crate) fn with_cause(&self) -> String {
        match self.cause() {
            Some(cause) => format!("{self}: {cause}"),
            None => self.to_string(),
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Client(error) => error.into(),
            Self::NotAccepted { refusal, .. } => refusal.as_ref().into(),
            Self::Missing { .. } => Exit::Missing,
            Self::Unwatched { .. } | Self::NotConfirmed => Exit::Refused,
            Self::Usage { .. }
            | Self::Unreadable(_)
            | Self::EmptyToken { .. }
            | Self::BadLogin { .. }
            | Self::NotAsked { .. } => Exit::Usage,
            Self::WaitTimedOut { .. } | Self::RetryTimedOut { .. } => {
                Exit::of_job(JobState::Running)
            }
            Self::Output { .. }
            | Self::Runtime { .. }
            | Self::Read { .. }
            | Self::Write { .. }
            | Self::FileTooLong { .. }
            | Self::NotText { .. }
            | Self::Render { .. }
            | Self::Refused { .. }
            | Self::NoContext { .. }
            | Self::Evaluation(_)
            | Self::NoJson
            | Self::Engine { .. }
            | Self::Damaged { .. }
            | Self::NotUnpacked { .. }
            | Self::TooMuchUnpacked { .. }
            | Self::NotCompared { .. }
            | Self::LimitIgnored { .. }
            | Self::StrangeContext { .. } => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Client(error) => error.hint().map(str::to_owned),
            Self::Usage { hint, .. } | Self::NotAccepted { hint, .. } => Some((*hint).to_owned()),
            Self::BadLogin { .. } => Some("`everscan login` saves a new one".to_owned()),
            Self::NotConfirmed => Some(
                "`everscan login` begins again; the browser must be signed in, and a code is good for a few minutes".to_owned(),
            ),
            Self::Unreadable(error) => error.hint(),
            Self::FileTooLong { .. } => {
                Some("upload larger data elsewhere and give its address".to_owned())
            }
            Self::Damaged { .. } => Some("no file was written; download it again".to_owned()),
            Self::NotUnpacked { .. } => {
                Some("take the zip as it is, with `everscan job artifact download --output-file`".to_owned())
            }
            Self::TooMuchUnpacked { .. } => Some(
                "allow more with --max-size, or take the zip as it is, with --output-file".to_owned(),
            ),
            Self::NotCompared { .. } => Some(
                "download both with `everscan job artifact download`, and compare them with another program".to_owned(),
            ),
            Self::Missing { hint, .. } => Some(hint.clone()),
            Self::Unwatched { job } => Some(format!(
                "leave out --wait and --follow, or watch it with another token: `everscan job wait {job}`"
            )),
            Self::StrangeContext { .. } => {
                Some("is this program as new as the daemon?".to_owned())
            }
            Self::NotAsked { expression, .. } => Some(format!(
                "let news start the scan, with this line below its `on`: `expr: {expression}`"
            )),
            Self::WaitTimedOut { job, .. } | Self::RetryTimedOut { retry: Retry { id: job, .. }, .. } => {
                Some(format!("the job goes on; `everscan job wait {job}` waits again"))
            }
            Self::NoContext { .. } => Some(
                "it has `project`, `workflow` and `revision`, and may have `job`, `vars`, `inputs`, `scans` and `ok`"
                    .to_owned(),
            ),
            Self::NoJson => Some("`string(…)` of the number is a text".to_owned()),
            _ => None,
        }
    }

    /// The innermost cause. The layers around it belong to libraries.
    fn cause(&self) -> Option<String> {
        let mut cause = self.source()?;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        Some(cause.to_string())
    }

    fn request_id(&self) -> Option<&str> {
        match self {
            Self::Client(error) => error.problem()?.request_id.as_deref(),
            Self::NotAccepted { refusal, .. } => refusal.problem()?.request_id.as_deref(),
            _ => None,
        }
    }

    /// Whether the reader of the output has closed it, as in `everscan job logs | head`. This is no failure.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output { source } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}
