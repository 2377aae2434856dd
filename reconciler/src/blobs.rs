//! Storing, copying, moving and removing blobs.
//!
//! The world does not hold blobs, so their commands carry the records that they change. A lock per project is held from
//! reading a record until its change is committed. The bytes of an upload are reserved while its content arrives, so
//! that two uploads cannot use the same last byte of a quota.

mod versions;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use chrono::TimeDelta;
use model::blob_versions::is_version;
use model::decide::{MoveBlob, Refusal, RemoveBlob, StoreBlob};
use model::{
    Actor, Blob, BlobCondition, BlobPath, Clock, KeptVersions, ProjectId, Timestamp, World,
};
use state::{ReadError, State, Upload};
use store::Staged;
use workflow::hex;

use crate::error::BlobError;
use crate::limits::EXPIRED_BLOBS;
use crate::supervise::{lock, uninterrupted};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlobSettings {
    /// The most bytes that the blobs of a project may take.
    pub quota: Option<u64>,
    pub versions: KeptVersions,
}

/// The blobs of all projects. Cheap to clone.
#[derive(Clone)]
pub struct Blobs {
    state: State,
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    settings: BlobSettings,
    locks: Mutex<HashMap<ProjectId, Arc<tokio::sync::Mutex<()>>>>,
    /// Bytes that are promised to uploads.
    reserved: Mutex<HashMap<ProjectId, u64>>,
}

#[derive(Debug, Clone)]
pub struct NewBlob {
    pub project: ProjectId,
    pub path: BlobPath,
    pub expires_in: Option<TimeDelta>,
    /// The condition on the present blob at this path.
    pub condition: BlobCondition,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct Stored {
    pub blob: Blob,
    /// True if there was no blob before.
    pub is_new: bool,
}

/// A blob whose content is being received. If it is dropped unfinished, nothing is stored.
pub struct BlobUpload {
    blobs: Blobs,
    new: NewBlob,
    upload: Upload,
    received: u64,
    reservation: Reservation,
}

/// Bytes of a project that are promised to an upload until this is dropped.
struct Reservation {
    blobs: Blobs,
    project: ProjectId,
    /// Bytes of the blob that the upload replaces.
    replaced: u64,
    bytes: u64,
}

impl Blobs {
    pub(crate) fn new(state: State, clock: Arc<dyn Clock>, settings: BlobSettings) -> Self {
        let shared = Shared {
            clock,
            settings,
            locks: Mutex::default(),
            reserved: Mutex::default(),
        };
        Self {
            state,
            shared: Arc::new(shared),
        }
    }

    /// The same blobs for one request of a person, with this state.
    pub(crate) fn with_state(&self, state: State) -> Self {
        Self {
            state,
            shared: self.shared.clone(),
        }
    }

    /// The time with which expiry times are compared.
    fn steady(&self) -> Timestamp {
        let steady = |world: &World| world.time(self.shared.clock.steady());
        self.state.read(steady)
    }

    /// Begins to receive a blob. Checks everything that can be checked before the content arrives.
    pub async fn begin(
        &self,
        new: NewBlob,
        announced: Option<u64>,
    ) -> Result<BlobUpload, BlobError> {
        let before = self.state.blob(new.project, &new.path).await?;
        let present = before.as_ref().filter(|blob| !blob.is_over(self.steady()));
        if !new.condition.holds(present) {
            return Err(BlobError::refused(Refusal::BlobChanged {
                path: new.path.to_string(),
                exists: present.is_some(),
            }));
        }
        self.check_new(new.project, &new.path, before.as_ref())
            .await?;
        let mut reservation = Reservation {
            blobs: self.clone(),
            project: new.project,
            replaced: before.map_or(0, |blob| blob.size),
            bytes: 0,
        };
        reservation.reach(announced.unwrap_or(0))?;
        Ok(BlobUpload {
            blobs: self.clone(),
            new,
            upload: self.state.begin_upload().await?,
            received: 0,
            reservation,
        })
    }

