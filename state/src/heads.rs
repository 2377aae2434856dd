//! Scan heads as they are put together at a start, also those whose own record or whose history somebody damaged.
//!
//! A head says where the next line of its scan's history goes. In two cases that may not be believed, and in both the
//! history goes on with a page of its own, so that nothing is written over.

use std::path::Path;
use std::sync::Arc;

use model::{Digests, JobId, Repeats, ScanHead, ScanKey, Tail, digests_of};
use serde::{Deserialize, Serialize};
use store::append_file::AppendReader;
use store::{DiskError, Key};
use workflow::ScanName;

use crate::error::ReadError;
use crate::files::blocking;
use crate::history::recount;
use crate::jobs::settled_job;
use crate::layout::Layout;
use crate::reader::StoreReader;

/// The scan whose head belongs at this key, unless its name was cut to fit the path.
pub(crate) fn scan_at(key: &Key) -> Option<ScanKey> {
    let mut segments = key.segments();
    let workflow = segments.nth(1)?.parse().ok()?;
    let scan: ScanName = serde_json::from_value(segments.nth(1)?.into()).ok()?;
    let scan = ScanKey { workflow, scan };
    (Layout::head(&scan) == *key).then_some(scan)
}

/// A head whose last page of history or ledger was cut short goes on with the next page: an append behind the end of
/// a file is no commit, and would stop the daemon at the scan's next finished job.
pub(crate) fn with_ends(root: &Path, head: &Arc<ScanHead>) -> Arc<ScanHead> {
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

/// What can be known of a scan whose head is lost: its history is counted anew. Its newest successes begin again.
pub(crate) async fn after_loss(
    root: &Path,
    reader: &StoreReader,
    scan: &ScanKey,
) -> Result<ScanHead, ReadError> {
    let (root, key) = (root.to_owned(), scan.clone());
    let page = blocking(move || {
        let mut page = 0;
        while length(&root, &Layout::history(&key, page))
            .map_err(store::ReadError::from)?
            .is_some()
        {
            page += 1;
        }
        Ok::<_, ReadError>(page)
    })
    .await?;
    let (totals, newest) = recount(reader, scan, page).await?;
    let ledger = after_ledger(reader, scan).await?;
    Ok(ScanHead {
        history: Tail { page, bytes: 0 },
        ledger: Tail {
            page: ledger,
            bytes: 0,
        },
        latest_job: newest.unwrap_or(JobId::FIRST),
        totals,
        ..ScanHead::new(scan.workflow, scan.scan.clone())
    })
}

/// The page after the newest of a ledger, of which old pages are removed.
async fn after_ledger(reader: &StoreReader, scan: &ScanKey) -> Result<u64, ReadError> {
    let pages = reader.list(&Layout::ledger(scan, 0).folder()).await?;
    let number = |key: &Key| {
        let name = key.segments().last()?;
        name.strip_suffix(".jsonl")?.parse::<u64>().ok()
    };
    Ok(pages
        .iter()
        .filter_map(number)
        .max()
        .map_or(0, |newest| newest + 1))
}

fn length(root: &Path, key: &Key) -> Result<Option<u64>, DiskError> {
    AppendReader::open(root, key)?
        .map(|file| file.len())
        .transpose()
}
