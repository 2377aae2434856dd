//! What a look at a store asks of the machine's file system besides contents: who owns a file, who may read it, how many
//! names it has. An engine never asks, so a simulated file system need not answer.

use std::ffi::OsString;
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::{Action, Disk, DiskError, Identity};

/// What stands at a path, without following a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Details {
    pub form: Form,
    /// The permission bits.
    pub mode: u32,
    /// The id of the user it belongs to.
    pub owner: u32,
    /// Names the file has.
    pub links: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Bytes it takes on the disk.
    pub allocated: u64,
    /// Which file it is.
    pub(crate) identity: Identity,
}

/// The forms of what stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    File,
    Folder,
    /// A symbolic link, a socket, a device.
    Other,
}

impl Disk {
    /// What stands at a path, if anything does.
    pub(crate) fn details(&self, path: &Path) -> Result<Option<Details>, DiskError> {
        match self.run(Action::Inspect, path, || fs::symlink_metadata(path)) {
            Ok(metadata) => Ok(Some(Details::of(&metadata))),
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

    /// Every name in a folder, whatever it is, in order; none when there is no such folder.
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
    fn of(metadata: &Metadata) -> Self {
        let form = if metadata.is_dir() {
            Form::Folder
        } else if metadata.is_file() {
            Form::File
        } else {
            Form::Other
        };
        Self {
            form,
            mode: metadata.permissions().mode() & 0o7777,
            owner: metadata.uid(),
            links: metadata.nlink(),
            bytes: metadata.len(),
            allocated: metadata.blocks() * 512,
            identity: Identity::of(metadata),
        }
    }
}
