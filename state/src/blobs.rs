//! Blobs: a record for each, and its content as an object in real folders of the same names.
//!
//! A commit changes a record together with the content, so that readers and crashes find both as they were or both as
//! they are now. Only one command at a time may change the blobs of a project; the caller sees to that.

mod list;

use model::decide::{MoveBlob, Refusal, RemoveBlob, StoreBlob};
use model::limits::BLOB_FOLDER_ENTRIES;
use model::{Blob, BlobPath, ProjectId, blob};
use store::{Object, Staged};
use workflow::unhex;

pub use self::list::{BlobEntry, BlobPage, BlobQuery, split_prefix};
use crate::blocking::on_volume;
use crate::download::Download;
use crate::encode::adopt;
use crate::error::{ReadError, SubmitError, WriteError};
use crate::layout::{Folders, Layout, blob_name};
use crate::state::State;

impl State {
    /// The record of a blob, also of one whose time is over.
    pub async fn blob(
        &self,
        project: ProjectId,
        path: &BlobPath,
    ) -> Result<Option<Blob>, ReadError> {
        let key = Layout::blob_record(project, path);
        self.reader().record(&key).await
    }

    /// A blob with its content, which stays readable when it is removed or replaced meanwhile.
    pub async fn open_blob(
        &self,
        project: ProjectId,
        path: &BlobPath,
    ) -> Result<Option<(Blob, Download)>, ReadError> {
        let key = Layout::blob(project, path);
        let mut found = self.blob(project, path).await?;
        loop {
            let Some(blob) = found else {
                return Ok(None);
            };
            let content = self.open_object(key.clone()).await?;
            found = self.blob(project, path).await?;
            // Otherwise it has been replaced between the two reads.
            if found.as_ref() == Some(&blob) {
                let content = content.ok_or_else(|| ReadError::damaged(key, "it is missing"))?;
                return Ok(Some((blob, content)));
            }
        }
    }

    /// Why no new blob can be at a path: a folder has that name, a blob has the name of its folder, or the folder is full.
    pub async fn in_the_way_of_blob(
        &self,
        project: ProjectId,
        path: &BlobPath,
    ) -> Result<Option<Refusal>, ReadError> {
        let folders = path.folders();
        for depth in (0..=folders.len()).rev() {
            let folder = &folders[..depth];
            let entries = self
                .reader()
                .children(&Folders::blob_records(project, folder))
                .await?;
            if entries.is_empty() {
                continue;
            }
            let name = blob_name(&path.names()[depth]);
            if depth == folders.len() && entries.contains(&name) {
                let path = path.to_string();
                return Ok(Some(Refusal::BlobIsFolder { path }));
            }
            // Below the first folder that is there, a blob may have the name of the next one.
            if depth < folders.len() && entries.contains(&list::record_name(&name)) {
                let path = blob::joined(&folders[..=depth]);
                return Ok(Some(Refusal::BlobIsNoFolder { path }));
            }
            let full = entries.len() >= BLOB_FOLDER_ENTRIES;
            return Ok(full.then(|| Refusal::BlobFolderFull {
                folder: blob::joined(folder),
                entries: entries.len(),
            }));
        }
        Ok(None)
    }

    /// The content of a blob once more, for another blob to have it.
    pub async fn share_blob(&self, blob: &Blob) -> Result<Staged, WriteError> {
        let key = Layout::blob(blob.project, &blob.path);
        let sha256 = unhex(&blob.sha256).unwrap_or_default();
        let object = Object {
            sha256,
            size: blob.size,
        };
        on_volume(self.volume(), move |volume| {
            let shared = volume.share_object(&key, object);
            match shared.map_err(|error| WriteError::new(&key, error))? {
                Some(shared) => Ok(shared),
                None => Err(WriteError::Missing {
                    path: key.to_string(),
                }),
            }
        })
        .await
    }

    /// Stores a blob with the content that was received for it.
    pub async fn store_blob(
        &self,
        store: StoreBlob,
        received: Staged,
    ) -> Result<Blob, SubmitError> {
        let (project, path) = (store.project, store.path.clone());
        let record = Layout::blob_record(project, &path);
        let rewritten = match store.before {
            Some(_) => self.rewritten(record).await,
            None => None,
        };
        self.submit_with(store, rewritten, move |_, batch| {
            adopt(batch, Layout::blob(project, &path), received);
        })
        .await
    }

    /// Moves a blob, whose content was shared for that.
    pub async fn move_blob(&self, command: MoveBlob, shared: Staged) -> Result<Blob, SubmitError> {
        let place = Layout::blob(command.blob.project, &command.to);
        let record = Layout::blob_record(command.blob.project, &command.to);
        let rewritten = match command.before {
            Some(_) => self.rewritten(record).await,
            None => None,
        };
        self.submit_with(command, rewritten, move |_, batch| {
            adopt(batch, place, shared);
        })
        .await
    }

    pub async fn remove_blob(&self, remove: RemoveBlob) -> Result<(), SubmitError> {
        self.submit(remove).await
    }
}
