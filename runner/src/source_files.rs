//! Writes the files of a repository into the folder of a job.
//!
//! The tar is not trusted. A file is created only where nothing exists, in folders that this code made. All symbolic links are
//! made last, so nothing is ever written through a link. The target of a link is not followed and not changed: it stays as it is
//! in Git.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tar::{Archive, EntryType};

use crate::limits;
use crate::source_cache::Digest;

pub(crate) const FOLDER: &str = "source";

const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// A pointer is shorter than this limit of the Git LFS specification.
const POINTER_BYTES: u64 = 1024;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) files: u64,
    pub(crate) submodules: Names,
    pub(crate) pointers: Names,
}

/// The first names of a list, and their total number.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    first: Vec<String>,
    count: usize,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("{path} {problem}")]
    Refused { path: String, problem: String },
    #[error("cannot write {path}")]
    Write { path: String, source: io::Error },
    #[error("the files cannot be read")]
    Read(#[source] io::Error),
    #[error("there are more than {limit} files", limit = limits::SOURCE_ENTRIES)]
    TooMany,
    #[error("they were changed since they came from the daemon")]
    Changed,
    #[error("the job was stopped")]
    Stopped,
}

impl SourceError {
    /// Whether the error is caused by the tar, and not by the target folder.
    pub(crate) const fn is_of_tar(&self) -> bool {
        match self {
            Self::Refused { .. } | Self::Read(_) | Self::TooMany | Self::Changed => true,
            Self::Write { .. } | Self::Stopped => false,
        }
    }
}

/// Writes the entries of `tar` into a new folder. The bytes read must have this digest. After an error, the folder may be
/// incomplete and must not be used.
pub(crate) fn write(
    mut tar: File,
    digest: Digest,
    folder: &Path,
    is_stopped: impl Fn() -> bool,
) -> Result<Written, SourceError> {
    tar.rewind().map_err(SourceError::Read)?;
    let hashed = Hashed {
        tar,
        hasher: Sha256::new(),
    };
    let mut archive = Archive::new(BufReader::with_capacity(limits::SOURCE_PIECE, hashed));
    let mut writer = Writer {
        folder,
        folders: HashSet::new(),
        buffer: vec![0; limits::SOURCE_PIECE],
        written: Written::default(),
    };
    DirBuilder::new()
        .create(folder)
        .map_err(|error| failed(FOLDER.as_bytes(), error))?;
    let mut links: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for (number, entry) in archive.entries().map_err(SourceError::Read)?.enumerate() {
        if is_stopped() {
            return Err(SourceError::Stopped);
        }
        if number >= limits::SOURCE_ENTRIES {
            return Err(SourceError::TooMany);
        }
        let mut entry = entry.map_err(SourceError::Read)?;
        let path = entry.path_bytes().into_owned();
        let kind = entry.header().entry_type();
        let path = match kind {
            EntryType::Directory => path.strip_suffix(b"/").unwrap_or(&path).to_vec(),
            _ => path,
        };
        check(&path)?;
        match kind {
            EntryType::Regular => writer.file(&path, &mut entry)?,
            EntryType::Directory => writer.submodule(&path)?,
            EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default().into_owned();
                links.push((path, target));
            }
            _ => return Err(refused(&path, "is neither a file nor a link nor a folder")),
        }
    }
    for (path, target) in links {
        writer.link(&path, &target)?;
    }
    let mut hashed = archive.into_inner().into_inner();
    io::copy(&mut hashed, &mut io::sink()).map_err(SourceError::Read)?;
    if digest != <Digest>::from(hashed.hasher.finalize()) {
        return Err(SourceError::Changed);
    }
    Ok(writer.written)
}

struct Hashed {
    tar: File,
    hasher: Sha256,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.tar.read(buffer)?;
        self.hasher.update(&buffer[..length]);
        Ok(length)
    }
}

struct Writer<'a> {
    folder: &'a Path,
    folders: HashSet<Vec<u8>>,
    buffer: Vec<u8>,
    written: Written,
}

