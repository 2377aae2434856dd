//! Metadata of files, and operations that only inspections need: the mode, and names that are not UTF-8.

use std::ffi::OsString;
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::SystemTime;

use super::{Action, Disk, DiskError, Identity};

/// Metadata of a path, without following a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Details {
    pub form: Form,
    /// The permission bits.
    pub mode: u32,
    /// User id.
    pub owner: u32,
    /// Number of hard links.
    pub links: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Bytes it takes on the disk.
    pub allocated: u64,
    pub(crate) modified: SystemTime,
    pub(crate) identity: Identity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    File,
    Folder,
    /// A symbolic link, a socket, a device.
    Other,
}

impl Disk {
    /// `None` if the path does not exist.
    pub(crate) fn details(&self, path: &Path) -> Result<Option<Details>, DiskError> {
        match self.inspect(path) {
            Ok(details) => Ok(Some(details)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn set_mode(&self, path: &Path, mode: u32) -> Result<(), DiskError> {
        self.run(Action::ChangeMode, path, || {
            fs::set_permissions(path, Permissions::from_mode(mode))
        })
    }

    /// All names in a folder, in order; empty if the folder is missing.
    pub(crate) fn names(&self, path: &Path) -> Result<Vec<OsString>, DiskError> {
        let read = || {
            let mut names = fs::read_dir(path)?
                .map(|entry| Ok(entry?.file_name()))
                .collect::<io::Result<Vec<_>>>()?;
            names.sort_unstable();
            Ok(names)
        };
        match self.run(Action::ListFolder, path, read) {
            Err(error) if error.is_missing() => Ok(Vec::new()),
            result => result,
        }
    }
}

impl Details {
    pub(super) fn of(metadata: &Metadata) -> io::Result<Self> {
        let form = if metadata.is_dir() {
            Form::Folder
        } else if metadata.is_file() {
            Form::File
        } else {
            Form::Other
        };
        Ok(Self {
            form,
            mode: metadata.permissions().mode() & 0o7777,
            owner: metadata.uid(),
            links: metadata.nlink(),
            bytes: metadata.len(),
            allocated: metadata.blocks() * 512,
            modified: metadata.modified()?,
            identity: Identity {
                device: metadata.dev(),
                inode: metadata.ino(),
            },
        })
    }
}
