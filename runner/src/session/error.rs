//! Why a session ended without a signal.

use std::io;

use client::Error as ClientError;
use wire::ErrorCode;

use crate::instance::InstanceError;
use crate::workdir::WorkdirError;

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("the daemon at {url} does not know this runner any more")]
    Unknown { url: String, source: ClientError },
    #[error("cannot talk to the daemon")]
    Client(#[source] ClientError),
    #[error(transparent)]
    Instance(#[from] InstanceError),
    #[error(transparent)]
    Workdir(#[from] WorkdirError),
    #[error("cannot start the thread of the jobs")]
    Thread(#[source] io::Error),
}

impl SessionError {
    /// Whether the daemon has lost the jobs: it does not know the runner, or no longer accepts its token.
    pub(super) fn has_lost_jobs(&self) -> bool {
        match self {
            Self::Unknown { source, .. } => source
                .problem()
                .is_some_and(|problem| problem.code == ErrorCode::Unauthorized),
            Self::Client(_) | Self::Instance(_) | Self::Workdir(_) | Self::Thread(_) => false,
        }
    }
}
