//! Why the daemon ended, as text and as exit code.

use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use crate::configuration::ConfigurationError;
use crate::demo::DemoError;
use crate::exit;
use crate::logging::LogFilterError;
use crate::run::StopSignal;
use crate::up::UpError;

/// Why the daemon ended other than as asked.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error(transparent)]
    Log(#[from] LogFilterError),
    #[error(
        "the state folder {} is not a folder; choose an empty or missing folder, or an existing state folder",
        root.display()
    )]
    NotAFolder { root: PathBuf },
    #[error("cannot open the state")]
    Open(#[from] state::OpenError),
    #[error("cannot listen on {address}; is another program using it?")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error("cannot start")]
    Start(#[from] state::SubmitError),
    #[error("cannot start the runtime")]
    Runtime(#[source] std::io::Error),
    #[error(transparent)]
    Fatal(#[from] state::Fatal),
    #[error("the demonstration failed")]
    Demo(#[source] DemoError),
    #[error("the demonstration was stopped before its end; nothing of it is left")]
    DemoStopped(StopSignal),
    #[error(transparent)]
    Up(#[from] UpError),
}

impl From<DemoError> for Error {
    fn from(error: DemoError) -> Self {
        match error {
            DemoError::Stopped(signal) => Self::DemoStopped(signal),
            error => Self::Demo(error),
        }
    }
}

impl Error {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Configuration(_) | Self::Log(_) => exit::USAGE,
            Self::NotAFolder { .. } => exit::STATE_UNUSABLE,
            Self::Open(state::OpenError::Store(error)) => match error {
                store::OpenError::Locked { .. } => exit::STATE_IN_USE,
                store::OpenError::NewerFormat { .. } => exit::NEWER_FORMAT,
                store::OpenError::NotAState { .. } | store::OpenError::Damaged { .. } => {
                    exit::STATE_UNUSABLE
                }
                store::OpenError::Disk(error) if error.is_full() => exit::DISK_FULL,
                store::OpenError::Disk(_) => exit::FAILED,
            },
            Self::Open(state::OpenError::Read(_)) => exit::STATE_UNUSABLE,
            Self::Start(state::SubmitError::DiskFull) => exit::DISK_FULL,
            Self::Up(UpError::Running { .. }) => exit::STATE_IN_USE,
            Self::Open(state::OpenError::Thread(_))
            | Self::Start(_)
            | Self::Runtime(_)
            | Self::Demo(_)
            | Self::Up(_) => exit::FAILED,
            Self::DemoStopped(StopSignal::Interrupt) => exit::INTERRUPTED,
            Self::DemoStopped(StopSignal::Terminate) => exit::TERMINATED,
            Self::Listen { .. } => exit::ADDRESS,
            Self::Fatal(_) => exit::COMMIT_FAILED,
        }
    }

    /// The error and everything that led to it, for a person.
    pub(crate) fn report(&self) -> String {
        let mut text = format!("error: {self}");
        for cause in model::causes(self) {
            text.push_str(&format!("\n  caused by: {cause}"));
        }
        text
    }
}
