//! Writes the zip and computes the content digest in one pass. Equal names, modes and contents give equal bytes: entries
//! are sorted, times are fixed, and nothing depends on the machine.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use workflow::hex;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::ArtifactError;
use super::collect::{Entry, EntryKind, collect};
use crate::limits;

/// From this length on an entry needs the long header.
const LONG_FORM: u64 = u32::MAX as u64;

/// A zip ready to be uploaded.
#[derive(Debug)]
pub(crate) struct Packed {
    /// The zip, open for reading.
    pub(crate) file: File,
    /// Its length in bytes.
    pub(crate) size: u64,
    /// `sha256:` and 64 hexadecimal digits: SHA-256 over every file entry in order of its name, for each the length of
    /// the name, the name, the length of the content and the content, lengths as 64 bit little endian. Neither modes
    /// nor times nor folders change it, nor how the zip was compressed.
    pub(crate) content_digest: String,
}

/// Packs `paths` of the job's folder into `file`, which must be empty.
///
/// Blocks while it reads and writes. Calls `go_on` from time to time with the number of bytes that are packed and of all
/// bytes, and gives up if it answers no.
///
/// # Errors
/// [`ArtifactError`]; the content of the file is not usable then.
pub(crate) fn pack(
    folder: &Path,
    paths: &[String],
    file: File,
    go_on: impl FnMut(u64, u64) -> bool,
) -> Result<Packed, ArtifactError> {
    let entries = collect(folder, paths)?;
    let mut packer = Packer {
        zip: ZipWriter::new(BufWriter::new(file)),
        digest: Sha256::new(),
        piece: vec![0; limits::ARTIFACT_PIECE],
        packed: 0,
        all: entries.values().map(Entry::length).sum(),
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
    /// Bytes of files that are packed.
    packed: u64,
    /// Bytes of all files.
    all: u64,
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
                self.zip
                    .start_file(name, options.large_file(length >= LONG_FORM))
                    .map_err(|error| ArtifactError::Write(error.into()))?;
                self.add_content(name, &entry.path, length)
            }
        }
    }

    /// Whether the packing goes on.
    fn check(&mut self) -> Result<(), ArtifactError> {
        if (self.go_on)(self.packed, self.all) {
            Ok(())
        } else {
            Err(ArtifactError::Stopped)
        }
    }

    fn add_content(&mut self, name: &str, path: &Path, length: u64) -> Result<(), ArtifactError> {
        let unreadable = |source| ArtifactError::Read {
            path: path.to_owned(),
            source,
        };
        let changed = || ArtifactError::Changed {
            name: name.to_owned(),
        };
        self.digest.update((name.len() as u64).to_le_bytes());
        self.digest.update(name.as_bytes());
        self.digest.update(length.to_le_bytes());
        let mut file = File::open(path).map_err(unreadable)?;
        let mut left = length;
        loop {
            let read = match file.read(&mut self.piece) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(unreadable(source)),
            };
            if read == 0 {
                return if left == 0 { Ok(()) } else { Err(changed()) };
            }
            self.check()?;
            // The length was hashed before the content, so a file that still grows cannot be packed.
            left = left.checked_sub(read as u64).ok_or_else(changed)?;
            let piece = &self.piece[..read];
            self.digest.update(piece);
            self.zip.write_all(piece).map_err(ArtifactError::Write)?;
            self.packed += read as u64;
        }
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
        })
    }
}
