//! Blobs: each has a record, and an object with its content in folders of the same names.
//!
//! A commit changes record and content together, so after a crash both are old or both are new. Only one command at a
//! time may change the blobs of a project; the caller ensures this.

mod list;

use model::decide::{Command, MoveBlob, Refusal, StoreBlob};
use model::limits::BLOB_FOLDER_ENTRIES;
use model::{Blob, BlobPath, BlobUsage, ProjectId, blob};
use store::{Object, Staged};
use workflow::unhex;

pub use self::list::{BlobEntry, BlobPage, BlobQuery, split_prefix};
use crate::blocking::on_volume;
use crate::download::Download;
use crate::encode::adopt;
use crate::envelope;
use crate::error::{ReadError, SubmitError, WriteError};
use crate::layout::{Folders, Layout, blob_name, blob_of_record};
use crate::reader::StoreReader;
use crate::state::State;

/// Number and size of a project's blobs, counted from their records.
pub(crate) async fn counted(
    reader: &StoreReader,
    project: ProjectId,
) -> Result<BlobUsage, ReadError> {
    let mut usage = BlobUsage::none(project);
    let mut waiting = vec![Folders::blob_records(project, &[])];
    while let Some(folder) = waiting.pop() {
        for name in reader.children(&folder).await? {
            let key = folder.join(&name);
            let Some(record) = key.filter(|key| blob_of_record(key).is_some()) else {
                waiting.push(Folders::in_blob_folder(&folder, &name));
                continue;
            };
            let bytes = reader.get(&record).await?;
            let blob: Option<Blob> = bytes.and_then(|bytes| envelope::open(&bytes).ok());
            usage = usage.with(None, blob.as_ref());
        }
    }
    Ok(usage)
}

impl State {
    /// The record of a blob, expired or not.
    pub async fn blob(
        &self,
        project: ProjectId,
        path: &BlobPath,
    ) -> Result<Option<Blob>, ReadError> {
        let key = Layout::blob_record(project, path);
        self.reader().record(&key).await
    }

    /// A blob with its content. The content stays readable if the blob is removed or replaced meanwhile.
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
            // If they differ, the blob was replaced between the two reads.
            if found.as_ref() == Some(&blob) {
                let content = content.ok_or_else(|| ReadError::damaged(key, "it is missing"))?;
                return Ok(Some((blob, content)));
            }
        }
    }

    /// Why a path cannot get a new blob: a folder has this name, a blob has the name of a parent folder, or the folder
    /// is full.
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
            // In the deepest existing folder, a blob may have the name of the next folder of the path.
            if depth < folders.len()
                && let Ok(folder) = BlobPath::new(folders[..=depth].to_vec())
                && entries.contains(&Layout::blob_record(project, &folder).name().to_owned())
            {
                let path = folder.to_string();
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

    /// Stages the content of this blob so that another blob can share it.
    pub async fn share_blob(&self, blob: &Blob) -> Result<Staged, WriteError> {
        let key = Layout::blob(blob.project, &blob.path);
        let sha256 = unhex(&blob.sha256).and_then(|bytes| bytes.try_into().ok());
        let object = Object {
            sha256: sha256.unwrap_or_default(),
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

    /// Stores a blob. `content` is `None` if the blob has this content already.
    pub async fn store_blob(
        &self,
        store: StoreBlob,
        content: Option<Staged>,
    ) -> Result<Blob, SubmitError> {
        let exists = store.before.is_some();
        let (project, path) = (store.project, store.path.clone());
        self.submit_blob(store, project, path, exists, content)
            .await
    }

    /// Moves a blob. `content` is the staged content, or `None` if the target has this content already.
    pub async fn move_blob(
        &self,
        command: MoveBlob,
        content: Option<Staged>,
    ) -> Result<Blob, SubmitError> {
        let exists = command.before.is_some();
        let (project, path) = (command.blob.project, command.to.clone());
        self.submit_blob(command, project, path, exists, content)
            .await
    }

    async fn submit_blob<C: Command>(
        &self,
        command: C,
        project: ProjectId,
        path: BlobPath,
        exists: bool,
        content: Option<Staged>,
    ) -> Result<C::Answer, SubmitError> {
        let rewritten = match exists {
            true => self.rewritten(Layout::blob_record(project, &path)).await,
            false => None,
        };
        self.submit_with(command, rewritten, move |_, batch| {
            if let Some(content) = &content {
                adopt(batch, Layout::blob(project, &path), content.clone());
            }
        })
        .await
    }
}
