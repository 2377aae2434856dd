//! Writes the zip and computes the content digest in one pass. Equal names, modes and contents give equal bytes: entries
//! are sorted, times are fixed, and nothing depends on the machine.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::Path;

use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};
use workflow::hex;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::ArtifactError;
use super::collect::{Entry, EntryKind, collect};
use super::left_out::{LeftOut, Oddity, unreadable};
use crate::limits;
use crate::workdir::open_without_links;

/// An entry of this length or more needs the long header.
const LONG_FORM: u64 = u32::MAX as u64;

#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) file: File,
    pub(crate) size: u64,
    /// `sha256:` and 64 hexadecimal digits: SHA-256 over every file entry in order of its name. For each entry: the length of the
    /// name, the name, the length of the content and the content, with lengths as 64 bit little endian. Modes, times, folders and
    /// the compression of the zip do not change it.
    pub(crate) content_digest: String,
    pub(crate) left_out: wire::LeftOut,
}

/// Packs `paths` of the job's folder into `file`, which must be empty.
///
/// A file has the length from when its folder was read: later additions of a process are left out. A `strict` artifact leaves out
/// nothing.
///
/// Blocks while it reads and writes. Calls `go_on` from time to time with the number of packed bytes and the total, and gives up
/// if `go_on` returns false.
/// After an error the content of the file must not be used.
pub(crate) fn pack(
    folder: &Path,
    paths: &[String],
    strict: bool,
    file: File,
    go_on: impl FnMut(u64, u64) -> bool,
) -> Result<Packed, ArtifactError> {
    let mut left_out = LeftOut::new(strict);
    let entries = collect(folder, paths, &mut left_out)?;
    let mut packer = Packer {
        zip: ZipWriter::new(BufWriter::new(file)),
        digest: Sha256::new(),
        piece: vec![0; limits::ARTIFACT_PIECE],
        packed: 0,
        all: entries.values().map(Entry::length).sum(),
        left_out,
        go_on,
    };
    for (name, entry) in &entries {
        packer.add(name, entry)?;
    }
    packer.finish()
}

struct Packer<G> {
    zip: ZipWriter<BufWriter<File>>,
    digest: Sha256,
    piece: Vec<u8>,
    packed: u64,
    all: u64,
    left_out: LeftOut,
    go_on: G,
}

impl<G: FnMut(u64, u64) -> bool> Packer<G> {
    fn add(&mut self, name: &str, entry: &Entry) -> Result<(), ArtifactError> {
        self.check()?;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(limits::ARTIFACT_COMPRESSION))
            .last_modified_time(DateTime::DEFAULT)
            .unix_permissions(entry.mode);
        match entry.kind {
            EntryKind::Folder => self
                .zip
                .add_directory(name, options)
                .map_err(|error| ArtifactError::Write(error.into())),
            EntryKind::File(length) => {
                let opened = self.left_out.tolerate(open(name, &entry.path))?;
                let Some(file) = opened else {
                    return Ok(());
                };
                self.zip
                    .start_file(name, options.large_file(length >= LONG_FORM))
                    .map_err(|error| ArtifactError::Write(error.into()))?;
                self.add_content(name, &entry.path, file, length)
            }
        }
    }

    fn check(&mut self) -> Result<(), ArtifactError> {
        if (self.go_on)(self.packed, self.all) {
            Ok(())
        } else {
            Err(ArtifactError::Stopped)
        }
    }

    /// Adds the content of the file that was started in the zip, up to the length from when its folder was read.
    fn add_content(
        &mut self,
        name: &str,
        path: &Path,
        file: File,
        length: u64,
    ) -> Result<(), ArtifactError> {
        let unreadable = |source| ArtifactError::Read {
            path: path.to_owned(),
            source,
        };
        let before = self.digest.clone();
        self.digest.update((name.len() as u64).to_le_bytes());
        self.digest.update(name.as_bytes());
        self.digest.update(length.to_le_bytes());
        let mut content = file.take(length);
        loop {
            let read = match content.read(&mut self.piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(unreadable(source)),
            };
            self.check()?;
            let piece = &self.piece[..read];
            self.digest.update(piece);
            self.zip.write_all(piece).map_err(ArtifactError::Write)?;
            self.packed += read as u64;
        }
        let oddity = if content.limit() > 0 {
            // The digest already contains the length.
            self.digest = before;
            self.zip
                .abort_file()
                .map_err(|error| ArtifactError::Write(error.into()))?;
            Oddity::Shrank
        } else if content.get_ref().metadata().map_err(unreadable)?.len() > length {
            Oddity::Grew(length)
        } else {
            return Ok(());
        };
        let name = name.to_owned();
        let odd = Err(ArtifactError::Odd { name, oddity });
        self.left_out.tolerate::<()>(odd).map(drop)
    }

    fn finish(self) -> Result<Packed, ArtifactError> {
        let writer = self
            .zip
            .finish()
            .map_err(|error| ArtifactError::Write(error.into()))?;
        let file = writer
            .into_inner()
            .map_err(|error| ArtifactError::Write(error.into_error()))?;
        let size = file.metadata().map_err(ArtifactError::Write)?.len();
        Ok(Packed {
            file,
            size,
            content_digest: format!("sha256:{}", hex(&self.digest.finalize())),
            left_out: self.left_out.summary(),
        })
    }
}

/// Opens a file to pack it. Its path was resolved earlier, but a process may have replaced the file or its folders since.
fn open(name: &str, path: &Path) -> Result<File, ArtifactError> {
    let failed = |source| unreadable(name, path, source);
    let file = open_without_links(path, OFlags::RDONLY).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_file() {
        Ok(file)
    } else {
        Err(ArtifactError::Odd {
            name: name.to_owned(),
            oddity: Oddity::Special,
        })
    }
}
