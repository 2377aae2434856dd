//! Scans that have a history and no head: somebody removed the file, or a repair was interrupted before it had counted
//! the head anew. Without a head the next line would be written over the first one of the history.

use std::sync::Arc;

use model::retention::Retention;
use model::{ScanHead, ScanKey, World};

use crate::error::ReadError;
use crate::layout::Layout;
use crate::reader::StoreReader;
use crate::rebuilt;

/// Rebuilds the heads that the world lacks.
pub(crate) async fn restored(
    reader: &StoreReader,
    world: &World,
) -> Result<Vec<ScanHead>, ReadError> {
    let lost = with_history(reader, headless(world)).await?;
    let mut restored = Vec::with_capacity(lost.len());
    for scan in lost {
        tracing::error!(workflow = %scan.workflow, scan = %scan.scan, "the head of a scan is lost; it is rebuilt from the history");
        let retention = world.retention(&scan).cloned();
        let retention =
            retention.unwrap_or_else(|| Arc::new(Retention::new(scan.workflow, scan.scan.clone())));
        restored.push(rebuilt::after_loss(reader, &retention).await?);
    }
    Ok(restored)
}

/// The scans that are defined and have no head. Most of them never had a job.
fn headless(world: &World) -> Vec<ScanKey> {
    let workflows = world.workflows();
    let scans = workflows.flat_map(|workflow| {
        let id = workflow.record.id;
        let revision = world.revision(workflow.record.revision.id);
        revision.into_iter().flat_map(move |revision| {
            revision.definition.scans().map(move |scan| ScanKey {
                workflow: id,
                scan: scan.name.clone(),
            })
        })
    });
    scans.filter(|scan| world.head(scan).is_none()).collect()
}

async fn with_history(
    reader: &StoreReader,
    scans: Vec<ScanKey>,
) -> Result<Vec<ScanKey>, ReadError> {
    let mut found = Vec::new();
    for scan in scans {
        let folder = Layout::history(&scan, 0).folder();
        if !reader.children(&folder).await?.is_empty() {
            found.push(scan);
        }
    }
    Ok(found)
}
