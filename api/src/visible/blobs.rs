//! Blobs and links to them, as the caller sees them.

use chrono::TimeDelta;
use model::blob::LinkUse;
use model::decide::{CreateBlobLink, NewBlobLink, Once, Refusal, RevokeBlobLink};
use model::{Blob, BlobCondition, BlobLinkId, BlobPath, IdempotencyKey, ProjectId};
use reconciler::{BlobUpload, NewBlob, Stored};
use state::Download;
use state::blobs::{BlobPage, BlobQuery};

use super::{Shown, Visible};
use crate::failure::Failure;

impl Visible {
    /// What is recorded of a blob.
    pub(crate) async fn blob(
        &self,
        project: &Shown<ProjectId>,
        path: &BlobPath,
    ) -> Result<Blob, Failure> {
        let found = self.handle.state().blob(**project, path).await?;
        found
            .filter(|blob| !blob.is_over(self.steady()))
            .ok_or_else(|| no_such_blob(path))
    }

    /// A blob with its content.
    pub(crate) async fn open_blob(
        &self,
        project: &Shown<ProjectId>,
        path: &BlobPath,
    ) -> Result<(Blob, Download), Failure> {
        let found = self.handle.state().open_blob(**project, path).await?;
        found
            .filter(|(blob, _)| !blob.is_over(self.steady()))
            .ok_or_else(|| no_such_blob(path))
    }

    /// Lists the blobs of a project.
    pub(crate) async fn list_blobs(
        &self,
        project: &Shown<ProjectId>,
        query: &BlobQuery,
    ) -> Result<BlobPage, Failure> {
        debug_assert_eq!(**project, query.project);
        Ok(self.handle.state().list_blobs(query).await?)
    }

    /// Begins to receive a blob.
    pub(crate) async fn begin_blob(
        &self,
        new: &Shown<NewBlob>,
        announced: Option<u64>,
    ) -> Result<BlobUpload, Failure> {
        let new = NewBlob::clone(new);
        Ok(self.acting()?.begin_blob(new, announced).await?)
    }

    pub(crate) async fn finish_blob(
        &self,
        upload: BlobUpload,
        wanted: Option<&str>,
    ) -> Result<Stored, Failure> {
        // The content may have taken hours.
        self.acting()?;
        Ok(upload.finish(wanted).await?)
    }

    pub(crate) async fn copy_blob(
        &self,
        from: BlobPath,
        new: &Shown<NewBlob>,
    ) -> Result<Stored, Failure> {
        Ok(self.acting()?.copy_blob(from, NewBlob::clone(new)).await?)
    }

    pub(crate) async fn move_blob(
        &self,
        project: &Shown<ProjectId>,
        from: BlobPath,
        to: BlobPath,
        condition: BlobCondition,
    ) -> Result<Stored, Failure> {
        let handle = self.acting()?;
        Ok(handle.move_blob(**project, from, to, condition).await?)
    }

    pub(crate) async fn delete_blob(
        &self,
        project: &Shown<ProjectId>,
        path: BlobPath,
        condition: BlobCondition,
    ) -> Result<(), Failure> {
        let handle = self.acting()?;
        Ok(handle.delete_blob(**project, path, condition).await?)
    }

    pub(crate) async fn create_blob_link(
        &self,
        project: &Shown<ProjectId>,
        path: BlobPath,
        use_for: LinkUse,
        life: TimeDelta,
        key: Option<IdempotencyKey>,
    ) -> Result<NewBlobLink, Failure> {
        let command = CreateBlobLink {
            project: **project,
            path,
            use_for,
            life,
            token: self.token.id,
        };
        let once = Once { command, key };
        Ok(self.acting()?.state().submit(once).await?)
    }

    pub(crate) async fn revoke_blob_link(&self, link: &Shown<BlobLinkId>) -> Result<(), Failure> {
        let revoke = RevokeBlobLink { link: **link };
        Ok(self.acting()?.state().submit(revoke).await?)
    }
}

fn no_such_blob(path: &BlobPath) -> Failure {
    let path = path.to_string();
    Failure::from(Refusal::NoSuchBlob { path })
}
