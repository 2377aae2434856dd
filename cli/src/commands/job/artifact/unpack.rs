//! Unpacks a zip into a folder. Artifacts hold files and folders that lie inside the job's own folder; anything else in
//! one was not packed by a runner, and nothing is written outside the folder whatever an entry is called.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use zip::ZipArchive;
use zip::read::ZipFile;

use crate::error::Error;

/// Permissions of a file whose entry has none.
const MODE: u32 = 0o666;

/// Writes every entry of `zip` below `folder` and answers how many files that were. Files that are there are replaced.
pub(super) fn unpack(zip: &File, artifact: &str, folder: &Path) -> Result<usize, Error> {
    let broken = |source| Error::NotUnpacked {
        artifact: artifact.to_owned(),
        source,
    };
    let mut archive = ZipArchive::new(zip).map_err(broken)?;
    let mut files = 0;
    for at in 0..archive.len() {
        let mut entry = archive.by_index(at).map_err(broken)?;
        let inside = entry
            .enclosed_name()
            .filter(|_| entry.is_file() || entry.is_dir());
        let Some(name) = inside else {
            return Err(broken(zip::result::ZipError::InvalidArchive(
                "an entry is neither a file nor a folder inside it".into(),
            )));
        };
        let path = folder.join(name);
        let failed = |source| Error::Write {
            path: path.clone(),
            source,
        };
        if entry.is_dir() {
            make_folder(&path).map_err(failed)?;
        } else {
            make_folder(path.parent().unwrap_or(folder))
                .and_then(|()| write(&mut entry, &path))
                .map_err(failed)?;
            files += 1;
        }
    }
    Ok(files)
}

/// Makes a folder and those above it.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(path)
}

fn write(entry: &mut ZipFile<'_, &File>, path: &Path) -> io::Result<()> {
    let mode = entry.unix_mode().unwrap_or(MODE) & 0o777;
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(path)?;
    io::copy(entry, &mut file).map(drop)
}
