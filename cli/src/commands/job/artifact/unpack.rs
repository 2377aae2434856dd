//! Unpacks a zip into a folder. No entry can be written outside of the folder: an entry with an impossible name, or with something in
//! its way, is reported, and the rest is unpacked. The entries first go to a temporary folder inside it, and are moved after all of them are unpacked.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

use crate::error::Error;
use crate::limits;

/// The permissions of a file whose entry has none.
const MODE: u32 = 0o666;

/// The default limit for the unpacked bytes of a zip of `size` bytes.
pub(super) fn most_bytes(size: u64) -> u64 {
    size.saturating_mul(limits::UNPACKED_TIMES)
        .max(limits::UNPACKED)
}

pub(super) struct Unpacked {
    /// The number of files.
    pub(super) files: usize,
    /// Each entry that is not unpacked, and the reason.
    pub(super) left_out: Vec<(String, String)>,
}

/// Unpacks `zip` into `folder`. Existing files are replaced. If the zip is damaged or its files exceed `limit` bytes, nothing is
/// left behind.
pub(super) fn unpack(
    zip: &File,
    artifact: &str,
    folder: &Path,
    limit: u64,
) -> Result<Unpacked, Error> {
    let broken = |source| Error::NotUnpacked {
        artifact: artifact.to_owned(),
        source,
    };
    let invalid = |why| broken(ZipError::InvalidArchive(why));
    let mut archive = ZipArchive::new(zip).map_err(broken)?;
    if archive.len() > limits::UNPACKED_ENTRIES {
        return Err(invalid("it has more than 1,000,000 entries".into()));
    }
    let temporary = tempfile::Builder::new()
        .prefix(".everscan-")
        .tempdir_in(folder)
        .map_err(|source| failed(folder, source))?;
    let (mut folders, mut files) = (BTreeSet::new(), BTreeSet::new());
    let (mut left, mut left_out) = (limit, Vec::new());
    for at in 0..archive.len() {
        let mut entry = archive.by_index(at).map_err(broken)?;
        let entry_name = entry.name().map_err(broken)?.into_owned();
        let name = match inside(&entry_name) {
            Ok(_) if entry.is_symlink() => Err("it is a link"),
            name => name,
        };
        let name = match name {
            Ok(name) => name,
            Err(reason) => {
                left_out.push((entry_name, reason.to_owned()));
                continue;
            }
        };
        let path = temporary.path().join(&name);
        // The library treats a backslash at the end as a slash.
        let is_folder = entry_name.ends_with('/');
        let written = if is_folder {
            make_folder(&path).map(|()| 0)
        } else {
            make_folder(path.parent().unwrap_or(folder))
                .and_then(|()| write(&mut entry, &path, left))
        };
        let written = match written {
            Ok(written) => written,
            Err(error) if is_of_the_name(&error) => {
                left_out.push((entry_name, error.to_string()));
                continue;
            }
            Err(source) => return Err(failed(&folder.join(&name), source)),
        };
        if is_folder {
            folders.insert(name);
            continue;
        }
        left = left
            .checked_sub(written)
            .ok_or_else(|| Error::TooMuchUnpacked {
                artifact: artifact.to_owned(),
                limit,
            })?;
        files.insert(name);
    }
    let (mut count, names) = (0, [(folders, true), (files, false)]);
    for (names, is_folder) in names {
        for name in names {
            match place(temporary.path(), folder, &name, is_folder) {
                Ok(()) if is_folder => {}
                Ok(()) => count += 1,
                Err(reason) => left_out.push((name.display().to_string(), reason)),
            }
        }
    }
    Ok(Unpacked {
        files: count,
        left_out,
    })
}

/// The path of an entry, or why it has none in the folder. As on the runner's machine, backslashes and colons are ordinary
/// characters.
fn inside(name: &str) -> Result<PathBuf, &'static str> {
    if name.contains('\0') {
        return Err("its name has a null character");
    }
    let components = Path::new(name).components();
    let path = components
        .map(|component| match component {
            Component::Normal(part) => Some(Path::new(part)),
            Component::CurDir
            | Component::ParentDir
            | Component::RootDir
            | Component::Prefix(_) => None,
        })
        .collect::<Option<PathBuf>>();
    path.filter(|path| !path.as_os_str().is_empty())
        .ok_or("its path leads out of the folder")
}

/// True if the file system cannot have a file of this name: it is too long, has other characters, or is a folder and a file.
fn is_of_the_name(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidFilename
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::AlreadyExists
    )
}

/// Puts one entry into the folder, or says what is in its way. Links in the folder are not followed, because they may lead out of
/// it.
#[expect(
    clippy::disallowed_methods,
    reason = "the files belong to the user, not to a state"
)]
fn place(from: &Path, to: &Path, name: &Path, is_folder: bool) -> Result<(), String> {
    let parents = name.parent().filter(|_| !is_folder);
    let parents = parents.unwrap_or(name).components();
    let mut parent = PathBuf::new();
    for part in parents {
        parent.push(part);
        let path = to.join(&parent);
        let there = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_folder(&path).map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
            Ok(found) if found.is_symlink() => Err("a link is in the way".to_owned()),
            Ok(found) if !found.is_dir() => Err("a file is in the way".to_owned()),
            Ok(_) => Ok(()),
        };
        there.map_err(|why| format!("{why}: {}", parent.display()))?;
    }
    if is_folder {
        return Ok(());
    }
    fs::rename(from.join(name), to.join(name)).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => "a folder is in the way".to_owned(),
        _ => error.to_string(),
    })
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::Write {
        path: path.to_owned(),
        source,
    }
}

pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(path)
}

/// Writes the entry's content, at most one byte more than `limit`, and returns the number of bytes.
fn write(entry: &mut ZipFile<'_, &File>, path: &Path, limit: u64) -> io::Result<u64> {
    let mode = entry.unix_mode().unwrap_or(MODE) & 0o777;
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(path)?;
    io::copy(&mut entry.take(limit.saturating_add(1)), &mut file)
}
