//! Scan heads as they are put together at a start, with what is stored beside them.
//!
//! A head says where the next line of its scan's history goes. Where the history has lost its end that may not be
//! believed, and it goes on with a page of its own. How a head that is lost is made again is in `remade.rs`.

use std::path::Path;
use std::sync::Arc;

use model::{Digests, Repeats, ScanHead, Tail, digests_of};
use store::append_file::AppendReader;
use store::{DiskError, Key, parallel};

use crate::error::ReadError;
use crate::files::blocking;
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

fn length(root: &Path, key: &Key) -> Result<Option<u64>, DiskError> {
    AppendReader::open(root, key)?
        .map(|file| file.len())
        .transpose()
}
