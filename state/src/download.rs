//! Reads artifacts and blobs, piece by piece.

use std::sync::Arc;

use bytes::Bytes;
use model::JobId;
use sha2::{Digest, Sha256};
use store::Key;
use store::volume::{ReadAt, Volume};
use workflow::hex;

use crate::blocking::on_volume;
use crate::error::ReadError;
use crate::layout::Layout;
use crate::state::State;

/// An object that is open for reading. It stays readable if it is removed or replaced meanwhile.
pub struct Download {
    volume: Arc<dyn Volume>,
    file: Box<dyn ReadAt>,
    /// Relative to the state folder.
    path: String,
    check: Option<Check>,
}

struct Check {
    /// The expected digest, hexadecimal.
    sha256: String,
    size: u64,
    hash: Sha256,
    hashed: u64,
}

impl State {
    /// Opens a job's artifact, unless its file has been removed.
    pub async fn open_artifact(
        &self,
        job: JobId,
        name: &str,
    ) -> Result<Option<Download>, ReadError> {
        self.open_object(Layout::artifact(job, name)).await
    }

    pub(crate) async fn open_object(&self, key: Key) -> Result<Option<Download>, ReadError> {
        let path = key.to_string();
        let opened = on_volume(self.volume(), move |volume| {
            let opened = volume.open_object(&key);
            opened.map_err(|source| ReadError::file(&key, source))
        });
        Ok(opened.await?.map(|file| Download {
            volume: self.volume().clone(),
            file,
            path,
            check: None,
        }))
    }
}

impl Download {
    /// Checks the digest for a caller that reads all pieces in order: the last read fails if the digest differs.
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

    /// Reads `length` bytes from byte `at` on. Returns the download for the next piece.
    pub async fn read(mut self, at: u64, length: usize) -> Result<(Self, Bytes), ReadError> {
        on_volume(&self.volume.clone(), move |_| {
            let piece = match self.file.read_at(at, length) {
                Ok(piece) => piece,
                Err(source) => return Err(ReadError::file(self.path, source)),
            };
            let problem = if piece.len() < length {
                "it is shorter than was stored"
            } else if self.is_damaged(&piece) {
                "it has another SHA-256 than was stored"
            } else {
                return Ok((self, Bytes::from(piece)));
            };
            Err(ReadError::damaged(self.path, problem))
        })
        .await
    }

    /// True if this is the last piece and the digest of the content differs from the expected digest.
    fn is_damaged(&mut self, piece: &[u8]) -> bool {
        let Some(check) = &mut self.check else {
            return false;
        };
        check.hash.update(piece);
        check.hashed += piece.len() as u64;
        check.hashed == check.size && hex(&check.hash.finalize_reset()) != check.sha256
    }
}