    /// Copies a blob within its project. If the disk supports hard links, no content is copied.
    pub async fn copy(&self, from: BlobPath, new: NewBlob) -> Result<Stored, BlobError> {
        refuse_same(&from, &new.path)?;
        self.with_lock(new.project, async move |blobs: Self| {
            let blob = blobs.present(new.project, &from).await?;
            let before = blobs.state.blob(new.project, &new.path).await?;
            let content = blobs
                .share(&blob, &new.path, before.as_ref(), &new.condition)
                .await?;
            let is_new = before.is_none();
            let store = blobs.store(new, before, blob.size, blob.sha256);
            let blob = blobs.state.store_blob(store, content).await?;
            Ok(Stored { blob, is_new })
        })
        .await
    }

    pub async fn rename(
        &self,
        project: ProjectId,
        from: BlobPath,
        to: BlobPath,
        condition: BlobCondition,
    ) -> Result<Stored, BlobError> {
        refuse_same(&from, &to)?;
        self.with_lock(project, async move |blobs: Self| {
            let blob = blobs.present(project, &from).await?;
            let before = blobs.state.blob(project, &to).await?;
            let content = blobs.share(&blob, &to, before.as_ref(), &condition).await?;
            let is_new = before.is_none();
            let command = MoveBlob {
                blob,
                to,
                before,
                condition,
            };
            let blob = blobs.state.move_blob(command, content).await?;
            Ok(Stored { blob, is_new })
        })
        .await
    }

    pub async fn delete(
        &self,
        project: ProjectId,
        path: BlobPath,
        condition: BlobCondition,
    ) -> Result<(), BlobError> {
        self.with_lock(project, async move |blobs: Self| {
            let blob = blobs.present(project, &path).await?;
            let remove = RemoveBlob { blob, condition };
            Ok(blobs.state.submit(remove).await?)
        })
        .await
    }

    /// Removes expired blobs. `ages` returns the time for computing ages, or none while the clock is not trusted.
    pub(crate) async fn remove_expired(
        &self,
        ages: impl Fn() -> Option<Timestamp>,
    ) -> Result<(), BlobError> {
        loop {
            let Some(now) = ages() else {
                return Ok(());
            };
            let over = self
                .state
                .read(|world| world.expired_blobs(now, EXPIRED_BLOBS));
            if over.is_empty() {
                return Ok(());
            }
            for known in over {
                let project = known.project;
                let removal = async move |blobs: Self| {
                    let found = blobs.state.blob(project, &known.path).await?;
                    // A person may have removed the blob's files by hand.
                    let blob = found.unwrap_or_else(|| Blob::clone(&known));
                    let is_over = |world: &World| world.is_blob_over(project, &known.path, now);
                    if !blobs.state.read(is_over) {
                        // The blob was stored again meanwhile.
                        return Ok(());
                    }
                    tracing::info!(path = %blob.path, bytes = blob.size, "an expired blob is removed");
                    let condition = BlobCondition::None;
                    let remove = RemoveBlob { blob, condition };
                    Ok(blobs.state.submit(remove).await?)
                };
                self.with_lock(project, removal).await?;
            }
        }
    }

    /// Gives a blob's content a second path. None if the blob at that path already has this content.
    async fn share(
        &self,
        blob: &Blob,
        to: &BlobPath,
        before: Option<&Blob>,
        condition: &BlobCondition,
    ) -> Result<Option<Staged>, BlobError> {
        self.check_new(blob.project, to, before).await?;
        let content = match before {
            Some(before) if before.sha256 == blob.sha256 => None,
            _ => Some(self.state.share_blob(blob).await?),
        };
        self.keep_version(before, &blob.sha256, condition).await?;
        Ok(content)
    }

    async fn present(&self, project: ProjectId, path: &BlobPath) -> Result<Blob, BlobError> {
        let found = self.state.blob(project, path).await?;
        found
            .filter(|blob| !blob.is_over(self.steady()))
            .ok_or_else(|| {
                let path = path.to_string();
                BlobError::refused(Refusal::NoSuchBlob { path })
            })
    }

    /// Refuses a path at which no blob may be stored.
    async fn check_new(
        &self,
        project: ProjectId,
        path: &BlobPath,
        before: Option<&Blob>,
    ) -> Result<(), BlobError> {
        if is_version(path) {
            return Err(BlobError::refused(Refusal::InvalidField {
                field: "path",
                problem: "is in the folder of former contents, which the daemon fills".to_owned(),
            }));
        }
        self.check_place(project, path, before).await
    }

