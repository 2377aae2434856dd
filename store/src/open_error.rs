//! Why a store on files cannot be opened, by the engine or by a tool that works without a daemon.

use std::path::{Path, PathBuf};

use crate::disk::DiskError;
use crate::engine::{self, OpenErrorKind};
use crate::lock::Owner;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "{root} holds files but no state; choose an empty or missing folder, or an existing state folder"
    )]
    NotAState { root: PathBuf },
    #[error(
        "{path} says format {found}, and this program knows formats up to {supported}; use the newer program that \
         wrote it, nothing was changed"
    )]
    NewerFormat {
        path: PathBuf,
        found: u64,
        supported: u64,
    },
    #[error("{root} is in use by {owner}; stop that process first, or choose another folder")]
    Locked { root: PathBuf, owner: Owner },
    #[error(
        "{path} is damaged at byte {offset}: {what}; acknowledged changes may be lost, so nothing was changed: \
         `everscand fsck` lists them; restore them from a backup"
    )]
    Damaged {
        path: PathBuf,
        offset: u64,
        what: String,
    },
    #[error(
        "{root} is on a network file system ({protocol}), where a lock may not keep a second daemon away \
         and a sync may not reach the disk; choose a folder on a disk of this machine"
    )]
    Network {
        root: PathBuf,
        protocol: &'static str,
    },
    #[error(
        "{path} cannot be written, since its file system is read-only; mount it for writing, and if this was not intended, \
         check the disk first: the kernel mounts a disk read-only after an error"
    )]
    ReadOnly { path: PathBuf },
    #[error(transparent)]
    Disk(DiskError),
}

impl From<DiskError> for OpenError {
    fn from(error: DiskError) -> Self {
        if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem {
            return Self::ReadOnly {
                path: error.path().to_owned(),
            };
        }
        Self::Disk(error)
    }
}

impl OpenError {
    pub(crate) fn damaged(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            offset,
            what: what.into(),
        }
    }

    pub fn kind(&self) -> OpenErrorKind {
        match self {
            Self::Locked { .. } => OpenErrorKind::InUse,
            Self::NewerFormat { .. } => OpenErrorKind::NewerFormat,
            Self::Network { .. } => OpenErrorKind::Network,
            Self::NotAState { .. } | Self::Damaged { .. } | Self::ReadOnly { .. } => {
                OpenErrorKind::Unusable
            }
            Self::Disk(error) if error.is_full() => OpenErrorKind::Full,
            Self::Disk(_) => OpenErrorKind::Failed,
        }
    }
}

impl From<OpenError> for engine::OpenError {
    fn from(error: OpenError) -> Self {
        Self::new(error.kind(), error)
    }
}
