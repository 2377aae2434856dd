//! Rebuilds lost records of a scan from its history and from each other.

use model::retention::Retention;
use model::{JobId, ScanHead, ScanKey, TailEnd, Totals, World};

use crate::error::ReadError;
use crate::history::recount;
use crate::layout::{Layout, RecordPlace};
use crate::reader::StoreReader;

/// Rebuilds the heads of scans that have a history but no head, because somebody removed the file or a repair was
/// interrupted. Without a head the next line would overwrite the first line of the history.
pub(crate) async fn lost_heads(
    reader: &StoreReader,
    world: &World,
) -> Result<Vec<ScanHead>, ReadError> {
    let mut restored = Vec::new();
    for scan in headless(world) {
        let folder = Layout::history(&scan, 0).folder();
        if reader.children(&folder).await?.is_empty() {
            continue;
        }
        tracing::error!(workflow = %scan.workflow, scan = %scan.scan, "the head of a scan is lost; it is rebuilt from the history");
        restored.push(after_loss(reader, &world.retention_or_new(&scan)).await?);
    }
    Ok(restored)
}

/// The defined scans without a head. Most of them never had a job.
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

/// Rebuilds a lost head. It counts the jobs in the readable part of the history and the removed jobs. The newest
/// successes remain unknown. The history continues after all existing pages.
pub(crate) async fn after_loss(
    reader: &StoreReader,
    retention: &Retention,
) -> Result<ScanHead, ReadError> {
    let scan = &retention.key();
    let pages = history_pages(reader, scan).await?;
    let folder = Layout::ledger(scan, 0).folder();
    let ledger = reader.words(&folder, RecordPlace::Ledger, "page").await?;
    let found = recount(reader, retention, &pages).await;
    let mut totals = found.there;
    totals.add(&retention.removed);
    let page = after(&pages).max(retention.from.page);
    Ok(ScanHead {
        history: TailEnd { page, bytes: 0 },
        ledger: TailEnd {
            page: after(&ledger),
            bytes: 0,
        },
        latest_job: found.newest.unwrap_or(JobId::FIRST),
        // There are more lines than jobs if folders of jobs were removed by hand.
        totals: totals.max(&found.lines),
        ..ScanHead::new(scan.workflow, scan.scan.clone())
    })
}

/// Rebuilds a lost retention record. Jobs of an unreadable page count as removed, so retention keeps more jobs than
/// necessary.
pub(crate) async fn retention_after_loss(
    reader: &StoreReader,
    head: &ScanHead,
) -> Result<Retention, ReadError> {
    let everything = Retention::new(head.workflow, head.scan.clone());
    let pages = history_pages(reader, &head.key()).await?;
    let found = recount(reader, &everything, &pages).await;
    recounted(reader, head, &found.there).await
}

/// The retention record of a scan that still has the jobs `there`: all other jobs counted by its head were removed.
/// Retention reads the rest of the history again.
pub(crate) async fn recounted(
    reader: &StoreReader,
    head: &ScanHead,
    there: &Totals,
) -> Result<Retention, ReadError> {
    let mut retention = Retention::new(head.workflow, head.scan.clone());
    let pages = history_pages(reader, &head.key()).await?;
    retention.from.page = pages.first().copied().unwrap_or(head.history.page);
    retention.removed = head.totals.without(there);
    Ok(retention)
}

/// The pages of a history, in order.
async fn history_pages(reader: &StoreReader, scan: &ScanKey) -> Result<Vec<u64>, ReadError> {
    let folder = Layout::history(scan, 0).folder();
    let mut pages = reader.words(&folder, RecordPlace::History, "page").await?;
    pages.sort_unstable();
    Ok(pages)
}

/// The page after the newest page.
fn after(pages: &[u64]) -> u64 {
    pages.iter().max().map_or(0, |newest| newest + 1)
}
