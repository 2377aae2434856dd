//! Artifacts on their way out, read piece by piece.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use bytes::Bytes;
use model::JobId;
use sha2::{Digest, Sha256};
use workflow::hex;

use crate::error::ReadError;
use crate::files::blocking;
use crate::layout::Layout;
use crate::state::State;

/// An artifact open for reading. What is removed or replaced meanwhile is still read to its end.
pub struct Download {
    file: File,
    /// Below the state folder.
    path: String,
    check: Option<Check>,
}

/// Hashes an artifact while it is read from its first byte to its last.
struct Check {
    /// What it must come to, hexadecimal.
    sha256: String,
    size: u64,
    hash: Sha256,
    hashed: u64,
}

impl State {
    /// Opens the artifact of that name of a job, unless its file has been removed.
    pub async fn open_artifact(
        &self,
        job: JobId,
        name: &str,
    ) -> Result<Option<Download>, ReadError> {
        let (objects, key) = (self.objects().clone(), Layout::artifact(job, name));
        blocking(move || {
            let path = key.to_string();
            match objects.open(&key) {
                Ok(opened) => Ok(opened.map(|(file, _)| Download {
                    file,
                    path,
                    check: None,
                })),
                Err(error) => Err(ReadError::File {
                    path,
                    source: io::Error::other(error),
                }),
            }
        })
        .await
    }
}

impl Download {
    /// The same for whoever reads all of it in order, and does not get the last of its `size` bytes when the whole has
    /// another digest.
    #[must_use]
    pub fn checked(self, sha256: &str, size: u64) -> Self {
        let check = Check {
            sha256: sha256.to_owned(),
            size,
            hash: Sha256::new(),
            hashed: 0,
        };
        Self {
            check: Some(check),
            ..self
        }
    }

    /// So many bytes from byte `at` on. It comes back with them, for the next piece.
    pub async fn read(mut self, at: u64, length: usize) -> Result<(Self, Bytes), ReadError> {
        blocking(move || {
            let mut piece = vec![0; length];
            let read = self
                .file
                .seek(SeekFrom::Start(at))
                .and_then(|_| self.file.read_exact(&mut piece));
            match read {
                Ok(()) if self.is_damaged(&piece) => Err(ReadError::Damaged {
                    path: self.path,
                    problem: "it has another SHA-256 than was stored".to_owned(),
                }),
                Ok(()) => Ok((self, Bytes::from(piece))),
                Err(source) => Err(ReadError::File {
                    path: self.path,
                    source,
                }),
            }
        })
        .await
    }

    /// Whether this is the last piece of something else than was stored.
    fn is_damaged(&mut self, piece: &[u8]) -> bool {
        let Some(check) = &mut self.check else {
            return false;
        };
        check.hash.update(piece);
        check.hashed += piece.len() as u64;
        check.hashed == check.size && hex(&check.hash.finalize_reset()) != check.sha256
    }
}
