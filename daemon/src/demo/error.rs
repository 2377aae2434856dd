//! Why the demonstration failed.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use thiserror::Error;

use crate::stop_signal::StopSignal;

#[derive(Debug, Error)]
pub(crate) enum DemoError {
    #[error("cannot make {}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot start `{program}`{}", if program == "git" { "; is Git installed?" } else { "" })]
    Spawn {
        program: String,
        source: std::io::Error,
    },
    #[error("`{command}` ended with {status}: {stderr}")]
    Failed {
        command: String,
        status: ExitStatus,
        stderr: String,
    },
    #[error("{program} did not print {expected}")]
    Silent {
        program: &'static str,
        expected: &'static str,
    },
    #[error("{0}")]
    Unexpected(String),
    #[error("stopped by a signal")]
    Stopped(StopSignal),
    #[error("cannot wait for signals")]
    Signals(#[source] std::io::Error),
    #[error("cannot write to the terminal")]
    Terminal(#[source] std::io::Error),
}

impl DemoError {
    pub(super) fn file(path: &Path) -> impl Fn(std::io::Error) -> Self + Copy {
        |source| Self::File {
            path: path.to_owned(),
            source,
        }
    }
}
