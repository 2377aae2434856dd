//! Downloads into files, checked against the digest that the daemon names.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use client::Download;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::error::Error;
use crate::progress::Progress;
use crate::session::Session;
use crate::terminal::Terminal;

/// Links that lead to a file, one after the other: the bound of Linux.
const LINKS: usize = 40;

/// Where a finished file goes.
#[derive(Debug)]
pub(crate) enum Target {
    /// A regular file, which is made or replaced at once.
    File(PathBuf),
    /// A device or a named pipe, which gets the content.
    Stream(PathBuf),
}

impl Target {
    /// What is at a path that a person named. Links are followed, also to a file that does not exist yet.
    pub(crate) fn named(path: &Path) -> Result<Self, Error> {
        let failed = Error::writing(path);
        let followed = || {
            let mut path = path.to_owned();
            for _ in 0..LINKS {
                let Ok(to) = fs::read_link(&path) else { break };
                path = folder_of(&path).join(to);
            }
            path
        };
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(failed(ErrorKind::IsADirectory.into())),
            Ok(found) if !found.is_file() => Ok(Self::Stream(path.to_owned())),
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(error)),
            Err(_) if path.as_os_str().as_bytes().ends_with(b"/") => Err(Error::Usage {
                what: format!("there is no folder {}", path.display()),
                hint: "make it with mkdir, or leave out the slash at the end to name a file",
            }),
            Ok(_) | Err(_) => Ok(Self::File(followed())),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Stream(path) => path,
        }
    }

    /// A file for the content until it is complete. It is in the folder of a regular file, so that one rename puts it in its
    /// place.
    pub(crate) fn temporary_file(&self) -> Result<NamedTempFile, Error> {
        let folder = match self {
            Self::File(path) => folder_of(path).to_owned(),
            Self::Stream(_) => std::env::temp_dir(),
        };
        tempfile::Builder::new()
            .prefix(".everscan-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(Error::writing(self.path()))
    }

    /// Puts the complete content in its place.
    pub(crate) fn persist(&self, mut file: NamedTempFile) -> Result<(), Error> {
        match self {
            Self::File(path) => file.persist(path).map(drop).map_err(io::Error::from),
            Self::Stream(path) => File::options().write(true).open(path).and_then(|mut to| {
                file.rewind()?;
                io::copy(&mut file, &mut to).map(drop)
            }),
        }
        .map_err(Error::writing(self.path()))
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    }
}

/// Passes every piece to `write` and checks the whole content.
pub(crate) async fn receive(
    session: &mut Session<'_>,
    transfer: &mut Download,
    what: &str,
    mut write: impl FnMut(&mut Terminal, &[u8]) -> Result<(), Error>,
) -> Result<u64, Error> {
    let mut progress = Progress::new(transfer.size());
    let mut digest = Sha256::new();
    let mut size = 0_u64;
    while let Some(piece) = transfer.piece().await? {
        write(session.terminal, &piece)?;
        digest.update(&piece);
        size = size.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        progress.add(piece.len(), session.terminal);
    }
    let found = workflow::hex(&digest.finalize());
    match transfer.sha256() {
        Some(expected) if expected != found => Err(Error::Damaged {
            artifact: what.to_owned(),
            expected,
            found,
        }),
        Some(_) | None => Ok(size),
    }
}
