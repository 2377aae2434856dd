//! Artifacts on their way out, read piece by piece.

use std::sync::Arc;

use bytes::Bytes;
use model::JobId;
use sha2::{Digest, Sha256};
use store::volume::{ReadAt, Volume};
use workflow::hex;

use crate::blocking::on_volume;
use crate::error::ReadError;
use crate::layout::Layout;
use crate::state::State;

/// An artifact open for reading. What is removed or replaced meanwhile is still read to its end.
pub struct Download {
    volume: Arc<dyn Volume>,
    file: Box<dyn ReadAt>,
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
        let key = Layout::artifact(job, name);
        let path = key.to_string();
        let opened = on_volume(self.volume(), move |volume| {
            volume.open_object(&key).map_err(|source| ReadError::File {
                path: key.to_string(),
                source,
            })
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
        on_volume(&self.volume.clone(), move |_| {
            let piece = match self.file.read_at(at, length) {
                Ok(piece) => piece,
                Err(source) => {
                    return Err(ReadError::File {
                        path: self.path,
                        source,
                    });
                }
            };
            let problem = if piece.len() < length {
                "it is shorter than was stored"
            } else if self.is_damaged(&piece) {
                "it has another SHA-256 than was stored"
            } else {
                return Ok((self, Bytes::from(piece)));
            };
            Err(ReadError::Damaged {
                path: self.path,
                problem: problem.to_owned(),
            })
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
