//! What can be known of a scan's records that are lost, from its history and from each other.

use model::retention::{FinishedJob, Retention};
use model::{JobId, ScanHead, Tail, Totals};
use store::Prefix;

use crate::error::ReadError;
use crate::history::recount;
use crate::layout::Layout;
use crate::reader::StoreReader;

/// What can be known of a scan whose head is lost: the jobs of its history are counted anew, as far as it can be read,
/// and what was removed of it is added. Its newest successes begin again. In any case the history goes on behind all
/// pages there are.
pub(crate) async fn after_loss(
    reader: &StoreReader,
    retention: &Retention,
) -> Result<ScanHead, ReadError> {
    let scan = &retention.key();
    let pages = pages_of(reader, &Layout::history(scan, 0).folder()).await?;
    let ledger = pages_of(reader, &Layout::ledger(scan, 0).folder()).await?;
    let found = recount(reader, retention, &pages).await;
    let mut totals = found.there;
    totals.add(&retention.removed);
    totals.add(&uncounted(&found.gone, retention));
    let page = after(&pages).max(retention.from.page);
    Ok(ScanHead {
        history: Tail { page, bytes: 0 },
        ledger: Tail {
            page: after(&ledger),
            bytes: 0,
        },
        latest_job: found.newest.unwrap_or(JobId::FIRST),
        totals,
        ..ScanHead::new(scan.workflow, scan.scan.clone())
    })
}

/// The jobs that are gone and that will be counted as removed once their lines are read, as they are counted then: their
/// folders were removed by hand.
fn uncounted(gone: &[FinishedJob], retention: &Retention) -> Totals {
    let mut known = retention.clone();
    let mut totals = Totals::NONE;
    for job in gone {
        let passed = retention.passed_over.iter().find(|it| it.id == job.id);
        match passed {
            Some(passed) => totals.count(passed.state, passed.bytes),
            None if known.take_gone_ahead(job.state) => {}
            None => totals.count(job.state, job.bytes),
        }
    }
    totals
}

/// What can be known of a scan whose record of removed jobs is lost: all that its head has counted and that is not there
/// was removed. What is left of the history is read again.
pub(crate) async fn retention_after_loss(
    reader: &StoreReader,
    head: &ScanHead,
) -> Result<Retention, ReadError> {
    let mut retention = Retention::new(head.workflow, head.scan.clone());
    let pages = pages_of(reader, &Layout::history(&head.key(), 0).folder()).await?;
    let found = recount(reader, &retention, &pages).await;
    if let Some(error) = found.unread {
        return Err(error);
    }
    retention.removed = head.totals.without(&found.there);
    for job in &found.gone {
        retention.note_gone_ahead(job.state);
    }
    retention.from.page = pages.first().copied().unwrap_or(head.history.page);
    Ok(retention)
}

/// The pages in a folder, in order.
async fn pages_of(reader: &StoreReader, folder: &Prefix) -> Result<Vec<u64>, ReadError> {
    let names = reader.children(folder).await?;
    let numbers = names
        .iter()
        .filter_map(|name| name.strip_suffix(".jsonl")?.parse::<u64>().ok());
    let mut pages: Vec<u64> = numbers.collect();
    pages.sort_unstable();
    Ok(pages)
}

/// The page after the newest.
fn after(pages: &[u64]) -> u64 {
    pages.last().map_or(0, |newest| newest + 1)
}