    /// Refuses a new blob in the place of something else.
    async fn check_place(
        &self,
        project: ProjectId,
        path: &BlobPath,
        before: Option<&Blob>,
    ) -> Result<(), BlobError> {
        if before.is_some() {
            return Ok(());
        }
        match self.state.in_the_way_of_blob(project, path).await? {
            Some(refusal) => Err(BlobError::refused(refusal)),
            None => Ok(()),
        }
    }

    fn store(&self, new: NewBlob, before: Option<Blob>, size: u64, sha256: String) -> StoreBlob {
        let NewBlob {
            project,
            path,
            expires_in,
            condition,
            actor,
        } = new;
        StoreBlob {
            project,
            path,
            size,
            sha256,
            expires_in,
            before,
            condition,
            quota: self.shared.settings.quota,
            actor,
        }
    }

    async fn with_lock<T, W, F>(&self, project: ProjectId, work: W) -> Result<T, BlobError>
    where
        T: Send + 'static,
        W: FnOnce(Self) -> F,
        F: Future<Output = Result<T, BlobError>> + Send + 'static,
    {
        let turn = lock(&self.shared.locks).entry(project).or_default().clone();
        let work = work(self.clone());
        let done = uninterrupted(async move {
            let _turn = turn.lock().await;
            work.await
        });
        let interrupted = || Err(BlobError::Read(ReadError::Interrupted));
        done.await.unwrap_or_else(interrupted)
    }
}

impl BlobUpload {
    pub async fn write(mut self, piece: Bytes) -> Result<Self, BlobError> {
        self.received += piece.len() as u64;
        self.reservation.reach(self.received)?;
        let upload = self.upload.write(piece).await?;
        Ok(Self { upload, ..self })
    }

    /// Stores the blob. It is durable when this returns. If its digest is not `wanted`, it is not stored.
    pub async fn finish(self, wanted: Option<&str>) -> Result<Stored, BlobError> {
        let Self {
            blobs,
            new,
            upload,
            received,
            reservation,
        } = self;
        let content = upload.finish().await?;
        let sha256 = hex(&content.sha256());
        if let Some(wanted) = wanted.filter(|wanted| *wanted != sha256) {
            let wanted = wanted.to_owned();
            return Err(BlobError::Digest { sha256, wanted });
        }
        let stored = blobs.with_lock(new.project, async move |blobs: Blobs| {
            let before = blobs.state.blob(new.project, &new.path).await?;
            blobs
                .check_place(new.project, &new.path, before.as_ref())
                .await?;
            blobs
                .keep_version(before.as_ref(), &sha256, &new.condition)
                .await?;
            let is_new = before.is_none();
            let store = blobs.store(new, before, received, sha256);
            let blob = blobs.state.store_blob(store, Some(content)).await?;
            drop(reservation);
            Ok(Stored { blob, is_new })
        });
        stored.await
    }
}

impl Reservation {
    /// Extends the reservation to `bytes`, if the quota allows it.
    fn reach(&mut self, bytes: u64) -> Result<(), BlobError> {
        let more = bytes.saturating_sub(self.bytes);
        let Some(maximum) = self.blobs.shared.settings.quota.filter(|_| more > 0) else {
            return Ok(());
        };
        let used = self
            .blobs
            .state
            .read(|world| world.blob_usage(self.project).bytes);
        let mut reserved = lock(&self.blobs.shared.reserved);
        let promised = reserved.entry(self.project).or_default();
        let kept = used.saturating_sub(self.replaced) + *promised;
        if kept + more > maximum {
            return Err(BlobError::refused(Refusal::QuotaExceeded {
                // Subtract the earlier reservation of this upload.
                used: (used + *promised).saturating_sub(self.bytes),
                maximum,
                wanted: bytes,
            }));
        }
        *promised += more;
        drop(reserved);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut reserved = lock(&self.blobs.shared.reserved);
        if let Some(promised) = reserved.get_mut(&self.project) {
            *promised = promised.saturating_sub(self.bytes);
        }
    }
}

fn refuse_same(from: &BlobPath, to: &BlobPath) -> Result<(), BlobError> {
    if from != to {
        return Ok(());
    }
    Err(BlobError::refused(Refusal::InvalidField {
        field: "to",
        problem: "is already the path of the blob".to_owned(),
    }))
}

#[cfg(test)]
mod tests;