impl Writer<'_> {
    fn file(
        &mut self,
        path: &[u8],
        entry: &mut tar::Entry<'_, impl Read>,
    ) -> Result<(), SourceError> {
        self.folders_above(path)?;
        let mode = entry.header().mode().map_err(SourceError::Read)?;
        let mode = if mode & 0o100 == 0 { 0o644 } else { 0o755 };
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(self.at(path));
        let mut file = made.map_err(|error| failed(path, error))?;
        // The umask of this process may be stricter.
        file.set_permissions(Permissions::from_mode(mode))
            .map_err(|error| failed(path, error))?;
        let size = entry.size();
        let mut is_first = true;
        loop {
            let length = entry.read(&mut self.buffer).map_err(SourceError::Read)?;
            let piece = &self.buffer[..length];
            if is_first && size < POINTER_BYTES && piece.starts_with(POINTER) {
                self.written.pointers.add(path);
            }
            is_first = false;
            if piece.is_empty() {
                break;
            }
            file.write_all(piece).map_err(|error| failed(path, error))?;
        }
        self.written.files += 1;
        Ok(())
    }

    fn submodule(&mut self, path: &[u8]) -> Result<(), SourceError> {
        self.folders_above(path)?;
        self.make_folder(path)?;
        self.written.submodules.add(path);
        Ok(())
    }

    fn link(&mut self, path: &[u8], target: &[u8]) -> Result<(), SourceError> {
        self.folders_above(path)?;
        symlink(OsStr::from_bytes(target), self.at(path)).map_err(|error| failed(path, error))?;
        self.written.files += 1;
        Ok(())
    }

    /// Makes the folders above a path. Only folders made by this code are accepted: a link in their place is refused.
    fn folders_above(&mut self, path: &[u8]) -> Result<(), SourceError> {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let ends: Vec<usize> = slashes.map(|(at, _)| at).collect();
        let missing: Vec<usize> = ends
            .iter()
            .rev()
            .take_while(|end| !self.folders.contains(&path[..**end]))
            .copied()
            .collect();
        for end in missing.into_iter().rev() {
            self.make_folder(&path[..end])?;
        }
        Ok(())
    }

    fn make_folder(&mut self, path: &[u8]) -> Result<(), SourceError> {
        if self.folders.contains(path) {
            return Ok(());
        }
        DirBuilder::new()
            .create(self.at(path))
            .map_err(|error| failed(path, error))?;
        self.folders.insert(path.to_vec());
        Ok(())
    }

    fn at(&self, path: &[u8]) -> PathBuf {
        self.folder.join(OsStr::from_bytes(path))
    }
}

fn check(path: &[u8]) -> Result<(), SourceError> {
    for name in path.split(|byte| *byte == b'/') {
        if name.is_empty() || name == b"." || name == b".." || name.contains(&0) {
            return Err(refused(path, "is no path below the folder of the files"));
        }
        if name.eq_ignore_ascii_case(b".git") {
            return Err(refused(path, "has the name of a repository's own folder"));
        }
    }
    Ok(())
}

fn refused(path: &[u8], problem: &str) -> SourceError {
    SourceError::Refused {
        path: shown(path),
        problem: problem.to_owned(),
    }
}

fn failed(path: &[u8], error: io::Error) -> SourceError {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return refused(path, "is there twice");
    }
    SourceError::Write {
        path: shown(path),
        source: error,
    }
}

fn shown(path: &[u8]) -> String {
    let text = path.escape_ascii().to_string();
    text.chars().take(limits::SHOWN_PATH_CHARS).collect()
}

impl Names {
    fn add(&mut self, path: &[u8]) {
        self.count += 1;
        if self.first.len() < limits::NAMED_FILES {
            self.first.push(shown(path));
        }
    }

    pub(crate) fn line(&self) -> Option<String> {
        let names = self.first.join(", ");
        match self.count - self.first.len() {
            0 if self.count == 0 => None,
            0 => Some(names),
            more => Some(format!("{names} and {more} more")),
        }
    }
}

#[cfg(test)]
mod tests;
