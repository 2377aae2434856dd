//! Errors of `up`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use runner::{ConfigurationError, SessionError};
use thiserror::Error;

#[derive(Debug, Error)]
pub(crate) enum UpError {
    #[error("the folder {} does not exist", path.display())]
    Missing { path: PathBuf },
    #[error("cannot use the folder {}", path.display())]
    Folder {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot start `git`; is Git installed?")]
    NoGit(#[source] std::io::Error),
    #[error(
        "everscand up runs here already{}{}",
        address.map_or_else(String::new, |address| format!(" at http://{address}")),
        process.map_or_else(String::new, |process| format!(" (process {process})"))
    )]
    Running {
        address: Option<SocketAddr>,
        process: Option<u32>,
    },
    #[error("`{command}` failed: {stderr}")]
    Git { command: String, stderr: String },
    #[error("the repository {} has SHA-256 object names, and only SHA-1 is supported", path.display())]
    Sha256 { path: PathBuf },
    #[error("cannot prepare the runner")]
    Prepare(#[from] state::SubmitError),
    #[error("cannot prepare the runner")]
    Configuration(#[from] ConfigurationError),
    #[error("cannot register the runner")]
    Register(#[source] client::Error),
    #[error("the runner cannot go on")]
    Runner(#[source] SessionError),
    #[error("the runner ended by itself")]
    RunnerEnded,
}

impl UpError {
    pub(super) fn folder(path: &Path) -> impl Fn(std::io::Error) -> Self + Copy {
        |source| Self::Folder {
            path: path.to_owned(),
            source,
        }
    }
}
