//! Restores workflows whose own record was damaged or removed.
//!
//! Their revisions still exist. The newest revision has the data of the record, except whether the workflow is retired;
//! the next poll of its source finds this out. Without a record, the workflow's next text would become revision 1 and
//! overwrite the first revision.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    ProjectId, RevisionId, RevisionRecord, RevisionRef, WorkflowId, WorkflowRecord, WorkflowStatus,
};
use store::Key;

use crate::error::ReadError;
use crate::layout::{Folders, Layout, RecordPlace};
use crate::reader::StoreReader;

/// Records for workflows that have revisions and are not `known`.
pub(crate) async fn restored(
    reader: &StoreReader,
    known: BTreeSet<WorkflowId>,
) -> Result<Vec<WorkflowRecord>, ReadError> {
    let ids = reader.children(&Folders::workflows()).await?.into_iter();
    let ids = ids.filter_map(|name| name.parse::<WorkflowId>().ok());
    let mut records = Vec::new();
    for id in ids.filter(|id| !known.contains(id)) {
        let revisions = revisions_of(reader, id).await?;
        if let Some(record) = newest_readable(reader, id, &revisions).await? {
            tracing::error!(workflow = %record.id, name = record.name, revision = record.revision.number, "the record of a workflow is lost; it is rebuilt from the revisions");
            records.push(record);
        }
    }
    Ok(records)
}

/// The revisions of a workflow according to the names of their folders, newest first. Their commits are shortened.
pub(crate) async fn revisions_of(
    reader: &StoreReader,
    workflow: WorkflowId,
) -> Result<Vec<RevisionRef>, ReadError> {
    let place = RecordPlace::Revision;
    let folder = Folders::revisions(workflow);
    let reference = |name: &String| {
        let record = Key::new(place.path_in(folder.join(name)?.as_str())).ok()?;
        let number = place.word(&record, "number")?;
        Some(RevisionRef {
            id: RevisionId::derive(workflow, number),
            number,
            commit: place.word(&record, "commit")?,
        })
    };
    let names = reader.children(&folder).await?;
    let mut revisions: Vec<_> = names.iter().filter_map(reference).collect();
    revisions.sort_by_key(|revision| std::cmp::Reverse(revision.number));
    Ok(revisions)
}

/// A record from the newest readable revision, with the number of the newest revision.
async fn newest_readable(
    reader: &StoreReader,
    id: WorkflowId,
    revisions: &[RevisionRef],
) -> Result<Option<WorkflowRecord>, ReadError> {
    let Some(newest) = revisions.first() else {
        return Ok(None);
    };
    for revision in revisions {
        let key = Layout::revision(id, revision);
        let record = match reader.record::<RevisionRecord>(&key).await {
            Ok(Some(record)) => record,
            Ok(None) => continue,
            Err(error @ ReadError::Damaged { .. }) => {
                tracing::error!(%key, %error, "a revision cannot be read");
                continue;
            }
            Err(error) => return Err(error),
        };
        let is_newest = record.reference.number == newest.number;
        return Ok(Some(WorkflowRecord {
            id,
            project: ProjectId::of_source(&record.workflow.source),
            source: record.workflow.source,
            name: record.workflow.name,
            file: record.file,
            status: WorkflowStatus::Active,
            revision: if is_newest {
                record.reference
            } else {
                newest.clone()
            },
            held: None,
            armed: BTreeMap::new(),
        }));
    }
    tracing::error!(workflow = %id, "the record and all revisions of a workflow are lost");
    Ok(None)
}
