//! Blobs, as the caller sees them.

use model::decide::Refusal;
use model::{Blob, BlobCondition, BlobPath, ProjectId};
use reconciler::{BlobUpload, NewBlob, Stored};
use state::Download;
use state::blobs::{BlobPage, BlobQuery};

use super::{Shown, Visible};
use crate::failure::Failure;

impl Visible {
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

    pub(crate) async fn list_blobs(
        &self,
        project: &Shown<ProjectId>,
        query: &BlobQuery,
    ) -> Result<BlobPage, Failure> {
        debug_assert_eq!(**project, query.project);
        Ok(self.handle.state().list_blobs(query).await?)
    }

    pub(crate) async fn begin_blob(
        &self,
        new: &Shown<NewBlob>,
        announced: Option<u64>,
    ) -> Result<BlobUpload, Failure> {
        let new = NewBlob::clone(new);
        Ok(self.acting()?.blobs().begin(new, announced).await?)
    }

    pub(crate) async fn finish_blob(
        &self,
        upload: BlobUpload,
        wanted: Option<&str>,
    ) -> Result<Stored, Failure> {
        // The upload may have taken hours, so check the token again.
        self.acting()?;
        Ok(upload.finish(wanted).await?)
    }

    pub(crate) async fn copy_blob(
        &self,
        from: BlobPath,
        new: &Shown<NewBlob>,
    ) -> Result<Stored, Failure> {
        let blobs = self.acting()?.blobs();
        Ok(blobs.copy(from, NewBlob::clone(new)).await?)
    }

    pub(crate) async fn move_blob(
        &self,
        project: &Shown<ProjectId>,
        from: BlobPath,
        to: BlobPath,
        condition: BlobCondition,
    ) -> Result<Stored, Failure> {
        let blobs = self.acting()?.blobs();
        Ok(blobs.rename(**project, from, to, condition).await?)
    }

    pub(crate) async fn delete_blob(
        &self,
        project: &Shown<ProjectId>,
        path: BlobPath,
        condition: BlobCondition,
    ) -> Result<(), Failure> {
        let blobs = self.acting()?.blobs();
        Ok(blobs.delete(**project, path, condition).await?)
    }
}

fn no_such_blob(path: &BlobPath) -> Failure {
    let path = path.to_string();
    Failure::from(Refusal::NoSuchBlob { path })
}
