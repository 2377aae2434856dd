//! Keeping the former contents of blobs.
//!
//! The old content gets a second path before the commit replaces it. After a crash in between, a version equals the
//! present content, and no content is lost.

use model::blob_versions::{version_path, versions_of};
use model::decide::{Refusal, RemoveBlob, StoreBlob};
use model::{Blob, BlobCondition};
use state::blobs::{BlobEntry, BlobQuery};

use super::Blobs;
use crate::error::BlobError;

/// The most versions that are listed when a version is added. A lowered setting may leave more; later additions remove them.
const LISTED: usize = 100;

impl Blobs {
    /// Keeps the content of a blob before a write replaces it, if its folder keeps former contents and the write's
    /// condition holds. The caller holds the lock of the project.
    pub(super) async fn keep_version(
        &self,
        before: Option<&Blob>,
        sha256: &str,
        condition: &BlobCondition,
    ) -> Result<(), BlobError> {
        let now = self.steady();
        let present = before.filter(|blob| !blob.is_over(now));
        let Some(blob) = present.filter(|blob| blob.sha256 != sha256) else {
            return Ok(());
        };
        let kept = self.shared.settings.versions.of(&blob.path);
        if kept == 0 || !condition.holds(present) {
            return Ok(());
        }
        let path = version_path(blob, self.shared.clock.now()).map_err(|error| {
            BlobError::refused(Refusal::InvalidField {
                field: "path",
                problem: format!("leaves no space for the path of a version, which {error}"),
            })
        })?;
        let state = &self.state;
        let existing = state.blob(blob.project, &path).await?;
        self.check_place(blob.project, &path, existing.as_ref())
            .await?;
        if existing.is_none() {
            let store = StoreBlob {
                project: blob.project,
                path,
                size: blob.size,
                sha256: blob.sha256.clone(),
                expires_in: blob.expires_at.map(|end| end - now),
                before: None,
                condition: BlobCondition::None,
                quota: self.shared.settings.quota,
                actor: blob.by.clone(),
            };
            let content = state.share_blob(blob).await?;
            state.store_blob(store, Some(content)).await?;
        }
        self.remove_versions(blob, kept).await
    }

    /// Removes all former contents of a blob except the newest `kept`.
    async fn remove_versions(&self, blob: &Blob, kept: usize) -> Result<(), BlobError> {
        let query = BlobQuery {
            project: blob.project,
            folder: versions_of(&blob.path),
            begin: String::new(),
            is_flat: true,
            after: None,
            limit: LISTED,
            now: self.steady(),
        };
        let entries = self.state.list_blobs(&query).await?.entries;
        let versions = entries.into_iter().filter_map(|entry| match entry {
            BlobEntry::Blob(version) => Some(version),
            BlobEntry::Folder(_) => None,
        });
        let versions: Vec<Blob> = versions.collect();
        let surplus = versions.len().saturating_sub(kept);
        for blob in versions.into_iter().take(surplus) {
            let condition = BlobCondition::None;
            self.state.submit(RemoveBlob { blob, condition }).await?;
        }
        Ok(())
    }
}
