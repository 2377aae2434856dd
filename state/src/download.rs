//! Artifacts on their way out, read piece by piece.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use bytes::Bytes;
use model::JobId;

use crate::error::ReadError;
use crate::files::blocking;
use crate::layout::Layout;
use crate::state::State;

/// An artifact open for reading. What is removed or replaced meanwhile is still read to its end.
pub struct Download {
    file: File,
    size: u64,
    /// Below the state folder.
    path: String,
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
                Ok(opened) => Ok(opened.map(|(file, size)| Download { file, size, path })),
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
    /// In bytes.
    pub const fn size(&self) -> u64 {
        self.size
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
                Ok(()) => Ok((self, Bytes::from(piece))),
                Err(source) => Err(ReadError::File {
                    path: self.path,
                    source,
                }),
            }
        })
        .await
    }
}
