//! Reads the revisions of a workflow, active or not.

use model::{RevisionRecord, RevisionRef, WorkflowId};
use workflow::sha256;

use crate::envelope;
use crate::error::ReadError;
use crate::layout::Layout;
use crate::lost_workflows::revisions_of;
use crate::state::State;

#[derive(Debug, Clone)]
pub struct StoredRevision {
    pub record: RevisionRecord,
    pub text: String,
}

impl State {
    /// The revisions of a workflow, newest first. Their commits are shortened. While a full disk delays the files, only
    /// the newest revision is returned.
    pub async fn revisions(&self, workflow: WorkflowId) -> Result<Vec<RevisionRef>, ReadError> {
        match revisions_of(self.reader(), workflow).await {
            Err(ReadError::Store(store::ReadError::Unsettled)) => Ok(self
                .read(|world| {
                    let record = world.workflow_record(workflow);
                    record.map(|record| record.revision.clone())
                })
                .into_iter()
                .collect()),
            revisions => revisions,
        }
    }

    /// The records of revisions, in the order of `revisions`; `None` for an unreadable record.
    pub async fn revision_records(
        &self,
        workflow: WorkflowId,
        revisions: &[RevisionRef],
    ) -> Result<Vec<Option<RevisionRecord>>, ReadError> {
        let keys: Vec<_> = revisions
            .iter()
            .map(|revision| Layout::revision(workflow, revision))
            .collect();
        let found = self.reader().get_many(keys.clone()).await?;
        let records = keys.iter().zip(found).map(|(key, bytes)| {
            let opened = bytes.map(|bytes| envelope::open_at(key, &bytes));
            opened.transpose().unwrap_or_else(|error| {
                tracing::error!(%key, %error, "a revision cannot be read");
                None
            })
        });
        Ok(records.collect())
    }

    /// A revision with its text. A missing or changed text is [`ReadError::Damaged`].
    pub async fn revision_text(
        &self,
        workflow: WorkflowId,
        revision: &RevisionRef,
    ) -> Result<StoredRevision, ReadError> {
        let reader = self.reader();
        let key = Layout::revision(workflow, revision);
        let record: Option<RevisionRecord> = reader.record(&key).await?;
        let record = record.ok_or_else(|| ReadError::damaged(&key, "it is missing"))?;
        let key = Layout::revision_text(workflow, revision);
        let text = reader.get(&key).await?;
        let text = text.ok_or_else(|| ReadError::damaged(&key, "it is missing"))?;
        let found = sha256(&text);
        if found != record.text.sha256 {
            let problem = format!("its SHA-256 is {found}");
            return Err(ReadError::damaged(&key, problem));
        }
        match String::from_utf8(text.to_vec()) {
            Ok(text) => Ok(StoredRevision { record, text }),
            Err(error) => Err(ReadError::damaged(&key, error)),
        }
    }
}
