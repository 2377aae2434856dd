//! Scan heads as they are put together at a start, also those whose own record or whose history somebody damaged.
//!
//! A head says where the next line of its scan's history goes. In two cases that may not be believed, and in both the
//! history goes on with a page of its own, so that nothing is written over.

use std::path::Path;
use std::sync::Arc;

use model::retention::{FinishedJob, Retention};
use model::{Digests, JobId, Repeats, ScanHead, ScanKey, Tail, Totals, digests_of};
use serde::{Deserialize, Serialize};
use store::append_file::AppendReader;
use store::{DiskError, Key, Prefix, parallel};

use crate::error::ReadError;
use crate::files::{blocking, names};
use crate::history::recount;
use crate::jobs::settled_job;
use crate::layout::Layout;
use crate::limits::LOOKING_THREADS;
use crate::reader::StoreReader;

/// Heads whose last page of history or ledger was cut short go on with the next page: an append behind the end of a file
/// is no commit, and would stop the daemon at the scan's next finished job.
pub(crate) async fn with_ends(
    root: &Path,
    heads: Vec<Arc<ScanHead>>,
) -> Result<Vec<Arc<ScanHead>>, ReadError> {
    let root = root.to_owned();
    blocking(move || parallel::try_map(LOOKING_THREADS, &heads, |head| Ok(with_end(&root, head))))
        .await
}

fn with_end(root: &Path, head: &Arc<ScanHead>) -> Arc<ScanHead> {
    let scan = head.key();
    let history = end_of(
        root,
        &Layout::history(&scan, head.history.page),
        head.history,
    );
    let ledger = end_of(root, &Layout::ledger(&scan, head.ledger.page), head.ledger);
    if (history, ledger) == (head.history, head.ledger) {
        return head.clone();
    }
    Arc::new(ScanHead {
        history,
        ledger,
        ..ScanHead::clone(head)
    })
}

/// What is stored beside a head and in memory with it.
#[derive(Default)]
pub(crate) struct Beside {
    pub(crate) digests: Option<Arc<Digests>>,
    pub(crate) repeats: Option<Repeats>,
}

/// The file of a run of equal looks at a scan's triggers.
#[derive(Serialize, Deserialize)]
pub(crate) struct RepeatsRecord {
    #[serde(flatten)]
    pub(crate) scan: ScanKey,
    #[serde(flatten)]
    pub(crate) repeats: Repeats,
}

/// A head with what is stored beside it. Digests that are lost are found again in the records of the jobs.
pub(crate) async fn whole(
    reader: &StoreReader,
    head: Arc<ScanHead>,
    beside: Beside,
) -> Arc<ScanHead> {
    let mut head = Arc::unwrap_or_clone(head);
    head.repeats = beside.repeats;
    for success in &mut head.successes {
        let known = beside.digests.as_ref();
        if let Some(known) = known.and_then(|known| known.successes.get(&success.job)) {
            success.digests = known.clone();
        }
        if success.lacks_digests() {
            match settled_job(reader, success.job).await {
                Ok(Some(job)) => success.digests = digests_of(&job),
                Ok(None) => {
                    tracing::error!(job = %success.job, "the digests of a success are lost");
                }
                Err(error) => {
                    tracing::error!(job = %success.job, %error, "the digests of a success are lost");
                }
            }
        }
    }
    Arc::new(head)
}

fn end_of(root: &Path, key: &Key, tail: Tail) -> Tail {
    if tail.bytes == 0 {
        return tail;
    }
    match length(root, key) {
        Ok(length) if length.unwrap_or(0) < tail.bytes => {
            tracing::error!(%key, length, expected = tail.bytes, "a file has lost its end and goes on with the next page");
            Tail {
                page: tail.page + 1,
                bytes: 0,
            }
        }
        Ok(_) => tail,
        Err(error) => {
            tracing::error!(%key, %error, "a file cannot be looked at");
            tail
        }
    }
}

/// What can be known of a scan whose head is lost: the jobs of its history are counted anew, as far as it can be read, and
/// what was removed of it is added. In any case the history goes on behind all pages there are. Its newest successes
/// begin again.
pub(crate) async fn after_loss(
    root: &Path,
    reader: &StoreReader,
    retention: &Retention,
) -> Result<ScanHead, ReadError> {
    let scan = &retention.key();
    let pages = pages_of(root, &Layout::history(scan, 0).folder()).await?;
    let ledger = pages_of(root, &Layout::ledger(scan, 0).folder()).await?;
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
            Some(passed) => totals.count(&passed.state, passed.bytes),
            None if known.take_gone_ahead(&job.state) => {}
            None => totals.count(&job.state, job.bytes),
        }
    }
    totals
}

/// What can be known of a scan whose record of removed jobs is lost: all that its head has counted and that is not there
/// was removed. What is left of the history is read again.
pub(crate) async fn retention_after_loss(
    root: &Path,
    reader: &StoreReader,
    head: &ScanHead,
) -> Result<Retention, ReadError> {
    let mut retention = Retention::new(head.workflow, head.scan.clone());
    let pages = pages_of(root, &Layout::history(&head.key(), 0).folder()).await?;
    let found = recount(reader, &retention, &pages).await;
    if let Some(error) = found.unread {
        return Err(error);
    }
    retention.removed = head.totals.without(&found.there);
    for job in &found.gone {
        retention.note_gone_ahead(&job.state);
    }
    retention.from.page = pages.first().copied().unwrap_or(head.history.page);
    Ok(retention)
}

/// The pages in a folder, in order.
async fn pages_of(root: &Path, folder: &Prefix) -> Result<Vec<u64>, ReadError> {
    let (root, folder) = (root.to_owned(), folder.as_str().to_owned());
    let names = blocking(move || names(&root, &folder)).await?;
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

fn length(root: &Path, key: &Key) -> Result<Option<u64>, DiskError> {
    AppendReader::open(root, key)?
        .map(|file| file.len())
        .transpose()
}
