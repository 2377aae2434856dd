//! Downloads into files, checked against the digest that the daemon names.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use client::Download;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::error::Error;
use crate::progress::Progress;
use crate::session::Session;
use crate::terminal::Terminal;

/// A temporary file in the same folder, so that one rename puts the finished file in its place.
pub(crate) fn temporary_file_for(path: &Path) -> Result<NamedTempFile, Error> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    };
    tempfile::Builder::new()
        .prefix(".everscan-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(Error::writing(path))
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
