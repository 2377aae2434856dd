//! Artifacts on their way in: streamed to disk and hashed, then durable under their key, and only then recorded.

use bytes::Bytes;
use model::JobId;
use store::objects::ObjectWriter;
use workflow::hex;

use crate::alarm::Alarm;
use crate::error::WriteError;
use crate::files::blocking;
use crate::layout::Layout;
use crate::state::State;

/// An artifact that is being received. Dropped unfinished, nothing of it stays.
pub struct Upload {
    writer: ObjectWriter,
    alarm: Alarm,
}

/// What was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// In bytes.
    pub size: u64,
    /// Hexadecimal.
    pub sha256: String,
}

impl State {
    /// Begins to receive an artifact.
    pub async fn begin_upload(&self) -> Result<Upload, WriteError> {
        let (objects, alarm) = (self.objects().clone(), self.alarm().clone());
        blocking(move || match objects.create() {
            Ok(writer) => Ok(Upload { writer, alarm }),
            Err(error) => Err(WriteError::new("tmp", error)),
        })
        .await
    }
}

impl Upload {
    /// Adds a piece.
    pub async fn write(mut self, piece: Bytes) -> Result<Self, WriteError> {
        blocking(move || {
            self.writer
                .write(&piece)
                .map_err(|error| WriteError::new("tmp", error))?;
            Ok(self)
        })
        .await
    }

    /// What has been received so far.
    pub fn received(&self) -> Stored {
        Stored {
            size: self.writer.size(),
            sha256: hex(&self.writer.sha256()),
        }
    }

    /// Makes it the artifact of that name of a job. Durable when this returns; not recorded yet.
    pub async fn finish(self, job: JobId, name: &str) -> Result<Stored, WriteError> {
        let key = Layout::artifact(job, name);
        blocking(move || {
            let finished = self.writer.finish(&key);
            let info = finished.map_err(|error| WriteError::watched(&self.alarm, &key, error))?;
            Ok(Stored {
                size: info.size,
                sha256: hex(&info.sha256),
            })
        })
        .await
    }
}
