//! Receives artifacts: streams them to an object and hashes them. The commit that records the artifact adopts the
//! object.

use std::sync::Arc;

use bytes::Bytes;
use model::Artifact;
use model::decide::StoreArtifact;
use store::volume::{ObjectWriter, Volume};
use store::{Fault, Room, Staged};

use crate::alarm::Alarm;
use crate::blocking::{on_volume, room};
use crate::encode::adopt;
use crate::error::{SubmitError, WriteError};
use crate::layout::Layout;
use crate::limits::UPLOAD_BYTES;
use crate::state::State;

/// An artifact that is being received. Dropping it removes the unfinished object.
pub struct Upload {
    volume: Arc<dyn Volume>,
    writer: Box<dyn ObjectWriter>,
    /// Pieces that are not written yet.
    waiting: Vec<Bytes>,
    /// The length of all waiting pieces.
    waiting_bytes: usize,
    alarm: Alarm,
}

impl State {
    /// Begins to receive an artifact.
    pub async fn begin_upload(&self) -> Result<Upload, WriteError> {
        let writer = on_volume(self.volume(), begin_object).await?;
        Ok(Upload {
            volume: self.volume().clone(),
            writer,
            waiting: Vec::new(),
            waiting_bytes: 0,
            alarm: self.alarm().clone(),
        })
    }

    /// Records an artifact and adopts its object in the same commit. A repeat changes nothing.
    pub async fn store_artifact(
        &self,
        store: StoreArtifact,
        received: Staged,
    ) -> Result<Artifact, SubmitError> {
        let key = Layout::artifact(store.job, &store.name);
        self.submit_with(store, None, move |decision, batch| {
            if !decision.changes.is_empty() {
                adopt(batch, key.clone(), received.clone());
            }
        })
        .await
    }
}

impl Upload {
    /// Adds a piece. Many pieces are written together.
    pub async fn write(mut self, piece: Bytes) -> Result<Self, WriteError> {
        self.waiting_bytes += piece.len();
        self.waiting.push(piece);
        if self.waiting_bytes < UPLOAD_BYTES {
            return Ok(self);
        }
        on_volume(&self.volume.clone(), move |_| {
            self.flush()
                .map_err(|error| WriteError::new("tmp", error))?;
            Ok(self)
        })
        .await
    }

    /// Ends the upload. The object is durable when this returns. Dropping the result removes the object.
    pub async fn finish(mut self) -> Result<Staged, WriteError> {
        on_volume(&self.volume.clone(), move |_| {
            let finished = self.flush().and_then(|()| self.writer.finish());
            finished.map_err(|error| WriteError::watched(&self.alarm, "tmp", error))
        })
        .await
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.writer.write(&self.waiting)?;
        self.waiting.clear();
        self.waiting_bytes = 0;
        Ok(())
    }
}

/// Begins a large object, unless the disk is so full that only running jobs may end.
pub(crate) fn begin_object(volume: &dyn Volume) -> Result<Box<dyn ObjectWriter>, WriteError> {
    if room(volume) == Room::Full {
        return Err(WriteError::DiskFull);
    }
    let begun = volume.create_object();
    begun.map_err(|error| WriteError::new("tmp", error))
}
